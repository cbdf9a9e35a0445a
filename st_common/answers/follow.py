"""Changes as they are committed: by the table's log and the local engine's journal, never the same one twice."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.changes import changed_streams
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.journal import Batch, JournalTail
from st_common.history.purged import require_kept
from st_common.log.log import Log
from st_common.operations.status import read_status
from st_common.position import position_of
from st_common.query.lookup import find
from st_common.tables import fit
from st_common.tables.tail import UNBOUNDED, Added, Tail

Place = tuple[int, int]  # a position and a seq in it
LAST_SEQ = (1 << 31) - 1
FIRST: Place = (-1, LAST_SEQ)  # the place before every change
POLL_S = 0.05
_ROWS = 100_000  # about so many are read from the table at once
_TRIES = 3
_ORDER = [("position", "ascending"), ("seq", "ascending")]


class Follower:
    """Gives the changes of one stream behind a place, in the order of (position, seq), each once.

    The changes of a stream are committed in that order, and a position is committed as a whole; engines that die and
    start again make the same rows again. So what lies behind the last place is new, and nothing else is. The journal is
    read before the table: a commit in between shows in both, and not in neither.

        given up to   journal          table     poll gives
        (40, last)    rows of 45, 50   up to 40  45, 50 from the journal
        (50, last)    emptied          up to 50  nothing: the table's rows are not behind 50
        (50, last)    rows of 50, 55   up to 50  55: an engine that started again told 50 a second time
        (20, last)    45, behind 40    up to 20  nothing: 40 was lost, and an engine that starts tells it again

    Args:
        home: where the tables lie.
        stream: the stream.
        after: the place after which it begins; `FIRST`: with everything.
        query: only changes of this query.

    Raises:
        FairwayError: changes behind that place were purged.
    """

    def __init__(
        self, home: Home, stream: str, *, after: Place = FIRST, query: str | None = None
    ) -> None:
        self._contract = load_contract("changes")
        self._schema = self._contract.arrow_schema()
        self._table = Tail(home.table("changes", stream), "position")
        self._journal = JournalTail(home, stream)
        self._nothing = self._schema.empty_table()
        self._query = query
        require_kept(home, stream, after[0])
        self._after = after
        self._files: list[Added] = []
        self._waiting: list[Batch] = []

    @property
    def place(self) -> Place:
        """The place up to which everything was given, or passed over because it is of another query."""
        return self._after

    def skip(self) -> Place:
        """Passes over everything that is committed now, so that only what comes later is given.

        Files are not read where the table's log notes their ends.

        Returns:
            The place behind it.
        """
        self._waiting += self._journal.read()
        self._files = self._table.added(self._after[0])
        while self._files and self._files[-1].greatest == UNBOUNDED:
            self._next_part()
        for file in self._files:
            self._move_past(file.greatest)
        self._files = []
        self._from_journal()
        return self._after

    def poll(self) -> pa.Table:
        """What was committed since the last call, or the next part of it: some 100,000 rows of the table at once.

        Returns:
            Rows with the columns of the contract `changes`; none when there is nothing new.
        """
        for _ in range(_TRIES):
            try:
                return self._poll()
            except FileNotFoundError:  # compacted and cleaned away meanwhile: their rows are in other files now
                self._table.start_again()
                self._files = []
        return self._poll()

    def _poll(self) -> pa.Table:
        if not self._files:
            self._waiting += self._journal.read()
            self._files = self._table.added(self._after[0])
        tables: list[pa.Table] = []
        while self._files and not sum(len(part) for part in tables):
            tables.append(self._next_part())
        if not self._files:
            tables += self._from_journal()
        return pa.concat_tables(tables).sort_by(_ORDER) if tables else self._nothing

    def _next_part(self) -> pa.Table:
        """The rows up to the end of some file: all that the table has up to there."""
        ends, rows = 0, 0
        # Files with one end go together: a position is given as a whole or not at all.
        while ends < len(self._files) and (
            rows < _ROWS or self._files[ends].greatest == self._files[ends - 1].greatest
        ):
            rows += self._files[ends].rows
            ends += 1
        border = self._files[ends - 1].greatest
        # Files that end later may begin before the border, so they are read up to it as well.
        files = [file for file in self._files if file.least <= border]
        part = self._table.read(
            files, self._schema, self._condition() & (pc.field("position") <= border)
        )
        self._files = self._files[ends:]
        self._move_past(border if border < UNBOUNDED else _greatest(part))
        return part

    def _from_journal(self) -> list[pa.Table]:
        """The rows of the batches that wait and go on from the place; those behind a gap wait on."""
        tables, behind_gap = [], []
        for batch in self._waiting:
            if batch.behind > self._after[0]:
                behind_gap.append(batch)
                continue
            rows = fit(batch.rows, self._contract)
            tables.append(rows.filter(self._condition()))
            self._move_past(batch.greatest)
        self._waiting = behind_gap
        return tables

    def _condition(self) -> Any:
        position, seq = self._after
        wanted = (pc.field("position") > position) | (
            (pc.field("position") == position) & (pc.field("seq") > seq)
        )
        return (
            wanted
            if self._query is None
            else wanted & (pc.field("query") == self._query)
        )

    def _move_past(self, position: int) -> None:
        self._after = max(self._after, (position, LAST_SEQ))


class Following:
    """What is new in streams that take turns, each time that somebody looks.

    Args:
        home: where the streams lie.
        stream: the stream; None: all of them, also those that get their first log meanwhile.
        query: only changes of this query.
        since: only changes behind this position of the log.

    Raises:
        QueryError: no query was ever registered by that name.
    """

    def __init__(
        self,
        home: Home,
        stream: str | None = None,
        query: str | None = None,
        since: int | None = None,
    ) -> None:
        self._home, self._stream = home, stream
        self._query = None if query is None else find(home, query).name
        self._after = FIRST if since is None else (since, LAST_SEQ)
        self._followers: dict[str, tuple[Follower, Outlet]] = {}

    def is_idle(self) -> bool:
        """Whether the engines have done all that the logs hold; ask it before looking, and nothing is missed."""
        return all(is_done(self._home, name) for name in self._names())

    def poll(self) -> list[pa.Table]:
        """What was committed since the last look, as far as one look takes it; stream by stream.

        Returns:
            Tables with the columns of the contract `changes`; one without rows where all that came is not told. None
            when nothing came.
        """
        parts = []
        for name in self._names():
            follower, outlet = self._of(name)
            rows = follower.poll()
            if len(rows):
                parts.append(outlet.passed(rows))
        return parts

    def _names(self) -> list[str]:
        return (
            [self._stream] if self._stream is not None else changed_streams(self._home)
        )

    def _of(self, name: str) -> tuple[Follower, Outlet]:
        if name not in self._followers:
            follower = Follower(self._home, name, after=self._after, query=self._query)
            self._followers[name] = (follower, Outlet(self._home, name))
        return self._followers[name]


def _greatest(rows: pa.Table) -> int:
    return int(pc.max(rows["position"]).as_py()) if len(rows) else -1


def follow(
    home: Home,
    stream: str | None = None,
    query: str | None = None,
    since: int | None = None,
    *,
    seconds: float | None = None,
    until_idle: bool = False,
    poll_s: float = POLL_S,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[pa.Table]:
    """Changes as they are committed, what is there already first.

    In each stream the order is that of (position, seq), also across tables; streams take turns. Of queries that give a
    stream of CQL it is what that stream has (see `Outlet`).

    Args:
        home: where the streams lie.
        stream: the stream; None: all of them, also those that get their first log meanwhile.
        query: only changes of this query.
        since: only changes behind this position of the log.
        seconds: end after this time.
        until_idle: end when the engines have done all that the logs hold, and their changes were given.
        poll_s: how long to wait before looking again.
        is_over: says whether it shall end, asked at each look.

    Yields:
        Tables with the columns of the contract `changes`, none of them empty, until its caller does not go on.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    following = Following(home, stream, query, since)
    end_s = None if seconds is None else time.monotonic() + seconds
    while not is_over():
        idle = until_idle and following.is_idle()
        parts = following.poll()
        yield from (rows for rows in parts if len(rows))
        if parts:
            continue
        if idle or (end_s is not None and time.monotonic() >= end_s):
            return
        time.sleep(
            poll_s if end_s is None else max(0.0, min(poll_s, end_s - time.monotonic()))
        )


def is_done(home: Home, stream: str) -> bool:
    """Whether the engine of a stream has committed everything that its log holds; true of a log without segments."""
    end = Log(home.log(stream)).end()
    status = read_status(home.stream(stream))
    return end == 0 or (status is not None and status.position >= position_of(end, 0))
