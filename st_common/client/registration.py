"""A query that a client registered: its changes as they come, until it is dropped, replaced or closed."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.follow import LAST_SEQ, POLL_S, Follower
from st_common.answers.outlets import Outlet
from st_common.client.features import FeatureCache
from st_common.client.interface import QueryId, Subscription
from st_common.client.tuples import MultiTuple, multi_tuple
from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rows import AboutQuery
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.operations.status import read_status
from st_common.position import position_of, segment_of
from st_common.query.control import QueryRow

_LOOK_S = 0.5  # between two looks for a drop while nothing comes


class Registration(Subscription):
    """The changes of one version of a query, as they come: iterating blocks until the next one, `async for` awaits it.

    Of an ISTREAM query only what enters is given, of a DSTREAM query only what leaves, of an RSTREAM query what is in.

    The iteration ends when the query is dropped or replaced, by whomever, and all changes of this version were given;
    at once when it is closed or cancelled by its client. One thread iterates; any thread may close.

    Args:
        home: the home folder.
        row: the control row that registered the query.
        tags: read the kind and the tags of features that a join pairs with.
        poll_s: how long to wait before looking again.
    """

    def __init__(
        self, home: Home, row: QueryRow, *, tags: bool = False, poll_s: float = POLL_S
    ) -> None:
        assert row.plan is not None  # noqa: S101 - only rows that register have come here
        self.id = QueryId(row.name, row.version)
        self.stream = row.stream
        self.plan = row.plan
        self._home, self._row, self._poll_s = home, row, poll_s
        self._follower = Follower(
            home, row.stream, after=(row.position - 1, LAST_SEQ), query=row.name
        )
        self._outlet = Outlet(home, row.stream)
        self._features = (
            FeatureCache(home, row.plan.join.layer) if tags and row.plan.join else None
        )
        self._log, self._looked = Log(home.log(row.stream)), segment_of(row.position)
        self._end: int | None = None
        self._look_s = 0.0
        self._waiting: deque[MultiTuple] = deque()
        self._closed = threading.Event()
        self._at_end: Callable[[], None] | None = None

    @property
    def closed(self) -> bool:
        """Whether no more changes will come."""
        return self._closed.is_set()

    async def __aiter__(self) -> AsyncIterator[MultiTuple]:
        while not self.closed:
            change = await asyncio.to_thread(self.next, 0)
            if change is not None:
                yield change
            elif not self.closed:
                await asyncio.sleep(self._poll_s)

    def next(self, timeout_s: float | None = None) -> MultiTuple | None:
        """The next change, waiting for it.

        Args:
            timeout_s: how long to wait; 0 takes what is there; None: until one comes, or no more will.

        Returns:
            None when none came in this time, or when no more will come (see `closed`).
        """
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._closed.is_set():
            if self._waiting or self._fetched():
                return self._waiting.popleft()
            left_s = (
                self._poll_s
                if until_s is None
                else min(self._poll_s, until_s - time.monotonic())
            )
            if left_s <= 0:
                return None
            self._closed.wait(left_s)
        return None

    def at_end(self, act: Callable[[], None]) -> None:
        """Has something done once it is closed."""
        self._at_end = act

    def close(self) -> None:
        """Ends the iteration; the query stays registered, unless it is ephemeral."""
        self._closed.set()
        if self._at_end is not None:
            self._at_end()

    def _fetched(self) -> bool:
        """Whether something came; closes when nothing more will."""
        over = (
            self._is_over()
        )  # asked before looking: what was committed by then is seen
        rows = self._follower.poll()
        if over and not len(rows):
            self.close()
        self._waiting.extend(self._multi_tuples(rows))
        return bool(self._waiting)

    def _multi_tuples(self, rows: pa.Table) -> Iterator[MultiTuple]:
        passed = self._outlet.passed(rows)
        mine = passed.filter(pc.equal(passed["query_version"], self.id.version))
        features = (
            self._features.of(mine) if self._features is not None and len(mine) else {}
        )
        return (multi_tuple(row, self.plan, features) for row in mine.to_pylist())

    def _is_over(self) -> bool:
        """Whether the engine has committed the row that ended this version of the query."""
        if self._end is None and time.monotonic() >= self._look_s:
            self._end = self._ended_at()
            self._look_s = time.monotonic() + _LOOK_S
        if self._end is None:
            return False
        status = read_status(self._home.stream(self.stream))
        return status is not None and status.position > self._end

    def _ended_at(self) -> int | None:
        """The position of the control row that dropped or replaced the query; None while there is none."""
        for segment in self._log.control_segments(self._looked):
            rows = control_rows(self._log, segment)
            for number, row in chosen(rows, AboutQuery):
                position = position_of(segment.number, number)
                if position > self._row.position and row.query == self.id.name:
                    return position
            self._looked = segment.number + 1
        return None
