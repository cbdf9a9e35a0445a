"""Files of a folder, each known again: grown, renamed, replaced, emptied, copied, or another one in its place.

a.csv grew                                    its inode, and its first and last stored bytes
a.csv -> a.csv.1, and a new a.csv             the inode is a.csv.1: its rest is read there; a.csv is new
cp a.csv a.csv.1, and a.csv emptied           a.csv.1 begins with all that is stored of a.csv: likewise
a.csv written anew beside it, and renamed     begins with what is stored: goes on there; else it is new
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from st_common.sources.file_marks import Key, Prefix, Stored

_LINE_ENDS = b"\r\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as it was looked at.

    Attributes:
        path: it.
        inode: its number.
        size: bytes.
        mtime_ns: when it was last written to.
        is_meant: whether it is one of those that the source names; another one may be one of these, renamed.
    """

    path: Path
    inode: int
    size: int
    mtime_ns: int
    is_meant: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Whose file an entry is.

    Attributes:
        of: by entry, the file; of those that are to be read.
        moved: files that go on elsewhere, each with where.
        lost: files of which something is stored and that are nowhere.
    """

    of: dict[Entry, Key]
    moved: dict[Key, Key]
    lost: list[Key]


def entries(pattern: Path) -> list[Entry]:
    """The files of a folder, without hidden ones; those that were written to first in front."""
    meant = {path.name for path in pattern.parent.glob(pattern.name)}
    found = []
    for path in pattern.parent.iterdir():
        if path.name.startswith("."):
            continue
        try:
            told = path.stat()
        except OSError:
            continue  # somebody has just taken it away, or it leads nowhere
        if path.is_file():
            is_meant = path.name in meant
            made = Entry(path, told.st_ino, told.st_size, told.st_mtime_ns, is_meant)
            found.append(made)
    return sorted(found, key=lambda one: (one.mtime_ns, one.path.name))


def find(
    looked: Sequence[Entry],
    stored: dict[Key, Stored],
    *,
    is_same: Callable[[Entry, Key], bool],
    keeps_names: bool,
) -> Found:
    """Finds which files these are.

    Args:
        looked: the files of the folder.
        stored: what is stored, by file.
        is_same: whether an entry with the inode of a file still is it.
        keeps_names: only a file of the same name goes on for one that is gone.
    """
    by_inode: dict[int, list[Key]] = {}
    for key in stored:
        by_inode.setdefault(key.inode, []).append(key)
    of: dict[Entry, Key] = {}
    known: set[Key] = set()
    for entry in looked:
        free = (key for key in by_inode.get(entry.inode, ()) if key not in known)
        same = next((key for key in free if is_same(entry, key)), None)
        if same is not None:
            of[entry] = same
            known.add(same)
    gone = [key for key in stored if key.inode and key not in known]
    inodes = {entry.inode for entry in looked}
    unknown = [one for one in looked if one not in of]
    moved: dict[Key, Key] = {}
    for key in sorted(gone, key=lambda one: -stored[one].prefix.length):
        # One that was emptied has a copy, whose name is another one.
        is_there = key.inode in inodes
        fits = [
            one
            for one in unknown
            if not keeps_names or is_there or one.path.name == key.name
        ]
        other = _that_begins(fits, stored[key].prefix)
        if other is not None:
            of[other] = moved[key] = Key(key.name, other.inode)
            unknown.remove(other)
    seen = {entry.inode for entry in of}
    for entry in unknown:
        if entry.is_meant and entry.inode not in seen:  # else: a file's second name
            of[entry] = Key(entry.path.name, entry.inode)
            seen.add(entry.inode)
    return Found(of, moved, [key for key in gone if key not in moved])


def goes_on(entry: Entry, at: int) -> bool:
    """Whether a file of which nothing but a length was noted may be that one: a line ends, or is at its end, there."""
    if entry.size < at:
        return False
    with entry.path.open("rb") as file:
        around = os.pread(file.fileno(), 2, max(at - 1, 0))
    return at == entry.size or any(one in _LINE_ENDS for one in around)


def line_begin(file: IO[bytes], at: int, *, most: int) -> int:
    """Where the line begins that goes on at a place, so many bytes in front of it at most."""
    low = max(at - most, 0)
    return low + os.pread(file.fileno(), at - low, low).rfind(b"\n") + 1


def _that_begins(looked: Sequence[Entry], prefix: Prefix) -> Entry | None:
    return next((one for one in looked if _begins(one, prefix)), None)


def _begins(entry: Entry, prefix: Prefix) -> bool:
    if not prefix.length or entry.size < prefix.length:
        return False
    try:
        with entry.path.open("rb") as file:
            return prefix.begins(file)
    except OSError:
        return False
