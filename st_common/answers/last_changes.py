"""The newest changes, without reading all of them: from the end of the table's files, and of the journal."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.changes import streams_of
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.journal import pending, without_gap
from st_common.query.lookup import find
from st_common.tables import fit
from st_common.tables.tail import Added, Tail

_TRIES = 3
_ORDER = [("position", "ascending"), ("seq", "ascending")]


def last_changes(
    home: Home, query: str | None = None, *, stream: str | None = None, count: int
) -> pa.Table:
    """The last changes as users see them, of all queries or of one.

    Of one stream they are the last in the order of (position, seq), and in that order; of several those with the newest
    event times, by these. Files of the table are read from the newest one back, until there are enough.

    Args:
        home: where the tables lie.
        query: only changes of this query, whatever the case of its name.
        stream: only this stream; None: all on which the query is or was.
        count: at most so many.

    Returns:
        Rows with the columns of the contract `changes`.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    streams = streams_of(home, query) if stream is None else [stream]
    query = query if query is None else find(home, query).name
    nothing = load_contract("changes").empty_table()
    parts = [_of_stream(home, one, query, count) for one in streams]
    rows = pa.concat_tables([nothing, *parts])
    if len(streams) > 1:
        order = np.argsort(rows["event_ts"].cast(pa.int64()).to_numpy(), kind="stable")
        rows = rows.take(pa.array(order))
    return rows.slice(max(len(rows) - count, 0))


def _of_stream(home: Home, stream: str, query: str | None, count: int) -> pa.Table:
    for _ in range(_TRIES):
        try:
            return _newest(home, stream, query, count)
        except (
            FileNotFoundError
        ):  # compacted and cleaned away meanwhile: their rows are in other files now
            continue
    return _newest(home, stream, query, count)


def _newest(home: Home, stream: str, query: str | None, count: int) -> pa.Table:
    """The last changes of a stream.

    The journal is read before the table, so a commit in between shows in both: its rows are taken once.
    """
    contract = load_contract("changes")
    schema = contract.arrow_schema()
    keep = pc.field("query").is_valid() if query is None else pc.field("query") == query
    batches, outlet = pending(home, stream), Outlet(home, stream)
    table = Tail(home.table("changes", stream), "position")
    files, taken, border = table.added(-1), 0, -1
    told = without_gap(batches, files[-1].greatest if files else -1)
    waiting = pa.concat_tables(
        [schema.empty_table(), *(fit(rows, contract).filter(keep) for rows in told)]
    )
    rows = waiting
    while True:
        if taken:
            last = files[-taken:]
            border = files[-taken - 1].greatest if taken < len(files) else -1
            # Files that end before the border may not be left out: their rows are all at or before it.
            stored = table.read(last, schema, keep & (pc.field("position") > border))
            rows = _once(pa.concat_tables([stored, waiting]))
        passed = outlet.passed(rows.sort_by(_ORDER))
        if taken == len(files) or (taken and len(passed) >= count):
            return passed.slice(max(len(passed) - count, 0))
        taken = _more(files, taken)


def _more(files: Sequence[Added], taken: int) -> int:
    """How many files are read next: twice as many, and all that end where the first of these does."""
    wanted = min(max(2 * taken, 1), len(files))
    while wanted < len(files) and (
        files[-wanted - 1].greatest == files[-wanted].greatest
    ):
        wanted += 1
    return wanted


def _once(rows: pa.Table) -> pa.Table:
    """The rows without those that come a second time."""
    rows = rows.sort_by(_ORDER)
    position, seq = rows["position"].to_numpy(), rows["seq"].to_numpy()
    if not len(rows):
        return rows
    is_new = (np.diff(position) != 0) | (np.diff(seq) != 0)
    return rows.filter(pa.array(np.concatenate([[True], is_new])))
