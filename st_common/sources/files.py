"""Files of a folder: those that are there, those that come, and what is added to them."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

from st_common.errors import ConfigError, TransientError
from st_common.replay.source import files_of, name_of, opened
from st_common.sources.arrival import Arrival
from st_common.sources.file_finding import Entry, entries, find, goes_on, line_begin
from st_common.sources.file_marks import (
    Key,
    Prefix,
    Stored,
    inode_of,
    name_before,
    places_of,
    stored_in,
)
from st_common.sources.framing import (
    LONGEST_LINE,
    Lines,
    has_header,
    is_of_lines,
    of_document,
)
from st_common.sources.source import Resume, Source
from st_common.sources.trouble import said

_EVERY_S = 1.0
_SETTLED_NS = 2_000_000_000
"""A file that nobody has written to for so long is whole."""
_PORTION = 1 << 20
_PACKED = (".gz", ".zip")
_MOST_BYTES = 1 << 30  # of what is taken at once


class Files(Source):
    """Files by a pattern, in the order in which they were last written to, each from where it was read to.

    A file is known by its inode and by its bytes, so it goes on under another name: see `file_finding`. Of files whose
    records are no lines, of packed ones and of those in UTF-16, all is taken at once when nobody writes to them any
    more.
    """

    has_places = True

    def check(self) -> None:
        """The folder is there."""
        folder = self._pattern.parent
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder", hint="path = FOLDER/*.csv")
        self._stored: dict[Key, Stored] = {}
        self._looked: dict[Key, Entry] = {}
        self._done: set[Key] = set()
        self._unsaid: dict[str, int] = {}

    @property
    def _pattern(self) -> Path:
        path = Path(self.settings.path or "")
        return path / "*" if path.is_dir() else path

    @property
    def _is_named(self) -> bool:
        return self.stream.columns.object_from == "file name"

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`; a part is a file: see `file_marks`."""
        self.begin(await asyncio.to_thread(places))
        while True:
            async for arrival in self.look():
                yield arrival
            await asyncio.sleep(self.settings.every_s or _EVERY_S)

    def begin(self, places: Mapping[str, int]) -> None:
        """Goes on where some places say."""
        self._stored, self._unsaid = stored_in(places), {}
        self._looked, self._done = {}, set()

    async def look(self) -> AsyncGenerator[Arrival]:
        """What is new in the folder now, file by file."""
        for entry, key in await asyncio.to_thread(self._files):
            async for arrival in _each(self._new_in(entry, key)):
                noted, self._unsaid = self._unsaid | arrival.places, {}
                told = replace(arrival, places=noted)
                owner = name_of(entry.path.with_name(key.name))
                yield replace(told, owner=owner) if self._is_named else told

    def gone(self, known: Mapping[str, int]) -> set[str]:
        """Files that somebody has taken away, and what homes of before noted of those that are known anew."""
        looked = entries(self._pattern)
        inodes = {str(one.inode) for one in looked}
        names = {one.path.name for one in looked}
        return {
            part
            for part in known
            if (inode := inode_of(part)) not in inodes
            and (inode or not known[part] or name_before(part) not in names)
        }

    def _files(self) -> list[tuple[Entry, Key]]:
        """The files in which there may be something new, each with what it is."""
        looked = entries(self._pattern)
        self._adopt([one for one in looked if one.is_meant])
        found = find(
            looked, self._stored, is_same=self._is_same, keeps_names=self._is_named
        )
        for key, now in found.moved.items():
            stored = self._stored[key]
            self._let_go(key)
            self._note(now, stored)
        fresh = {
            one.path.name for one, key in found.of.items() if key not in self._stored
        }
        now_there = set(found.of.values())
        for key in found.lost:
            last = self._looked.get(key)
            name = key.name if last is None else last.path.name
            self._lose(key, is_replaced=name in fresh or key in now_there)
        pairs = [(one, found.of[one]) for one in looked if one in found.of]
        return [pair for pair in pairs if not self._is_done(*pair)]

    def _is_done(self, entry: Entry, key: Key) -> bool:
        """Whether a file is as it was when it was looked at last, when nobody wrote to it any more."""
        return key in self._done and self._looked.get(key) == entry

    def _note(self, key: Key, stored: Stored) -> None:
        """Keeps what is stored of a file; it is said with the next records."""
        self._stored[key] = stored
        self._unsaid |= places_of(key, stored)

    def _let_go(self, key: Key) -> None:
        """Forgets what is stored of a file; it is said with the next records."""
        self._stored.pop(key, None)
        self._done.discard(key)
        self._unsaid |= places_of(key, Stored())

    def _adopt(self, looked: list[Entry]) -> None:
        """Takes over what homes of before noted: a name, and how many bytes of it."""
        for entry in looked:
            old = self._stored.get(Key(entry.path.name, 0))
            if old is None:
                continue
            at = old.prefix.length
            self._let_go(Key(entry.path.name, 0))
            if self._is_of_lines(entry.path) and not goes_on(entry, at):
                self._doubt(Key(entry.path.name, 0), at)
                continue
            with entry.path.open("rb") as file:
                length = min(entry.size, at or entry.size)
                made = Prefix.of_file(file, length)
            self._note(Key(entry.path.name, entry.inode), Stored(made, old.within))

    def _lose(self, key: Key, *, is_replaced: bool) -> None:
        """A file is nowhere: it was taken away, or something else was written in its place."""
        at, last = self._stored[key].prefix.length, self._looked.get(key)
        is_quiet = last is None or (key in self._done and last.size == at)
        if is_quiet and not is_replaced:
            return  # it may come back
        if self._is_of_lines(Path(key.name)):
            self._doubt(key, at)
        self._let_go(key)

    def _doubt(self, key: Key, at: int) -> None:
        self.doubt(
            f"{self._pattern.parent / key.name} was emptied, replaced or taken away: what was added to it "
            f"behind byte {at} since it was last looked at is not stored"
        )

    def _is_same(self, entry: Entry, key: Key) -> bool:
        """Whether a file still begins with what is stored of it; a document is the same where all of it is."""
        if self._is_done(entry, key):
            return True
        prefix = self._stored[key].prefix
        is_document = not self._is_of_lines(entry.path)
        if entry.size < prefix.length or (is_document and entry.size > prefix.length):
            return False
        try:
            with entry.path.open("rb") as file:
                return prefix.found_in(file) is not None
        except OSError:
            return False

    def _new_in(self, entry: Entry, key: Key) -> Iterator[Arrival]:
        """What a file has behind what is stored of it."""
        stored = self._stored.get(key, Stored())
        is_settled = _is_settled(entry)
        try:
            if self._grows(entry.path):
                yield from self._lines(entry, key, stored.prefix)
            elif is_settled and (entry.size != stored.prefix.length or stored.within):
                is_same = entry.size == stored.prefix.length
                yield from self._whole(entry, key, stored.within if is_same else 0)
        except FileNotFoundError:
            return  # somebody has taken it away
        except (TransientError, PermissionError) as error:
            self.doubt(f"{entry.path} is passed over: {said(error)}")
            is_settled = True  # until it changes
        self._looked[key] = entry
        (self._done.add if is_settled else self._done.discard)(key)

    def _is_of_lines(self, path: Path) -> bool:
        return path.suffix not in _PACKED and is_of_lines(self.stream)

    def _grows(self, path: Path) -> bool:
        """Whether a file can be read from where it was read to."""
        if not self._is_of_lines(path):
            return False
        with opened(path, encoding=self.stream.encoding) as file:
            return file.plain is not None

    def _lines(self, entry: Entry, key: Key, stored: Prefix) -> Iterator[Arrival]:
        """The lines behind those that are stored, as long as it is the same file; the next look tells otherwise."""
        with entry.path.open("rb") as file:
            prefix = stored.found_in(file)
            if prefix is None or os.fstat(file.fileno()).st_ino != entry.inode:
                return
            at = self._begin(prefix, file)
            header = file.readline() if has_header(self.stream) and at else b""
            file.seek(at)
            lines, ahead = Lines(self.stream, header=header), b""
            again = prefix.length - at  # stored before as a line, and read again
            while data := file.read(_PORTION):
                if prefix.found_in(file) is None:
                    return  # emptied, and written anew, while it was read
                taken = lines.taken
                arrival, ahead = lines.feed(data), ahead + data
                count = lines.taken - taken
                if count and again:
                    self._went_on(entry)
                prefix = prefix.and_then(ahead[again:count])
                again, ahead = max(again - count, 0), ahead[count:]
                yield from self._placed(arrival, key, prefix)
            if _is_settled(entry) and prefix.found_in(file) is not None:
                if again and ahead:
                    self._went_on(entry)
                prefix = prefix.and_then(ahead[again:])
                yield from self._placed(lines.end(), key, prefix)

    def _begin(self, prefix: Prefix, file: IO[bytes]) -> int:
        """Behind what is stored; where its last line had no end and has become longer, in front of that line."""
        at = prefix.length
        behind = os.pread(file.fileno(), 1, at)
        had_no_end = at and not (prefix.last or b"").endswith(b"\n")
        if had_no_end and behind not in (b"", b"\n", b"\r"):
            return line_begin(file, at, most=LONGEST_LINE)
        return at

    def _went_on(self, entry: Entry) -> None:
        self.doubt(
            f"{entry.path} went on in its last line, which had no end: a part of the line is stored, and then all of it"
        )

    def _placed(
        self, arrival: Arrival | None, key: Key, prefix: Prefix
    ) -> Iterator[Arrival]:
        if arrival is not None:
            stored = self._stored[key] = Stored(prefix)
            yield replace(arrival, places=places_of(key, stored))

    def _whole(self, entry: Entry, key: Key, within: int) -> Iterator[Arrival]:
        """What a document has behind so many arrivals that are stored."""
        with entry.path.open("rb") as file:
            prefix = Prefix.of_file(file, entry.size)
        documents = self._documents(entry.path)
        arrivals = [one for each in documents for one in of_document(each, self.stream)]
        for number, arrival in enumerate(arrivals[within:], within + 1):
            is_last = number == len(arrivals)
            stored = Stored(prefix, 0 if is_last else number)
            self._stored[key] = stored
            yield replace(arrival, places=places_of(key, stored))

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


def _is_settled(entry: Entry) -> bool:
    return time.time_ns() - entry.mtime_ns >= _SETTLED_NS


async def _each(arrivals: Iterator[Arrival]) -> AsyncGenerator[Arrival]:
    """Arrivals that are read in a thread, one by one."""
    while (arrival := await asyncio.to_thread(next, arrivals, None)) is not None:
        yield arrival
