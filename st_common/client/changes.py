"""The changes of answers as they are committed, for programs that wait and for programs of asyncio."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from st_common.answers.follow import POLL_S, Following
from st_common.config.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of an answer.

    Attributes:
        query: the name of the query.
        object: the object's id, or of an aggregate the group's text.
        partner: the feature or the other object that it is together with; None without.
        sign: +1 it entered the answer, -1 it left, 0 it is still there with another value, or an event of a fence.
        cause: why, such as `enter`, `leave`, `gone`.
        event_ts: when, in event time (UTC).
        position: its place in the stream's log; with `seq` what to go on behind.
        seq: its number among the changes of that place.
        value: of an aggregate, or what else the query gives with a member; None without.
        fields: the columns that the query selects, by name.
        x: longitude or east of the object then, whatever the sign: where it was by the fix that caused the change, else
            by its last one; None of groups, and where nothing is known.
        y: latitude or north; see `x`.
    """

    query: str
    object: str
    partner: str | None
    sign: int
    cause: str
    event_ts: datetime
    position: int
    seq: int
    value: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    x: float | None = None
    y: float | None = None


class Changes:
    """Changes in their order, first those that are there already: `for` blocks until the next, `async for` awaits it.

    Args:
        home: the home folder.
        query: only changes of this query; None: of all.
        stream: only of queries on this stream; None: of all.
        since: only behind this position; None: all.
        seconds: ends after this time; None: never by itself.
        until_idle: ends when engines have done all that the logs hold.
        poll_s: how long to wait before looking again.

    Raises:
        QueryError: no query was ever registered by that name.
    """

    def __init__(
        self,
        home: Home,
        query: str | None = None,
        *,
        stream: str | None = None,
        since: int | None = None,
        seconds: float | None = None,
        until_idle: bool = False,
        poll_s: float = POLL_S,
    ) -> None:
        self._following = Following(home, stream, query, since)
        self._end_s = None if seconds is None else time.monotonic() + seconds
        self._until_idle, self._poll_s = until_idle, poll_s
        self._waiting: deque[Change] = deque()
        self._is_over = False

    def __iter__(self) -> Iterator[Change]:
        while self._has_next():
            yield from self._given()
            if not self._is_over:
                time.sleep(self._poll_s)

    async def __aiter__(self) -> AsyncIterator[Change]:
        while await asyncio.to_thread(self._has_next):
            for change in self._given():
                yield change
            if not self._is_over:
                await asyncio.sleep(self._poll_s)

    def close(self) -> None:
        """Ends the iteration; any thread may do it."""
        self._is_over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _has_next(self) -> bool:
        """Looks once for more; whether there is something to give, or something may still come."""
        if self._is_over:
            return False
        # Asked before looking: what was committed by then is seen.
        is_idle = self._until_idle and self._following.is_idle()
        parts = self._following.poll()
        for part in parts:
            self._waiting.extend(map(change_of, part.to_pylist()))
        is_late = self._end_s is not None and time.monotonic() >= self._end_s
        if not parts and (is_idle or is_late):
            self._is_over = True
        return True

    def _given(self) -> Iterator[Change]:
        while self._waiting:
            yield self._waiting.popleft()


def change_of(row: Mapping[str, Any]) -> Change:
    """A row of the table `changes` as a change."""
    plain = {name: row[name] for name in Change.__slots__ if name != "fields"}
    return Change(**plain, fields=json.loads(row["fields"]) if row["fields"] else {})
