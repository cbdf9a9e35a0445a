"""Lines from a named pipe, or from what is piped into the command."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from st_common.errors import ConfigError
from st_common.sources.arrival import Arrival
from st_common.sources.framing import Lines
from st_common.sources.source import Resume, Source

_PORTION = 1 << 16
_LOOK_S = 0.05
"""How often a pipe is looked at that nobody has open for writing."""


class Pipe(Source):
    """A named pipe, which others open and close as they like; each time a header comes anew."""

    def check(self) -> None:
        """Only lines, from a pipe that is there."""
        self.require_lines()
        path = Path(self.settings.path or "")
        try:
            is_pipe = stat.S_ISFIFO(path.stat().st_mode)
        except OSError as error:
            raise ConfigError(
                f"cannot read {path}: {error.strerror}", hint="mkfifo makes a pipe"
            ) from None
        if not is_pipe:
            raise ConfigError(f"{path} is no named pipe", hint='kind = "files"')

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`."""
        # It stays open between two writers: else the second could write into a pipe that nobody reads.
        number = os.open(self.settings.path or "", os.O_RDONLY | os.O_NONBLOCK)
        try:
            while True:
                async for arrival in _lines_of(number, self):
                    yield arrival
                await asyncio.sleep(_LOOK_S)
        finally:
            os.close(number)


class Stdin(Source):
    """What is piped into the command; the capture ends with it."""

    ends = True

    def check(self) -> None:
        """Only lines."""
        self.require_lines()

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`."""
        number = sys.stdin.fileno()
        os.set_blocking(number, False)
        async for arrival in _lines_of(number, self):
            yield arrival


async def _lines_of(number: int, source: Source) -> AsyncGenerator[Arrival]:
    """The lines of an open file that does not block, until its last writer closes it."""
    lines = Lines(source.stream)
    while data := await _read(number):
        arrival = lines.feed(data)
        if arrival is not None:
            yield arrival
    last = lines.end()
    if last is not None:
        yield last


async def _read(number: int) -> bytes:
    """The next bytes; none at the end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(number, _PORTION)
        except BlockingIOError:
            has_more = loop.create_future()
            loop.add_reader(number, has_more.set_result, None)
            try:
                await has_more
            finally:
                loop.remove_reader(number)
