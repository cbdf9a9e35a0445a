"""One source into one log, until it is asked to stop: connects again and again, and stores what has come at the end.

source -> [buffer] -> writer -> log        a full buffer: the source waits, and whoever sends; or it is skipped
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from st_common.config.home import Home
from st_common.config.sources import SourceSettings
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, TransientError
from st_common.operations.retry import pause_s
from st_common.replay.files import wall_clock
from st_common.sources.arrival import Arrival
from st_common.sources.buffer import Buffer
from st_common.sources.note import CaptureNote, Notes
from st_common.sources.offsets import MovedError
from st_common.sources.registry import source_of
from st_common.sources.trouble import said
from st_common.sources.writer import Writer

if TYPE_CHECKING:
    from st_common.sources.source import Source

_LOG = logging.getLogger(__name__)
_MB, _KB = 1 << 20, 1 << 10
_BEAT_S = 2.0
_MANY = 100
_STEADY_S = 30.0
"""A connection that held for so long was a good one: the next pause is a short one."""


@dataclass(slots=True)
class _Tries:
    """How often it was connected in vain, and why the last time."""

    failures: int = 0
    reconnects: int = 0
    error: str | None = None


class Capture:
    """Stores what one source of a stream gives.

    Args:
        home: the home folder.
        stream: the stream.
        settings: of the source.

    Raises:
        ConfigError: the stream's format does not go with it.
        StateError: an attribute has another type than in records before.
    """

    def __init__(
        self, home: Home, stream: StreamSettings, settings: SourceSettings
    ) -> None:
        self._stream, self._settings = stream.name, settings
        self._source: Source = source_of(settings, stream)
        self._writer = Writer(home, stream, settings.name)
        is_skipping = settings.overload == "skip"
        self._buffer = Buffer(settings.buffer_mb * _MB, skips=is_skipping)
        self._tries, self._has_moved = _Tries(), False
        self._notes = Notes(home, stream.name, settings.name)
        self._warning: str | None = None
        self._chance = random.Random()  # noqa: S311 - a pause is no secret

    @property
    def note(self) -> CaptureNote:
        """What it has done so far."""
        return CaptureNote(
            source=self._settings.name,
            kind=self._settings.kind,
            records=self._writer.records,
            bytes=self._writer.bytes,
            segments=self._writer.segments,
            skipped=self._buffer.skipped,
            waiting_bytes=self._buffer.size,
            reconnects=self._tries.reconnects,
            arrived_us=self._writer.arrived_us,
            error=self._tries.error,
            warning=self._warning,
            doubts=self._source.doubts,
            doubted=self._source.doubted,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Captures until it is asked to stop, or its source is at its end; all that has come is stored then.

        Raises:
            FairwayError: it cannot go on: the settings are wrong, or the disk is full.
        """
        reading = asyncio.create_task(self._read())
        writing = asyncio.create_task(self._write())
        ended = asyncio.Event()
        beating = asyncio.create_task(self._beat(ended))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait(
                (reading, writing, stopping), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopping.cancel()
            await _ended(reading)
            await self._buffer.close()
            # A thread cannot be cancelled: a note that it is about to write would replace the last one.
            ended.set()
            await asyncio.wait((beating,))
            await writing
            self._judge()
            self._notes.write(self.note)
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        """Connects, and brings what comes into the buffer; again after a pause when it breaks off."""
        while True:
            begun_s = time.monotonic()
            try:
                async with contextlib.aclosing(self._arrivals()) as arrivals:
                    async for arrival in arrivals:
                        self._tries.error = None
                        await self._buffer.put(arrival)
                        if self._has_moved:
                            break
                if self._source.ends:
                    return
                await self._end_of_connection()
            except (OSError, TransientError) as error:
                self._tries.error = said(error)
            if self._source.has_places:
                # Else it would go on where the log ends by now, and give once more what is on its way there.
                await self._buffer.drained()
            await self._pause(is_steady=time.monotonic() - begun_s >= _STEADY_S)

    async def _end_of_connection(self) -> None:
        """Says why it has ended: the other end has, or another capture has stored what this one would have."""
        self._tries.error = "the other end has closed"
        if self._has_moved:
            await self._buffer.drained()  # all of that is in vain
            self._has_moved = False
            self._tries.error = "another capture goes on with some of it"

    def _arrivals(self) -> AsyncGenerator[Arrival]:
        return self._source.arrivals(self._writer.places.read)

    async def _pause(self, *, is_steady: bool) -> None:
        tries = self._tries
        tries.failures = 1 if is_steady else tries.failures + 1
        tries.reconnects += 1
        wait_s = pause_s(
            tries.failures, most_s=self._settings.retry_max_s, chance=self._chance
        )
        _LOG.warning(
            "%s: source %s: %s; again in %.1f s",
            self._stream,
            self._settings.name,
            tries.error,
            wait_s,
        )
        await asyncio.sleep(wait_s)

    async def _write(self) -> None:
        """Stores what is in the buffer, until it is closed and empty."""
        settings = self._settings
        while arrivals := await self._buffer.take(
            most_bytes=settings.batch_kb * _KB, gather_s=settings.batch_ms / 1000
        ):
            if self._has_moved:
                continue  # it is read again, from where the log ends
            try:
                written = await asyncio.to_thread(self._writer.write, arrivals)
            except MovedError:
                self._has_moved = True
                continue
            for one, at in zip(arrivals, written, strict=True):
                one.stored(at)

    async def _beat(self, ended: asyncio.Event) -> None:
        """Says every few seconds how far it is, until it has ended."""
        while not ended.is_set():
            self._judge()
            await asyncio.to_thread(self._notes.write, self.note)
            await asyncio.to_thread(self._forget)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _BEAT_S)

    def _judge(self) -> None:
        """Warns when most of what comes cannot be read, and says so when it can again."""
        name = self._settings.name
        warning = self._writer.judge.warning(now_us=wall_clock())
        if warning is not None and self._warning is None:
            _LOG.warning("%s: source %s: %s", self._stream, name, warning)
        if warning is None and self._warning is not None:
            again = "what it brings can be read again"
            _LOG.warning("%s: source %s: %s", self._stream, name, again)
        self._warning = warning

    def _forget(self) -> None:
        """Lets go of the places of parts that are gone, when there are many."""
        places = self._writer.places
        gone = self._source.gone(places.known)
        if len(gone) >= _MANY:
            places.forget(gone)


