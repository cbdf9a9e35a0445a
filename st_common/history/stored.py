"""Fixes and changes of a stream by their places in the log, and in parts that fit into memory."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.position import position_of, segment_of, start_of
from st_common.tables.handle import newest

ROWS = 2_000_000  # of a part
TOO_LATE = "too_late"  # the column that says whether a fix was; null of fixes of before contract 2.1.0
FILTERED = "filtered"  # the column that says why a fix was; null of all others


def archived_end(home: Home, stream: str) -> int:
    """The position up to which `positions` holds every fix: that of the first row that is not archived; 0 at first."""
    done = tables.committed(home.table("positions", stream), f"archive-{stream}")
    return 0 if done is None else position_of(done + 1, 0)


def fixes(
    home: Home,
    stream: str,
    start: int,
    end: int,
    columns: tuple[str, ...],
    *more: tuple[str, str, Any],
    accepted: bool = True,
) -> pa.Table:
    """The archived fixes between two places in the log, in no order.

    Args:
        home: where the tables lie.
        stream: the stream.
        start: the first position.
        end: the position to stop before.
        columns: columns of `positions` to be given beside `position`.
        *more: further filters (column, operator, value), as of `tables.read`.
        accepted: leave out what a position filter took out: such fixes say how late it is, and nothing else.

    Returns:
        `position` (int64), then `columns`. Without a table there are no rows, and no columns but the position's.
    """
    path = home.table("positions", stream)
    if start >= end or not tables.exists(path):
        return pa.table({"position": pa.array([], pa.int64())})
    bounds = [
        ("segment", ">=", segment_of(start)),
        ("segment", "<=", segment_of(end - 1)),
        *more,
    ]
    names = [FILTERED] if accepted and has_filtered(path) else []
    rows = tables.read(
        path, columns=["segment", "row", *columns, *names], filters=bounds
    )
    if names:
        rows = rows.filter(rows[FILTERED].is_null())
    segment, row = rows["segment"].to_numpy(), rows["row"].to_numpy()
    position = np.asarray(position_of(segment, row.astype(np.int64)))
    rows = pa.table({"position": position} | {name: rows[name] for name in columns})
    wanted = (position >= start) & (position < end)
    # Whole segments, as nearly always, are not copied.
    return rows if wanted.all() else rows.filter(pa.array(wanted))


def has_filtered(path: Path) -> bool:
    """Whether a table of positions says which fixes were filtered: no fix ever was of a stream whose table does not."""
    return FILTERED in tables.dataset(path).schema.names


def where_accepted(home: Home, stream: str) -> str:
    """The end of a SELECT over a stream's positions that leaves out what was filtered; "" where nothing ever was."""
    path = home.table("positions", stream)
    return f"WHERE {FILTERED} IS NULL" if has_filtered(path) else ""


def changes(home: Home, stream: str, start: int, end: int) -> pa.Table:
    """The changes in the table between two places in the log, in no order.

    Args:
        home: where the tables lie.
        stream: the stream.
        start: the first position.
        end: the position to stop before.
    """
    path, contract = home.table("changes", stream), load_contract("changes")
    schema = contract.arrow_schema()
    if start >= end or not tables.exists(path):
        return schema.empty_table()
    return tables.read(
        path,
        columns=schema.names,
        filters=[("position", ">=", start), ("position", "<", end)],
        contract=contract,
    )


def parts(
    path: Path, start: int, end: int, *, rows: int = ROWS
) -> Iterator[tuple[int, int]]:
    """Cuts a part of the log so that a table has about `rows` rows of each piece, or fewer.

    Files say how many rows they have, not of which segments, so the segments are dealt out evenly.

    Args:
        path: the table, `positions` or `changes` of a stream.
        start: the first position.
        end: the position to stop before.
        rows: how many rows are read at once, about.

    Yields:
        Consecutive pairs of a first position and one to stop before, from `start` to `end`; nothing when they are
        equal.
    """
    if start >= end:
        return
    first, last = segment_of(start), segment_of(end - 1) + 1
    count = min(max(-(-_rows_of(path, start, end) // rows), 1), last - first)
    edges = np.unique(np.linspace(first, last, count + 1).astype(np.int64)).tolist()
    for low, high in pairwise(edges):
        yield max(start, start_of(low)), min(end, start_of(high))


def _rows_of(path: Path, start: int, end: int) -> int:
    """How many rows those files have that reach into a part of the log."""
    table = newest(path)
    actions = pa.table(table.get_add_actions(flatten=True)) if table else pa.table({})
    bounds = {
        "segment": (segment_of(start), segment_of(end - 1)),
        "position": (start, end - 1),
    }
    column = next(
        (name for name in bounds if f"max.{name}" in actions.column_names), None
    )
    if column is None or "num_records" not in actions.column_names:
        return 0
    low, high = bounds[column]
    before = pc.less(actions[f"max.{column}"], low)
    behind = pc.greater(actions[f"min.{column}"], high)
    outside = pc.or_(before, behind).fill_null(False)  # noqa: FBT003, the value
    return int(pc.sum(actions.filter(pc.invert(outside))["num_records"]).as_py() or 0)
