"""Which file is which, whatever it is called by now: by its inode, and by the bytes of it that are stored.

NAME/INODE           how many bytes are stored of the file that had this name when it was first seen
NAME/INODE/mark      what these bytes are: checksums of the first 1,024, of the last 256 and of all
NAME/INODE/within    of a document of which only a part is stored: how many arrivals
NAME, NAME#          in homes of before: bytes and arrivals, of whatever had that name
"""

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import IO

_HEAD, _TAIL = 1024, 256
_PORTION = 1 << 20
_BITS, _ALL = 32, 0xFFFF_FFFF
_WITHIN, _MARK, _OLD_WITHIN = "within", "mark", "#"


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first bytes of a file, as far as they are stored.

    Attributes:
        length: how many.
        head: checksum of the first of them.
        tail: checksum of the last of them.
        crc: checksum of all.
        first: the first of them, where they are known by their bytes.
        last: likewise.
    """

    length: int = 0
    head: int = 0
    tail: int = 0
    crc: int = 0
    first: bytes | None = field(default=b"", compare=False)
    last: bytes | None = field(default=b"", compare=False)

    @classmethod
    def of_mark(cls, length: int, mark: int) -> "Prefix":
        """What was noted of it."""
        head, tail, crc = mark >> 2 * _BITS, mark >> _BITS & _ALL, mark & _ALL
        return cls(length, head, tail, crc, None, None)

    @classmethod
    def of_file(cls, file: IO[bytes], length: int) -> "Prefix":
        """Of the bytes that a file has now; all of them are read."""
        made, at = cls(), 0
        while data := os.pread(file.fileno(), min(_PORTION, length - at), at):
            made, at = made.and_then(data), at + len(data)
        return made

    @property
    def mark(self) -> int:
        """Its checksums as one number."""
        return (self.head << _BITS | self.tail) << _BITS | self.crc

    def and_then(self, data: bytes) -> "Prefix":
        """With more bytes behind it; its own bytes are known."""
        first = ((self.first or b"") + data[:_HEAD])[:_HEAD]
        last = ((self.last or b"") + data[-_TAIL:])[-_TAIL:]
        crc, length = zlib.crc32(data, self.crc), self.length + len(data)
        return Prefix(length, zlib.crc32(first), zlib.crc32(last), crc, first, last)

    def found_in(self, file: IO[bytes]) -> "Prefix | None":
        """It with its bytes, where the file begins with them by its first and last ones; else None."""
        first, last = _ends(file, self.length)
        alike = (zlib.crc32(first), zlib.crc32(last)) == (self.head, self.tail)
        is_whole = len(last) == min(self.length, _TAIL)
        return replace(self, first=first, last=last) if alike and is_whole else None

    def begins(self, file: IO[bytes]) -> bool:
        """Whether a file begins with exactly these bytes; all of them are read."""
        is_likely = self.found_in(file) is not None
        return is_likely and Prefix.of_file(file, self.length) == self


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A file: the name that it had when it was first seen, and its inode; 0 where a home of before noted none."""

    name: str
    inode: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a file.

    Attributes:
        prefix: the bytes that are.
        within: of a document whose bytes are noted and of which only so many arrivals are stored; 0: all of them.
    """

    prefix: Prefix = Prefix()
    within: int = 0


def stored_in(places: Mapping[str, int]) -> dict[Key, Stored]:
    """What is stored, by file, of the places of a source; what was let go of is left out."""
    files: dict[Key, Stored] = {}
    for part in places:
        name, _, inode = part.partition("/")
        if inode.isdigit():
            prefix = Prefix.of_mark(places[part], places.get(f"{part}/{_MARK}", 0))
            within = places.get(f"{part}/{_WITHIN}", 0)
            files[Key(name, int(inode))] = Stored(prefix, within)
        elif not inode:
            at, within = places[part], places.get(f"{part}{_OLD_WITHIN}", 0)
            files[Key(part, 0)] = Stored(Prefix(at), within)
            short = part.removesuffix(_OLD_WITHIN)
            if short != part and short not in places:
                files[Key(short, 0)] = Stored(Prefix(0), at)
    return {key: one for key, one in files.items() if one.prefix.length or one.within}


def places_of(key: Key, stored: Stored) -> dict[str, int]:
    """The places that say what is stored of a file."""
    if not key.inode:
        return {key.name: 0, f"{key.name}{_OLD_WITHIN}": 0}  # only to let go of it
    part, prefix = f"{key.name}/{key.inode}", stored.prefix
    return {
        part: prefix.length,
        f"{part}/{_MARK}": prefix.mark,
        f"{part}/{_WITHIN}": stored.within,
    }


def inode_of(part: str) -> str:
    """The inode that a part of a source names; "" where it is one of before."""
    return part.partition("/")[2].partition("/")[0]


def name_before(part: str) -> str:
    """The name of the file that a part of before names."""
    return part.removesuffix(_OLD_WITHIN)


def _ends(file: IO[bytes], length: int) -> tuple[bytes, bytes]:
    """The first and the last ones of so many bytes; fewer where the file is shorter."""
    tail = min(length, _TAIL)
    first = os.pread(file.fileno(), min(length, _HEAD), 0)
    return first, os.pread(file.fileno(), tail, length - tail)
