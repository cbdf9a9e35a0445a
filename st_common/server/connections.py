"""How many connections there may be, and how long one may say nothing: strangers never take what a home needs.

    descriptors of the process    | connections, `most` of them |  `kept` for files, pipes, engines  |

A connection that waits for a whole request gives way when a new one comes and there is no room: the one that has waited
longest goes. Where all are busy the new one is told to come again.
"""

import asyncio
import contextlib
import errno
import resource
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from st_common.errors import QueryError

_MOST_DESCRIPTORS, _MOST_CONNECTIONS = 65_536, 8192
_LEAST_KEPT, _MOST_KEPT = 32, 512
_REQUEST_S = 20.0
_STILL_S = 60.0
_SHORT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_SHORT_TEXTS = (
    "Too many open files",
    "can't start new thread",
    "can't spawn worker thread",
)
"""What Python's threads and delta-rs say, which have no number of the system."""
_NO_MEMORY = "Out of Memory Error"
"""What DuckDB says."""
_NAME = "fairway.connection"
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no second
_BODY = b'{"error": "too many connections", "hint": "try again in a second"}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What connections may take.

    Attributes:
        most: so many at once.
        step: so many are accepted before the others have been looked at.
        request_s: how long the head of a request may take, from the connection or from its first byte on.
        still_s: how long nothing may move while a body comes, or while an answer goes.
    """

    most: int
    step: int
    request_s: float = _REQUEST_S
    still_s: float = _STILL_S


def bounds_here() -> Bounds:
    """The bounds of this process, which takes as many descriptors as it may have; a quarter is kept for the home."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = _MOST_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        count = min(count, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    count, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = min(max(count // 4, _LEAST_KEPT), _MOST_KEPT)
    most = max(min(count - kept, _MOST_CONNECTIONS), 1)
    return Bounds(most=most, step=max(kept // 8, 1))


def is_short(error: BaseException | None) -> bool:
    """Whether something failed because this machine gives no more files, threads or memory, now: it may pass.

    A question that takes more memory than one may is wrong, and no shortness: a `QueryError`.
    """
    is_asked = False
    while error is not None:
        is_asked |= isinstance(error, QueryError)
        has_no_memory = isinstance(error, MemoryError) or _NO_MEMORY in str(error)
        if has_no_memory and not is_asked:
            return True
        if isinstance(error, OSError) and error.errno in _SHORT:
            return True
        if any(text in str(error) for text in _SHORT_TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False


class Gate:
    """The connections of a server; for one event loop.

    Args:
        bounds: what they may take.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._all: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}
        self._is_full = False

    def protocol(self, **how: Any) -> "Connection":
        """Makes a connection, as uvicorn asks for it."""
        return Connection(self, **how)

    def let_in(self, one: "Connection") -> bool:
        """Whether there is room for a connection; makes it where another one only waits."""
        if len(self._all) >= self.bounds.most:
            if not self._waiting:
                return False
            oldest = next(iter(self._waiting))
            self.forget(oldest)
            oldest.transport.abort()
        self._all.add(one)
        self._waiting[one] = None
        return True

    def forget(self, one: "Connection") -> None:
        """A connection is gone."""
        self._all.discard(one)
        self._waiting.pop(one, None)

    def is_busy(self, one: "Connection") -> None:
        """A whole request has come by a connection."""
        self._waiting.pop(one, None)

    def is_waiting(self, one: "Connection") -> None:
        """A connection waits for a whole request, as of now."""
        if one in self._all:
            self._waiting.pop(one, None)
            self._waiting[one] = None


class Connection(H11Protocol):
    """A connection that is closed when it says nothing for too long, or takes nothing.

    Args:
        gate: the connections of the server.
        how: what uvicorn gives.
    """

    def __init__(self, gate: Gate, **how: Any) -> None:
        super().__init__(**how)
        self._gate, self._bounds = gate, gate.bounds
        self._is_in = False
        self._waits: asyncio.TimerHandle | None = None
        self._sends: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is let in, or told that there is no room."""
        super().connection_made(transport)
        self._is_in = self._gate.let_in(self)
        if not self._is_in:
            transport.write(_FULL)
            transport.close()
            return
        self._wait(self._bounds.request_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._gate.forget(self)
        self._wait(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request has come."""
        if not self._is_in or self.transport.is_closing():
            return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """It waits for the next request: not for long, see uvicorn's `timeout_keep_alive`."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.cycle.response_complete:  # else the next request was there already
            self._gate.is_waiting(self)
        self._look()

    def pause_writing(self) -> None:
        """Whoever asked takes no more for now."""
        super().pause_writing()
        if self._sends is None:
            self._sends = self.loop.call_later(
                self._bounds.still_s, self.transport.abort
            )

    def resume_writing(self) -> None:
        """He takes more."""
        if self._sends is not None:
            self._sends.cancel()
            self._sends = None
        super().resume_writing()

    def _look(self) -> None:
        """How long what is missing may take, by what has come."""
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        if cycle is None or cycle.response_complete:  # a part of a head
            if self._waits is None:
                self._wait(self._bounds.request_s)
        elif cycle.more_body:
            self._wait(self._bounds.still_s)
        else:
            self._wait(None)
            self._gate.is_busy(self)

    def _wait(self, seconds: float | None) -> None:
        if self._waits is not None:
            self._waits.cancel()
        self._waits = None
        if seconds is not None:
            self._waits = self.loop.call_later(seconds, self._end_of_patience)

    def _end_of_patience(self) -> None:
        self._waits = None
        if self.flow.read_paused:  # what is missing waits for us
            self._wait(self._bounds.still_s)
        else:
            self.transport.abort()


def quiet_when_short(
    loop: asyncio.AbstractEventLoop, said: Callable[[str], None]
) -> None:
    """Has a loop say in one line that descriptors are lacking for connections, and not by a trace for each of them."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if is_short(context.get("exception")):
            said("no descriptors are left for connections: they wait")
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


def with_connection(app: ASGIApp) -> ASGIApp:
    """The application; what is below it can reach the connections of its requests."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        # Of uvicorn's: it lends nothing else that leads there.
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        if transport is not None:
            scope[_NAME] = transport
        await app(scope, receive, send)

    return answered


def hold_at_most(scope: Scope, size: int) -> None:
    """Has the system hold so many bytes that are not read, about; without a word it would hold some megabytes."""
    known = _socket_of(scope)
    if known is not None:
        known.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


def reset(scope: Scope) -> None:
    """Ends the connection of a request; what was not read is let go of, by the system too."""
    transport: asyncio.Transport | None = scope.get(_NAME)
    if transport is None:
        return
    known = _socket_of(scope)
    if known is not None:
        known.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    transport.abort()


def _socket_of(scope: Scope) -> socket.socket | None:
    transport: asyncio.Transport | None = scope.get(_NAME)
    known: socket.socket | None = (
        None if transport is None else transport.get_extra_info("socket")
    )
    return known
