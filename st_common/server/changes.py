"""Changes as they happen, as server-sent events: each once, and on from the id of the last one that somebody had.

    table and journal -> [Follower] -> Hub, one for each stream -> a queue for each who listens

Who reads too slowly is let go when his queue is full; with `Last-Event-ID` he goes on where he was.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from st_common.delivery.message import messages
from st_common.errors import ConfigError
from st_common.home import Home
from st_common.serving.follow import FIRST, LAST_SEQ, Follower
from st_common.serving.follow import Place as At
from st_common.serving.outlets import Outlet

POLL_S = 0.01
MOST_WAITING = 50_000
"""Changes that wait for one who listens, at most."""


@dataclass(frozen=True, slots=True)
class Told:
    """One change, ready to be sent: where it stands, of which query, and as an event."""

    at: At
    query: str
    event: bytes


def told_of(rows: pa.Table, stream: str) -> list[Told]:
    """Changes as events: `id` is the id of the change, `data` what a delivery sends."""
    sent = messages(rows, stream)
    places = zip(
        sent.rows["position"].to_pylist(), sent.rows["seq"].to_pylist(), strict=True
    )
    return [
        Told(at, query, b"id: %s\nevent: change\ndata: %s\n\n" % (own.encode(), line))
        for at, query, own, line in zip(
            places, sent.queries, sent.ids, sent.lines, strict=True
        )
    ]


def place_of_id(text: str) -> At:
    """Where the change with an id stands: its last two parts are position and seq.

    Raises:
        ConfigError: it is no such id.
    """
    parts = text.rsplit("/", 2)
    if len(parts) != 3 or not (parts[1].isdigit() and parts[2].isdigit()):
        raise ConfigError(f"{text!r} is the id of no change")
    return int(parts[1]), int(parts[2])


@dataclass(eq=False)
class _Listener:
    """One who listens: to one query, or with None to all; what waits for him."""

    query: str | None
    waiting: deque[Told] = field(default_factory=deque)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)
    is_behind: bool = False

    def tell(self, told: Sequence[Told]) -> None:
        if len(self.waiting) + len(told) > MOST_WAITING:
            self.is_behind = True
            self.waiting.clear()
        else:
            self.waiting.extend(told)
        self.has_news.set()


class Hub:
    """Follows one stream while somebody listens, and tells each what he listens to; for one event loop.

    Args:
        home: the home folder.
        stream: the name of the stream.
    """

    def __init__(self, home: Home, stream: str) -> None:
        self._home, self._stream = home, stream
        self._listeners: set[_Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self._failed: Exception | None = None
        self._is_over = False

    async def listen(self, query: str | None, after: At | None) -> AsyncIterator[bytes]:
        """Events from a place on, or from now on; ends where he who listens is too slow.

        Args:
            query: only changes of this query; None: of all.
            after: the place of the last change that he had; None: only what comes from now on.

        Raises:
            FairwayError: changes behind that place were purged, or the stream cannot be followed any more.
        """
        mine = _Listener(query)
        await self._join(mine)
        try:
            last = FIRST
            if after is not None:
                async for earlier in self._before(query, after):
                    last = earlier[-1].at
                    yield b"".join(one.event for one in earlier)
            async for told in self._news(mine):
                news = [one.event for one in told if one.at > last]
                if news:
                    yield b"".join(news)
        finally:
            self._leave(mine)

    async def _news(self, mine: _Listener) -> AsyncIterator[Sequence[Told]]:
        """What is told to one who listens, until he is let go."""
        while not (mine.is_behind or self._is_over):
            await mine.has_news.wait()
            mine.has_news.clear()
            if self._failed is not None:
                raise self._failed
            told = list(mine.waiting)
            mine.waiting.clear()
            yield told

    def close(self) -> None:
        """Lets all go who listen."""
        self._is_over = True
        for one in self._listeners:
            one.has_news.set()

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    async def _join(self, listener: _Listener) -> None:
        """From now on he is told; what is committed before is not."""
        self._listeners.add(listener)
        if self._task is None:
            self._begun.clear()
            self._failed = None
            self._task = asyncio.create_task(self._follow())
        await self._begun.wait()

    def _leave(self, listener: _Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _before(self, query: str | None, after: At) -> AsyncIterator[list[Told]]:
        """What is committed behind a place by now."""
        follower = await asyncio.to_thread(
            Follower, self._home, self._stream, after=after, query=query
        )
        outlet = Outlet(self._home, self._stream)
        while True:
            rows = await asyncio.to_thread(follower.poll)
            if not len(rows):
                return
            passed = await asyncio.to_thread(outlet.passed, rows)
            told = await asyncio.to_thread(told_of, passed, self._stream)
            if told:
                yield told

    async def _follow(self) -> None:
        """Tells what is committed, as it is."""
        try:
            follower = await asyncio.to_thread(Follower, self._home, self._stream)
            outlet = Outlet(self._home, self._stream)
            await asyncio.to_thread(follower.skip)
            self._begun.set()
            while True:
                rows = await asyncio.to_thread(follower.poll)
                if len(rows):
                    passed = await asyncio.to_thread(outlet.passed, rows)
                    self._tell(await asyncio.to_thread(told_of, passed, self._stream))
                else:
                    await asyncio.sleep(POLL_S)
        except Exception as error:  # noqa: BLE001 - it is told to all who listen
            self._failed = error
            self._begun.set()
            for one in self._listeners:
                one.has_news.set()

    def _tell(self, told: Sequence[Told]) -> None:
        by_query: dict[str, list[Told]] = {}
        for one in told:
            by_query.setdefault(one.query, []).append(one)
        for listener in self._listeners:
            mine = told if listener.query is None else by_query.get(listener.query, ())
            if mine:
                listener.tell(mine)


class Hubs:
    """The hubs of all streams.

    Args:
        home: the home folder.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[str, Hub] = {}

    def of(self, stream: str) -> Hub:
        """The hub of a stream."""
        return self._known.setdefault(stream, Hub(self._home, stream))

    def close(self) -> None:
        """Lets all go who listen to any stream."""
        for hub in self._known.values():
            hub.close()

    @property
    def listeners(self) -> dict[str, int]:
        """How many listen, by stream."""
        return {name: hub.listeners for name, hub in self._known.items()}


def after_position(position: int) -> At:
    """The place behind all changes of a position."""
    return position, LAST_SEQ
