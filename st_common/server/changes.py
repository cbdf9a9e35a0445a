"""Changes as they happen, as server-sent events: each once, and on from the id of the last one that somebody had.

    table and journal -> [Follower] -> Hub, one for each stream -> what waits for each who listens -> his connection

What one does harms no other: who reads too slowly is let go, with a reason, when too much waits for him, and cut off
when his connection takes nothing any more. A look at the stream that fails is made again, from where the last one was.
"""

import asyncio
import json
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from sse_starlette import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

from st_common.answers.follow import FIRST, LAST_SEQ, Follower
from st_common.answers.follow import Place as At
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.delivery.message import messages
from st_common.errors import FairwayError, StorageError, TransientError
from st_common.server.connections import hold_at_most, reset
from st_common.server.event_text import CHANGE, END, comment, event
from st_common.storage import failed

POLL_S = 0.01
MOST_WAITING = 50_000
"""Changes that wait for one who listens, at most; what is told at once to one who has read all may be more."""
MOST_WAITING_BYTES = 32 << 20
STALLED_S = 20.0
"""A connection that takes nothing for so long is cut off."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
JOIN_S = 5.0
"""So long who comes waits for a stream that cannot be followed just now."""
_PING_S = 15
_PIECE_BYTES = 1 << 16
_HELD_BYTES = 1 << 18
"""Bytes that the system holds for one who listens, about."""
_SLOW, _STALLED, _PURGED = "slow", "stalled", "purged"
_WHY = {
    _SLOW: "too many changes waited for this reader",
    _PURGED: "changes that were not told yet were purged",
}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Told:
    """One change, ready to be sent: where it stands, of which query, and as an event."""

    at: At
    query: str
    event: bytes


def told_of(rows: pa.Table, stream: str) -> list[Told]:
    """Changes as events: `id` is the place of the change, `data` what a delivery sends."""
    sent = messages(rows, stream)
    places = zip(
        sent.rows["position"].to_pylist(), sent.rows["seq"].to_pylist(), strict=True
    )
    return [
        Told(at, query, event(CHANGE, line, at))
        for at, query, line in zip(places, sent.queries, sent.lines, strict=True)
    ]


@dataclass(eq=False)
class Listener:
    """One who listens: to one query, or with None to all; what waits for him, in parts that he shares with others.

    Attributes:
        query: the name of the query.
        after: behind which change he begins; None: with what is told from now on.
        joined: the place up to which the hub had told when he came; None: he begins there.
        begins: what is told first.
        over: why nothing more is told to him; None: more may come.
    """

    query: str | None
    after: At | None = None
    joined: At | None = None
    begins: bytes = b""
    over: str | None = None
    waiting: deque[Sequence[Told]] = field(default_factory=deque)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)
    _count: int = 0
    _bytes: int = 0

    def tell(self, told: Sequence[Told], size: int) -> bool:
        """Has some changes wait; whether there was room.

        Args:
            told: the changes.
            size: their bytes.
        """
        is_full = (
            self._count + len(told) > MOST_WAITING
            or self._bytes + size > MOST_WAITING_BYTES
        )
        if self.waiting and is_full:
            return False
        self.waiting.append(told)
        self._count += len(told)
        self._bytes += size
        self.has_news.set()
        return True

    def taken(self) -> Sequence[Sequence[Told]]:
        """What waits, which does not any more."""
        taken = list(self.waiting)
        self.waiting.clear()
        self._count = self._bytes = 0
        return taken

    async def pause(self, seconds: float) -> None:
        """Waits for so long, or until there is news, or it is over."""
        self.has_news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.has_news.wait()

    def end(self, why: str) -> None:
        """Nothing more is told; what waits is let go."""
        self.over = why
        self.taken()
        self.has_news.set()


@dataclass
class HubState:
    """How a hub is.

    Attributes:
        looked_s: when the last look that succeeded ended, by the monotonic clock; None: there was none.
        failures: looks that failed.
        error: why the last one did; None: it did not.
        dropped: how many who listened were let go, by the reason.
    """

    looked_s: float | None = None
    failures: int = 0
    error: str | None = None
    dropped: Counter[str] = field(default_factory=Counter)


class Hub:
    """Follows one stream while somebody listens, and tells each what he listens to; for one event loop.

    Args:
        home: the home folder.
        stream: the name of the stream.
    """

    def __init__(self, home: Home, stream: str) -> None:
        self._home, self._stream = home, stream
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_following = asyncio.Event()
        self._place: At | None = None
        self._is_over = False
        self.state = HubState()

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    @property
    def age_s(self) -> float | None:
        """How old the last look that succeeded is; None: nobody listens."""
        if self._task is None or self.state.looked_s is None:
            return None
        return time.monotonic() - self.state.looked_s

    async def join(self, query: str | None, after: At | None) -> Listener:
        """One who listens from now on, until he leaves; what is committed before is not told to him.

        Args:
            query: only changes of this query; None: of all.
            after: the place of the last change that he had; None: only what comes from now on.

        Raises:
            FairwayError: changes behind that place were purged.
            TransientError: the stream cannot be followed just now.
        """
        mine = Listener(query, after)
        self._listeners.add(mine)
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            async with asyncio.timeout(JOIN_S):
                await self._is_following.wait()
            if after is not None:
                mine.joined = self._place
                await asyncio.to_thread(Follower, self._home, self._stream, after=after)
        except TimeoutError:
            self.leave(mine)
            why = self.state.error or "it takes too long"
            raise TransientError(
                f"the changes of {self._stream} cannot be followed: {why}",
                hint="try again",
            ) from None
        except BaseException as error:
            self.leave(mine)
            if isinstance(error, OSError):
                at = Path(error.filename or self._home.root)
                raise failed(error, at) from error
            raise
        if after is None:
            mine.taken()  # his place says that he has had what was told meanwhile
        here = after or self._place
        is_known = here is not None and here[0] >= 0
        mine.begins = comment("listening", here if is_known else None)
        return mine

    def leave(self, listener: Listener) -> None:
        """Nothing more is told to him; without anybody the stream is not followed."""
        listener.end("he left")
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = self._place = self.state.looked_s = None
            self._is_following.clear()

    async def told(self, mine: Listener) -> AsyncIterator[bytes]:
        """Events for one who has joined, in pieces that a connection takes; ends where nothing more is told to him."""
        yield mine.begins
        last = mine.after or FIRST  # an engine that starts again tells it again
        if mine.after is not None:
            async for earlier in self._before(mine, mine.after):
                last = earlier[-1].at
                for piece in _pieces(earlier):
                    yield piece
        async for piece in self._news(mine, last):
            yield piece
        if mine.over in _WHY:
            why = {"error": _WHY[mine.over], "hint": "resume after the last change"}
            yield event(END, json.dumps(why).encode())

    async def _news(self, mine: Listener, last: At) -> AsyncIterator[bytes]:
        """What is told to one who listens, behind what he was told before, until he is let go."""
        while mine.over is None and not self._is_over:
            await mine.has_news.wait()
            mine.has_news.clear()
            news = [one for some in mine.taken() for one in some if one.at > last]
            for piece in _pieces(news):
                if mine.over is None:
                    yield piece

    def drop(self, listener: Listener, why: str) -> None:
        """Lets one go who harms others, or cannot go on; it is counted, and he is told where he still listens."""
        if listener.over is not None:
            return
        self.state.dropped[why] += 1
        count = self.state.dropped[why]
        if not count & (count - 1):  # the first, the second, the fourth, ..
            text = "%s: one who listened was let go (%s), %d by now"
            _LOG.warning(text, self._stream, why, count)
        listener.end(why)

    def close(self) -> None:
        """Lets all go who listen."""
        self._is_over = True
        for one in self._listeners:
            one.has_news.set()

    async def _before(self, mine: Listener, after: At) -> AsyncIterator[list[Told]]:
        """What is committed behind a place, up to where the hub had told when he came, or further.

        An engine that starts again takes back what it has told and not committed, and tells it once more. The hub has
        told that and passes over it, so whoever comes in between waits for it here.
        """
        follower = await asyncio.to_thread(
            Follower, self._home, self._stream, after=after, query=mine.query
        )
        outlet, pause_s = Outlet(self._home, self._stream), FIRST_PAUSE_S
        while mine.over is None and not self._is_over:
            rows = await asyncio.to_thread(follower.poll)
            if len(rows):
                passed = await asyncio.to_thread(outlet.passed, rows)
                told = await asyncio.to_thread(told_of, passed, self._stream)
                if told:
                    yield told
            elif follower.place >= (mine.joined or FIRST):
                break
            else:
                await mine.pause(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        mine.has_news.set()  # there may be some: a pause has cleared it

    async def _follow(self) -> None:
        """Tells what is committed, as it is; after a look that failed from where the one before was."""
        pause_s = FIRST_PAUSE_S
        looking: _Looking | None = None
        while True:
            try:
                if looking is None:
                    looking = await asyncio.to_thread(
                        _Looking, self._home, self._stream, self._place
                    )
                told = await asyncio.to_thread(looking.look)
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                looking = None
                self._failed(error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            pause_s, self._place = FIRST_PAUSE_S, looking.place
            self.state.looked_s, self.state.error = time.monotonic(), None
            self._is_following.set()
            if told is None:
                await asyncio.sleep(POLL_S)
            else:
                self._tell(told)

    def _failed(self, error: Exception) -> None:
        """Notes that a look failed; who cannot go on from where it was is let go."""
        self._is_following.clear()
        state = self.state
        state.failures += 1
        if state.error is None:
            _LOG.warning(
                "%s: changes cannot be followed: %s",
                self._stream,
                error,
                exc_info=error,
            )
        state.error = str(error) or type(error).__name__
        may_pass = not isinstance(error, FairwayError) or isinstance(
            error, (StorageError, TransientError)
        )
        if self._place is not None and not may_pass:
            self._place = None  # what is behind it is gone
            for one in tuple(self._listeners):
                self.drop(one, _PURGED)

    def _tell(self, told: Sequence[Told]) -> None:
        by_query: dict[str, list[Told]] = {}
        for one in told:
            by_query.setdefault(one.query, []).append(one)
        sizes = {
            name: sum(len(one.event) for one in some) for name, some in by_query.items()
        }
        size = sum(sizes.values())
        for listener in self._listeners:
            name = listener.query
            mine = told if name is None else by_query.get(name, ())
            if mine and listener.over is None:
                has_room = listener.tell(mine, size if name is None else sizes[name])
                if not has_room:
                    self.drop(listener, _SLOW)


class _Looking:
    """Looks at what is committed behind a place; None: behind what is committed when it begins."""

    def __init__(self, home: Home, stream: str, after: At | None) -> None:
        self._stream, self._outlet = stream, Outlet(home, stream)
        if after is None:
            self._follower = Follower(home, stream)
            self._follower.skip()
        else:
            self._follower = Follower(home, stream, after=after)

    @property
    def place(self) -> At:
        """The place up to which it has looked."""
        return self._follower.place

    def look(self) -> Sequence[Told] | None:
        """What came since the last look; None: nothing."""
        rows = self._follower.poll()
        if not len(rows):
            return None
        return told_of(self._outlet.passed(rows), self._stream)


def _pieces(told: Sequence[Told]) -> Iterator[bytes]:
    """Events in pieces of some size: a connection holds one of them beside what the system holds."""
    some: list[bytes] = []
    size = 0
    for one in told:
        some.append(one.event)
        size += len(one.event)
        if size >= _PIECE_BYTES:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)


class EventsReply(EventSourceResponse):
    """What one who has joined a hub is told; a connection that takes nothing for some time is cut off.

    Args:
        hub: the hub.
        listener: who has joined it.
    """

    def __init__(self, hub: Hub, listener: Listener) -> None:
        super().__init__(hub.told(listener), ping=_PING_S)
        self._hub, self._listener, self._is_cut = hub, listener, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tells until he goes, or is let go."""

        async def sent(message: Message) -> None:
            try:
                async with asyncio.timeout(STALLED_S):
                    await send(message)
            except TimeoutError:
                self._hub.drop(self._listener, _STALLED)
                self._is_cut = True
                reset(scope)
                raise

        hold_at_most(scope, _HELD_BYTES)
        try:
            await super().__call__(scope, receive, sent)
        except Exception:  # of some that may all have waited for the connection
            if not self._is_cut:
                raise
            await asyncio.sleep(0.01)  # the server notices that he is gone
        finally:
            self._hub.leave(self._listener)


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

    def items(self) -> Iterator[tuple[str, Hub]]:
        """Each stream to which somebody has listened, with its hub."""
        yield from tuple(self._known.items())

    def status(self) -> list[dict[str, Any]]:
        """How each of them is, as JSON values."""
        return [
            {
                "stream": name,
                "listeners": hub.listeners,
                "age_s": None if hub.age_s is None else round(hub.age_s, 3),
                "failures": hub.state.failures,
                "error": hub.state.error,
                "dropped": dict(hub.state.dropped),
            }
            for name, hub in self.items()
        ]


def after_position(position: int) -> At:
    """The place behind all changes of a position."""
    return position, LAST_SEQ