async def _ended(task: "asyncio.Task[None]") -> None:
    """Cancels a task, and waits for its end; what it ended by is told elsewhere."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


async def capture_all(
    home: Home, stream: StreamSettings, names: tuple[str, ...], stop: asyncio.Event
) -> list[CaptureNote]:
    """Runs some sources of a stream side by side, until all have ended or one cannot go on.

    Args:
        home: the home folder.
        stream: the stream.
        names: of the sources.
        stop: set when all shall end.

    Returns:
        What each has done.

    Raises:
        FairwayError: one cannot go on; the others have stored what they had.
        ConfigError: there is no source of that name.
    """
    unknown = [name for name in names if name not in stream.sources]
    if unknown:
        raise ConfigError(
            f"stream {stream.name!r} has no source {unknown[0]!r}",
            hint=f"it has {', '.join(stream.sources) or 'none'}",
        )
    captures = [Capture(home, stream, stream.sources[name]) for name in names]
    try:
        async with asyncio.TaskGroup() as group:
            for one in captures:
                group.create_task(_run(one, stop))
    except* Exception as errors:  # noqa: BLE001 - the first is raised, as if it were alone
        raise errors.exceptions[0] from None
    return [one.note for one in captures]


async def _run(capture: Capture, stop: asyncio.Event) -> None:
    """Runs one capture; where it cannot go on, all stop."""
    try:
        await capture.run(stop)
    except BaseException:
        stop.set()
        raise
