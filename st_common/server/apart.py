"""Questions that are answered in processes of their own, so that none takes what those who post need.

    server -> [head, body] -> python -m st_common.processes.answer -> [head, body] -> server

A process has a bound on its memory, and is killed when an answer takes too long or nobody waits for it any more: a
function of SQL can take all memory of a machine, and cannot be interrupted while it does.
"""

import asyncio
import contextlib
import dataclasses
import json
import struct
import sys
from asyncio import FIRST_COMPLETED
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import Response

from st_common.errors import QueryError, TransientError
from st_common.server.asked import Asked
from st_common.server.endpoint import Endpoint
from st_common.server.page.frame import plane_of
from st_common.server.place import Place
from st_common.server.settings import ServerSettings, server_settings

LENGTH = struct.Struct("<II")
"""Bytes of a head, which is JSON, and of the body behind it."""
_PROGRAM = "st_common.processes.answer"
_MOST_WAITING = 50
_LOOK_S = 0.25
_START_S = 60.0
_ANSWERS = 500
"""Of one process: what it has gathered goes with it."""


def packet(head: Mapping[str, Any], body: bytes) -> bytes:
    """A head and a body, as processes send them."""
    text = json.dumps(head).encode()
    return b"".join((LENGTH.pack(len(text), len(body)), text, body))


class Apart:
    """The processes of a server; for one event loop.

    Args:
        place: where the server works.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._all: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._busy: set[object] = set()
        self._has_room = asyncio.Condition()
        self._waiting = 0

    async def answer(
        self,
        one: Endpoint,
        asked: Asked,
        given: Mapping[str, str],
        is_gone: Callable[[], Awaitable[bool]],
    ) -> Response:
        """The answer to a request.

        Args:
            one: what is asked for.
            asked: the request.
            given: its parameters as they came.
            is_gone: tells whether nobody waits any more.

        Raises:
            QueryError: it takes too long, or too much memory.
            TransientError: too many wait, or no process can be started.
        """
        limits = await asyncio.to_thread(server_settings, self._place.conf)
        head = {
            "method": one.method,
            "path": one.path,
            "parts": dict(asked.path),
            "params": dict(given),
            "media": asked.media,
            "accept": asked.headers.get("accept", ""),
            "seconds": limits.ask_s,
            "plane": await asyncio.to_thread(_plane, asked) if one.is_on_map else None,
        }
        async with self._room(limits), self._worker(limits) as worker:
            return await _answered(worker, packet(head, asked.body), limits, is_gone)

    async def close(self) -> None:
        """Ends all processes."""
        for one in list(self._all):
            await one.end()

    @contextlib.asynccontextmanager
    async def _room(self, limits: ServerSettings) -> AsyncIterator[None]:
        """Waits until fewer are answered than may be at once.

        Raises:
            TransientError: too many wait, or it takes too long.
        """
        full = TransientError("too many questions at once", hint="try again later")
        if self._waiting >= _MOST_WAITING:
            raise full
        mark = object()
        self._waiting += 1
        try:
            async with asyncio.timeout(limits.ask_s), self._has_room:
                await self._has_room.wait_for(
                    lambda: len(self._busy) < limits.ask_at_once
                )
                self._busy.add(mark)
        except TimeoutError:
            raise full from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._busy.discard(mark)
            async with self._has_room:
                self._has_room.notify()

    @contextlib.asynccontextmanager
    async def _worker(self, limits: ServerSettings) -> AsyncIterator["_Worker"]:
        """A process that answers nobody else meanwhile."""
        mine = [one for one in self._idle if one.memory_mb == limits.ask_memory_mb]
        if mine:
            worker = mine[-1]
            self._idle.remove(worker)
        else:
            worker = await _Worker.started(self._place, limits.ask_memory_mb)
            self._all.add(worker)
        try:
            yield worker
        finally:
            if worker.is_free and worker.answers < _ANSWERS:
                self._idle.append(worker)
            else:
                await worker.end()
                self._all.discard(worker)


class _Worker:
    """One process."""

    def __init__(self, process: Process, memory_mb: int) -> None:
        self._process = process
        self.memory_mb = memory_mb
        self.is_free = True
        self.answers = 0

    @classmethod
    async def started(cls, place: Place, memory_mb: int) -> "_Worker":
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
        """What it answers.

        Raises:
            asyncio.IncompleteReadError: it ended before.
            OSError: it had ended already.
        """
        self.is_free = False
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(question)
        await self._process.stdin.drain()
        answer = await self._read()
        self.is_free, self.answers = True, self.answers + 1
        return answer

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
    limits: ServerSettings,
    is_gone: Callable[[], Awaitable[bool]],
) -> Response:
    """What a process answers; it is killed where that takes too long, or nobody waits any more."""
    asking = asyncio.create_task(worker.ask(question))
    leaving = asyncio.create_task(_gone(is_gone))
    try:
        await asyncio.wait(
            (asking, leaving), timeout=limits.ask_s, return_when=FIRST_COMPLETED
        )
        if asking.done():
            head, body = await asking
            return Response(body, head["status"], head["headers"], head["media"])
    except (asyncio.IncompleteReadError, OSError):
        raise QueryError(
            f"the answer takes more than {limits.ask_memory_mb:,} MB of memory",
            hint="ask for less; ask_memory_mb of [server] in operations.toml",
        ) from None
    finally:
        for task in (asking, leaving):
            task.cancel()
        await asyncio.gather(asking, leaving, return_exceptions=True)
    if leaving.done() and not leaving.cancelled():
        raise TransientError("nobody waits for the answer", hint="")
    raise QueryError(
        f"the answer takes longer than {limits.ask_s:g} s",
        hint="ask for less; ask_s of [server] in operations.toml",
    )


async def _gone(is_gone: Callable[[], Awaitable[bool]]) -> None:
    """Returns when nobody waits any more."""
    while not await is_gone():
        await asyncio.sleep(_LOOK_S)


def _plane(asked: Asked) -> dict[str, Any] | None:
    """Where the map shows planes, for who does not see what is live; None where no stream lies in one."""
    if not any(stream.space.is_flat for stream in asked.place.streams().values()):
        return None
    return dataclasses.asdict(plane_of(asked))
