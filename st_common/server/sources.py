"""The sources of a server's streams: each stream's run by themselves, and begin anew when its settings are changed."""

import asyncio
import contextlib
from dataclasses import dataclass

from st_common.config.stream import StreamSettings
from st_common.server.installation import Installation
from st_common.server.terminal import Once, Say, told_of
from st_common.sources.capture import capture_all

_LOOK_S = 2.0
_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Captured:
    """A stream whose sources run: by which settings, what ends them, and the task."""

    stream: StreamSettings
    over: asyncio.Event
    task: "asyncio.Task[None]"

    async def ended(self) -> None:
        """Ends the sources; what has come is stored."""
        self.over.set()
        await self.task


class Sources:
    """Runs the sources of all streams that a server runs, as the settings are by now.

    Args:
        place: where the server works.
        say: is told why sources cannot go on, each error once.
    """

    def __init__(self, place: Installation, say: Say) -> None:
        self._place, self._say = place, say
        self._trouble = Once(say)
        self._running: dict[str, _Captured] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Looks at the settings now and then until it is asked to stop, and ends all sources then."""
        try:
            while not stop.is_set():
                try:
                    await self._look()
                    self._trouble.over()
                except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
                    self._trouble(f"sources: {told_of(error)}")
                await waited(stop, _LOOK_S)
        finally:
            for one in self._running.values():
                one.over.set()
            await asyncio.gather(*(one.task for one in self._running.values()))

    async def _look(self) -> None:
        """Begins what is new or other, and ends what is gone; what is wrong by now goes on as it was."""
        known = await asyncio.to_thread(self._place.served)
        wanted = {name: stream for name, stream in known.items() if stream.sources}
        for name, one in list(self._running.items()):
            is_other = name not in known.broken and wanted.get(name) != one.stream
            if is_other or one.task.done():
                del self._running[name]
                await one.ended()
        for name, stream in wanted.items():
            if name not in self._running:
                over = asyncio.Event()
                task = asyncio.create_task(
                    capture(self._place, stream, over, self._say)
                )
                self._running[name] = _Captured(stream=stream, over=over, task=task)


async def capture(
    place: Installation, stream: StreamSettings, stop: asyncio.Event, say: Say
) -> None:
    """Runs the sources of a stream until it is asked to stop; one that cannot go on is told, and tried again later.

    Args:
        place: where the server works.
        stream: the stream.
        stop: set when it shall end.
        say: is told why sources cannot go on, each error once.
    """
    trouble = Once(say)
    while not stop.is_set():
        over = asyncio.Event()
        ending = asyncio.create_task(_passed_on(stop, over))
        try:
            names = tuple(stream.sources)
            await capture_all(place.home, stream, names, over)
        except Exception as error:  # noqa: BLE001 - others go on, and it is tried again
            trouble(f"{stream.name}: its sources: {told_of(error)}")
            await waited(stop, _AGAIN_S)
        finally:
            ending.cancel()


async def _passed_on(stop: asyncio.Event, over: asyncio.Event) -> None:
    await stop.wait()
    over.set()


async def waited(stop: asyncio.Event, seconds: float) -> None:
    """Waits so long, or until it is asked to stop."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
