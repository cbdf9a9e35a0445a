"""Files of a folder: those that are there, those that come, and what is added to them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from st_common.capture.source import files_of, name_of, opened
from st_common.errors import ConfigError, TransientError
from st_common.feeds.arrival import Arrival
from st_common.feeds.framing import Lines, has_header, is_of_lines, of_document
from st_common.feeds.source import Resume, Source

_EVERY_S = 1.0
_SETTLED_NS = 2_000_000_000
"""A file that nobody has written to for so long is whole."""
_PORTION = 1 << 20
_PACKED = (".gz", ".zip")
_MOST_BYTES = 1 << 30  # of what is taken at once
_WITHIN = "#"
"""Behind the name of a document: how many arrivals of it are stored."""


class Files(Source):
    """Files by a pattern, in the order in which they were last written to, each from where it was read to.

    A place is how many bytes of a file are stored. Of files whose records are no lines, of packed ones and of
    those in UTF-16, all is taken at once when nobody writes to them any more.
    """

    has_places = True

    def check(self) -> None:
        """The folder is there."""
        folder = self._pattern.parent
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder", hint="path = FOLDER/*.csv")

    @property
    def _pattern(self) -> Path:
        path = Path(self.settings.path or "")
        return path / "*" if path.is_dir() else path

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`; a part is the name of a file."""
        is_named = self.stream.columns.object_from == "file name"
        known = dict(await asyncio.to_thread(places))
        while True:
            for path in self._files():
                async for arrival in _each(self._new_in(path, known)):
                    known |= arrival.places
                    yield replace(arrival, owner=name_of(path)) if is_named else arrival
            await asyncio.sleep(self.settings.every_s or _EVERY_S)

    def gone(self, known: Mapping[str, int]) -> set[str]:
        """Files that somebody has taken away: one of that name that comes later is another one."""
        folder = self._pattern.parent
        return {
            part for part in known if not (folder / part.removesuffix(_WITHIN)).exists()
        }

    def _files(self) -> list[Path]:
        """The files, those that were written to first in front."""
        pattern = self._pattern
        stamped = [
            (path.stat().st_mtime_ns, path.name, path)
            for path in pattern.parent.glob(pattern.name)
            if path.is_file() and not path.name.startswith(".")
        ]
        return [path for _, _, path in sorted(stamped)]

    def _new_in(self, path: Path, known: Mapping[str, int]) -> Iterator[Arrival]:
        """What a file has behind the place that is known."""
        try:
            size = path.stat().st_size
            is_settled = time.time_ns() - path.stat().st_mtime_ns >= _SETTLED_NS
            at = known.get(path.name, 0)
            if size < at:
                raise TransientError(
                    f"{path} has become shorter: {size} bytes, of which {at} are stored",
                    hint="give new content a new name",
                )
            if size > at and self._grows(path):
                yield from self._lines(path, at, is_settled=is_settled)
            elif size > at and is_settled:
                yield from self._whole(path, known.get(f"{path.name}{_WITHIN}", 0))
        except FileNotFoundError:
            return  # somebody has taken it away

    def _grows(self, path: Path) -> bool:
        """Whether a file can be read from where it was read to."""
        if path.suffix in _PACKED or not is_of_lines(self.stream):
            return False
        with opened(path, encoding=self.stream.encoding) as file:
            return file.plain is not None

    def _lines(self, path: Path, at: int, *, is_settled: bool) -> Iterator[Arrival]:
        with path.open("rb") as file:
            header = file.readline() if has_header(self.stream) and at else b""
            file.seek(at)
            lines = Lines(self.stream, header=header)
            while data := file.read(_PORTION):
                yield from _placed(lines.feed(data), path, at + lines.taken)
        if is_settled:
            yield from _placed(lines.end(), path, at + lines.taken)

    def _whole(self, path: Path, stored: int) -> Iterator[Arrival]:
        """What a document has behind so many arrivals that are stored."""
        size, within = path.stat().st_size, f"{path.name}{_WITHIN}"
        documents = self._documents(path)
        arrivals = [one for each in documents for one in of_document(each, self.stream)]
        for number, arrival in enumerate(arrivals[stored:], stored + 1):
            is_last = number == len(arrivals)
            place = {path.name: size, within: 0} if is_last else {within: number}
            yield replace(arrival, places=place)

    def _documents(self, path: Path) -> Iterator[bytes]:
        """What a file holds, unpacked; a zip may hold several.

        Raises:
            TransientError: it breaks, cannot be unpacked, or is too large to be taken at once.
        """
        try:
            for each in files_of(path):
                with opened(each, encoding=self.stream.encoding) as file:
                    document = file.source.read(_MOST_BYTES + 1)
                if file.broken:
                    raise TransientError(
                        f"{each} cannot be unpacked: it ends or breaks"
                    )
                if len(document) > _MOST_BYTES:
                    raise TransientError(
                        f"{each} holds more than 1 GiB",
                        hint="`fairway replay` reads it piece by piece",
                    )
                yield document
        except ConfigError as error:
            raise TransientError(error.message, hint=error.hint) from None


def _placed(arrival: Arrival | None, path: Path, at: int) -> Iterator[Arrival]:
    if arrival is not None:
        yield replace(arrival, places={path.name: at})


async def _each(arrivals: Iterator[Arrival]) -> AsyncGenerator[Arrival]:
    """Arrivals that are read in a thread, one by one."""
    while (arrival := await asyncio.to_thread(next, arrivals, None)) is not None:
        yield arrival
