"""Requests that are answered in processes of their own, so that none takes what those who post need.

    server -> [head, body] -> python -m st_common.processes.answer -> [head, body] -> server

A process has a bound on its memory, and is killed when an answer takes too long or nobody waits for it any more: a
function of SQL can take all memory of a machine, and cannot be interrupted while it does. Who registers asks the server
before he writes, and is not killed from then on:

    server <- [WRITES, ""] <- process     all is known; nothing is written
    server -> [{}, ""]     -> process     it may, and has WRITING_S for it
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import pickle
import signal
import struct
import sys
import time
from asyncio import FIRST_COMPLETED
from asyncio.subprocess import PIPE, Process
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, get_args

from starlette.responses import Response

from st_common.config.operations import Bounds, Kind, ServerSettings, operations_of
from st_common.errors import ConfigError, FairwayError, QueryError, TransientError
from st_common.server.endpoint import Endpoint
from st_common.server.installation import Installation
from st_common.server.page.frame import plane_of
from st_common.server.parameters import Parameters

LENGTH = struct.Struct("<II")
"""Bytes of a head, which is JSON, and of the body behind it."""
_PROGRAM = "st_common.processes.answer"
_HEADERS = ("accept", "if-none-match")
_MOST_WAITING = 50
_LOOK_S = 0.25
_NICE = 10
"""Ten processes, as many as may compute at once by default, have the share of one that has no such value."""
_START_S = 60.0
_END_S = 10.0
_LOOK_AT_END = os.WEXITED | os.WNOHANG | os.WNOWAIT
_BY_OTHERS = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP)
"""What ends a process from outside; who gets no memory ends by another signal, or with 1."""
_ANSWERS = 500
"""Of one process: what it has gathered goes with it."""
_IDLE_S = 120.0
"""A process that had nothing to do for so long is ended."""
WRITES = "writes"
"""A head with it asks whether what was found may be written."""
WRITING_S = 60.0


def packet(head: Mapping[str, Any], body: bytes) -> bytes:
    """A head and a body, as processes send them."""
    text = json.dumps(head).encode()
    return b"".join((LENGTH.pack(len(text), len(body)), text, body))


class Apart:
    """The processes of a server; for one event loop.

    Args:
        place: where the server works.
    """

    def __init__(self, place: Installation) -> None:
        self._place = place
        self._all: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._rooms = {kind: _Room() for kind in get_args(Kind)}

    async def answer(
        self,
        one: Endpoint,
        kind: Kind,
        asked: Parameters,
        given: Mapping[str, str],
        is_gone: Callable[[], Awaitable[bool]],
    ) -> Response:
        """The answer to a request.

        Args:
            one: what is asked for.
            kind: whose bounds it has.
            asked: the request.
            given: its parameters as they came.
            is_gone: tells whether nobody waits any more.

        Raises:
            QueryError: it takes too long, or too much memory.
            TransientError: too many wait, no process can be started, or one ended while it wrote.
        """
        limits = await asyncio.to_thread(
            operations_of, self._place.conf, "server", ServerSettings
        )
        bounds = limits.bounds(kind)
        head = {
            "method": one.method,
            "path": one.path,
            "parts": dict(asked.path),
            "params": dict(given),
            "media": asked.media,
            "base": asked.base,
            "headers": {name: asked.headers.get(name, "") for name in _HEADERS},
            "seconds": bounds.seconds,
            "last_good": await asyncio.to_thread(_last_good, self._place),
            "plane": await asyncio.to_thread(_plane, asked) if one.is_on_map else None,
        }
        room = self._rooms[kind]
        async with room.place(bounds), self._worker(bounds) as worker:
            return await _answered(worker, packet(head, asked.body), bounds, is_gone)

    async def rest(self) -> None:
        """Ends what had nothing to do for a while, but for one, which answers the next at once."""
        before_s = time.monotonic() - _IDLE_S
        for one in [one for one in self._idle[:-1] if one.idle_since_s < before_s]:
            self._idle.remove(one)
            await self._end(one)

    async def close(self) -> None:
        """Ends all processes."""
        for one in list(self._all):
            await one.end()

    @contextlib.asynccontextmanager
    async def _worker(self, bounds: Bounds) -> AsyncIterator["_Worker"]:
        """A process that answers nobody else meanwhile."""
        for one in [one for one in self._idle if one.has_ended]:
            self._idle.remove(one)
            await self._end(one)
        mine = [one for one in self._idle if one.memory_mb == bounds.memory_mb]
        if mine:
            worker = mine[-1]
            self._idle.remove(worker)
        else:
            worker = await _Worker.started(self._place, bounds.memory_mb)
            self._all.add(worker)
        try:
            yield worker
        finally:
            if worker.is_free and worker.answers < _ANSWERS:
                worker.idle_since_s = time.monotonic()
                self._idle.append(worker)
            else:
                await self._end(worker)

    async def _end(self, worker: "_Worker") -> None:
        await worker.end()
        self._all.discard(worker)


class _Room:
    """Lets so many requests of a kind be answered at once; others wait."""

    def __init__(self) -> None:
        self._busy: set[object] = set()
        self._has_place = asyncio.Condition()
        self._waiting = 0

    @contextlib.asynccontextmanager
    async def place(self, bounds: Bounds) -> AsyncIterator[None]:
        """Waits until fewer are answered than may be at once.

        Raises:
            TransientError: too many wait, or it takes too long.
        """
        full = TransientError(
            "too many requests of this kind at once", hint="try again later"
        )
        if self._waiting >= _MOST_WAITING:
            raise full
        mark = object()
        self._waiting += 1
        try:
            async with asyncio.timeout(bounds.seconds), self._has_place:
                await self._has_place.wait_for(lambda: len(self._busy) < bounds.at_once)
                self._busy.add(mark)
        except TimeoutError:
            raise full from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._busy.discard(mark)
            async with self._has_place:
                self._has_place.notify()


class _Worker:
    """One process."""

    def __init__(self, process: Process, memory_mb: int) -> None:
        self._process = process
        self.memory_mb = memory_mb
        self.is_free = True
        self.is_writing = False
        self.answers = 0
        self.idle_since_s = 0.0

    @property
    def has_ended(self) -> bool:
        """Whether the system, or somebody, has killed it while it had nothing to do."""
        try:
            found = os.waitid(os.P_PID, self._process.pid, _LOOK_AT_END)
        except ChildProcessError:  # asyncio has taken note of it
            return True
        return found is not None

    async def result(self) -> int:
        """How a process ended that answers no more: its exit code, or minus the signal that ended it."""
        async with asyncio.timeout(_END_S):
            return await self._process.wait()

    @classmethod
    async def started(cls, place: Installation, memory_mb: int) -> "_Worker":
        """A process that is ready.

        Raises:
            TransientError: it ended before it was.
        """
        command = [sys.executable, "-m", _PROGRAM, "--memory-mb", str(memory_mb)]
        command += ["--home", str(place.home.root), "--conf", str(place.conf)]
        command += ["--engine", place.engine] if place.engine else []
        for name in place.only:
            command += ["--stream", name]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE
        )
        with contextlib.suppress(OSError):  # it has ended, and nothing is read from it
            os.setpriority(
                os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICE
            )
        worker = cls(process, memory_mb)
        try:
            async with asyncio.timeout(_START_S):
                await worker._read()
        except (TimeoutError, asyncio.IncompleteReadError):
            await worker.end()
            wrong = "the process that answers cannot be started"
            raise TransientError(wrong, hint="try again") from None
        return worker

    async def ask(self, question: bytes) -> tuple[dict[str, Any], bytes]:
        """What it answers; on the way it may say that it writes from now on.

        Raises:
            asyncio.IncompleteReadError: it ended before.
            OSError: it had ended already.
        """
        self.is_free = self.is_writing = False
        await self._send(question)
        head, body = await self._read()
        if WRITES in head:
            self.is_writing = True
            await self._send(packet({}, b""))
            head, body = await self._read()
        self.is_free, self.answers = True, self.answers + 1
        return head, body

    async def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(message)
        await self._process.stdin.drain()

    async def _read(self) -> tuple[dict[str, Any], bytes]:
        pipe = self._process.stdout
        assert pipe is not None  # noqa: S101 - it is one
        head, body = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
        return json.loads(await pipe.readexactly(head)), await pipe.readexactly(body)

    async def end(self) -> None:
        """Ends it at once."""
        self.is_free = False
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


async def _answered(
    worker: _Worker,
    question: bytes,
    bounds: Bounds,
    is_gone: Callable[[], Awaitable[bool]],
) -> Response:
    """What a process answers; it is killed where that takes too long, or nobody waits any more, unless it writes."""
    asking = asyncio.create_task(worker.ask(question))
    leaving = asyncio.create_task(_gone(is_gone))
    try:
        await asyncio.wait(
            (asking, leaving), timeout=bounds.seconds, return_when=FIRST_COMPLETED
        )
        if asking.done() or worker.is_writing:
            head, body = await asking
            return Response(body, head["status"], head["headers"], head["media"])
    except (asyncio.IncompleteReadError, OSError):
        raise await _ended(worker, bounds) from None
    finally:
        for task in (asking, leaving):
            task.cancel()
        await asyncio.gather(asking, leaving, return_exceptions=True)
    if leaving.done() and not leaving.cancelled():
        raise TransientError("nobody waits for the answer", hint="")
    raise QueryError(
        f"{_WHAT[bounds.kind]} takes longer than {bounds.seconds:g} s{_UNDONE[bounds.kind]}",
        hint=f"{_LESS[bounds.kind]}; {bounds.kind}_s of [server] in operations.toml",
    )


_WHAT: Mapping[Kind, str] = {
    "ask": "the answer",
    "read": "the answer",
    "check": "the answer",
    "register": "the registration",
}
_UNDONE: Mapping[Kind, str] = {
    "ask": "",
    "read": "",
    "check": "",
    "register": ": nothing was registered",
}
_LESS: Mapping[Kind, str] = {
    "ask": "ask for less",
    "read": "ask for less, or by the command line",
    "check": "ask for less, or run it by the command line",
    "register": "register less at once, or by `fairway query register`",
}


async def _ended(worker: _Worker, bounds: Bounds) -> FairwayError:
    """Why a process ended before it answered."""
    if worker.is_writing:
        return TransientError(
            "the registration was ended while it was written",
            hint="GET /v1/queries says what is registered",
        )
    if (code := await worker.result()) in _BY_OTHERS:
        return TransientError(
            f"the process that answered was ended by signal {-code}",
            hint="try again; where it goes on like this, the machine lacks memory",
        )
    return QueryError(
        f"{_WHAT[bounds.kind]} takes more than {bounds.memory_mb:,} MB of memory{_UNDONE[bounds.kind]}",
        hint=f"{_LESS[bounds.kind]}; {bounds.memory_key} of [server] in operations.toml",
    )


async def _gone(is_gone: Callable[[], Awaitable[bool]]) -> None:
    """Returns when nobody waits any more."""
    while not await is_gone():
        await asyncio.sleep(_LOOK_S)


def _last_good(place: Installation) -> str | None:
    """What the settings were, for who cannot read it from their file; None where it can be read."""
    for load in (place.streams, place.settings):
        with contextlib.suppress(ConfigError):  # it never could, and who asks is told
            load()
    if place.last_good.error is None:
        return None
    return b64encode(pickle.dumps(place.last_good)).decode()


def _plane(asked: Parameters) -> dict[str, Any] | None:
    """Where the map shows planes, for who does not see what is live; None where no stream lies in one."""
    if not any(stream.space.is_flat for stream in asked.place.streams().values()):
        return None
    return dataclasses.asdict(plane_of(asked))
