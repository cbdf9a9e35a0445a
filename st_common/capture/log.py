"""The log of one stream: numbered segments on disk, in one total order, never rewritten.

    log/landing/000000000007-1700000000000000-d.seg    what some reader may still need, and always the newest segment
    log/archive/2023-11-14/22/…                        the rest, by the day and hour of arrival (UTC)
    log/readers/NAME.json                              the next segment that a reader needs
    log/.lock                                          held (flock) by whoever gives out numbers or moves segments

A segment is written to a dot-file, fsynced and renamed, all under the lock. So a writer that dies leaves either the
whole segment or a dot-file that no reader sees and that the next writer removes. The names alone carry the order: of
fixed width, they sort like their numbers. The letter says what is in it: `d` data of a replay, `l` live data, `c`
control rows. The newest segment is never swept: a listing of `landing` tells what is next.
"""

import fcntl
import json
import os
import re
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from st_common.errors import LogError
from st_common.home import checked_name

SEGMENT_LIMIT = 1 << 24  # bytes; a segment is smaller, so that its rows fit into a position
_NAME = re.compile(r"(\d{12})-(\d{16})-([dcl])\.seg")
_NUMBER_WIDTH = 12
_DATA, _LIVE, _CONTROL = "d", "l", "c"
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its number, when it arrived (us UTC), whether it holds control rows, where it lies, its bytes.

    `live`: its writer said that the rows are told as they happen, so time goes on by the wall clock after them.
    """

    number: int
    arrival_us: int
    control: bool
    path: Path
    size: int
    live: bool = False


class Log:
    """The log of a stream. Making one touches nothing on disk; the first append creates the folders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._landing = folder / "landing"
        self._readers = folder / "readers"
        self._archive = _Archive(folder / "archive")
        self._thread_lock = threading.RLock()
        self._lock_fd: int | None = None

    def append(
        self, payload: bytes, *, arrival_us: int, control: bool = False, live: bool = False, timeless: bool = False
    ) -> Segment:
        """Stores one segment and gives it back: durable, and the only one with its number. See `append_all`.

        Who appends says whether the rows are `live`: told as they happen. After live rows time goes on while the feed
        is quiet; after those of a replay it stands still until more of them come.

        Raises:
            LogError: a payload of 16 MiB or more, an arrival stamp that a name cannot hold, or live control rows.
        """
        return self.append_all([payload], arrival_us=arrival_us, control=control, live=live, timeless=timeless)[0]

    def append_all(
        self,
        payloads: Iterable[bytes],
        *,
        arrival_us: int,
        control: bool = False,
        live: bool = False,
        timeless: bool = False,
    ) -> list[Segment]:
        """Stores segments with adjacent numbers and one arrival stamp.

        The records of `timeless` segments have no time but their arrival, each a microsecond of its own before it. So a
        segment with n lines arrives n microseconds after the one before, or later.

        All of them are written before the first gets its name, so an error or a full disk stores none. A crash while
        they are named leaves the first few: all or nothing holds only for what fits into one segment.
        """
        letter = _letter(control=control, live=live)
        with self.locked():
            self._landing.mkdir(parents=True, exist_ok=True)
            number, mtime_ms, newest_us = self._next()
            staged: list[tuple[Path, Path]] = []
            try:
                for offset, payload in enumerate(payloads):
                    if timeless:
                        arrival_us = newest_us = max(arrival_us, newest_us + payload.count(b"\n") + 1)
                    name = _segment_name(number + offset, arrival_us, letter)
                    staged.append((self._landing / f".{name}", self._landing / name))
                    mtime_ms = _write(staged[-1][0], payload, after_ms=mtime_ms)
                for dot_file, path in staged:
                    dot_file.rename(path)
            finally:
                for dot_file, _ in staged:
                    dot_file.unlink(missing_ok=True)
            _sync_folder(self._landing)
        return [self._located(path.name) for _, path in staged]

    def segments(self, start: int, *, max_bytes: int | None = None, end: int | None = None) -> list[Segment]:
        """The segments from number `start` on, without a gap, up to `end` (not included).

        With `max_bytes` as many as stay within it, but at least one if there is one; empty from the log's end on.
        A sweep may move a segment after it was listed: `read` finds it all the same.

        Raises:
            LogError: a number is missing or there twice, or a file is no segment.
        """
        found: list[Segment] = []
        total = 0
        for name in self._dense(start, end):
            segment = self._located(name)
            total += segment.size
            if found and max_bytes is not None and total > max_bytes:
                break
            found.append(segment)
        return found

    def control_segments(self, start: int) -> list[Segment]:
        """The segments of control rows from number `start` on, in order; the numbers between them are checked too."""
        return [self._located(name) for name in self._dense(start, None) if name.endswith("-c.seg")]

    def read(self, segment: Segment) -> bytes:
        """The bytes of a segment, also when it was moved to the archive since it was listed."""
        try:
            return segment.path.read_bytes()
        except FileNotFoundError:
            return self._archive.path(segment.path.name).read_bytes()

    def end(self) -> int:
        """The number after the newest segment; 0 when the log is empty."""
        names = self._landing_names() or self._archive.names(fresh=True)
        return _number(names[-1]) + 1 if names else 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the log's lock against other processes and threads; the same thread may enter it again."""
        with self._thread_lock:
            if self._lock_fd is not None:
                yield
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
                yield
            finally:
                fd, self._lock_fd = self._lock_fd, None
                fcntl.flock(fd, fcntl.LOCK_UN)  # not by closing alone: a forked child may hold the descriptor too
                os.close(fd)

    def publish(self, reader: str, position_segment: int) -> None:
        """Says that `reader` still needs the segments from number `position_segment` on, and none before."""
        self._readers.mkdir(parents=True, exist_ok=True)
        path = self._readers / f"{checked_name(reader, 'reader')}.json"
        dot_file = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        dot_file.write_text(json.dumps({"segment": position_segment}))
        dot_file.replace(path)  # not fsynced: an older position only keeps segments longer in landing

    def reader_positions(self) -> dict[str, int]:
        """The next segment that each published reader needs, by its name."""
        paths = sorted(self._readers.glob("[!.]*.json")) if self._readers.is_dir() else []
        return {path.stem: _reader_position(path) for path in paths}

    def sweep(self) -> int:
        """Moves segments that no reader needs from landing to the archive and gives their number.

        Nothing moves while no reader is published, and the newest segment always stays.
        """
        with self.locked():
            needed = min(self.reader_positions().values(), default=0)
            names = [name for name in self._landing_names()[:-1] if _number(name) < needed]
            targets = [self._archive.path(name) for name in names]
            folders = sorted({target.parent for target in targets})
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            for name, target in zip(names, targets, strict=True):
                (self._landing / name).rename(target)
            for folder in [*folders, *{folder.parent for folder in folders}, self._landing] if names else ():
                _sync_folder(folder)
        return len(names)

    def _next(self) -> tuple[int, int, int]:
        """The next number, the mtime (ms) and the arrival (us) of the newest segment; clears what dead writers left."""
        for dot_file in self._landing.glob(".*.seg"):
            dot_file.unlink(missing_ok=True)
        number = self.end()
        ahead = {reader: position for reader, position in self.reader_positions().items() if position > number}
        if ahead:
            raise LogError(
                f"{self._folder}: the log ends at segment {number}, but its readers were further: {ahead}",
                hint="segments were deleted; restore them, or remove the readers and start their engines afresh",
            )
        if number == 0:
            return 0, 0, 0
        newest = self.segments(number - 1)[0]
        return number, newest.path.stat().st_mtime_ns // _NS_PER_MS, newest.arrival_us

    def _landing_names(self) -> list[str]:
        return _listed(self._landing)

    def _located(self, name: str) -> Segment:
        path = self._landing / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:  # swept, maybe since it was listed
            path = self._archive.path(name)
            size = path.stat().st_size
        letter = name[-len("d.seg")]
        return Segment(_number(name), _arrival(name), letter == _CONTROL, path, size, live=letter == _LIVE)

    def _dense(self, start: int, end: int | None) -> Iterator[str]:
        """The names from `start` to `end`; at a hole or a repeat it lists again: writers and sweeps go on meanwhile."""
        expected = start
        names = self._names(start, end, fresh=False)
        for fresh in (False, True):
            if fresh:
                with self.locked():
                    names = self._names(start, end, fresh=True)[expected - start :]
            for name in names:
                if _number(name) != expected:
                    break
                yield name
                expected += 1
            else:
                return
        what = "twice" if _number(name) < expected else "missing"
        wrong = min(_number(name), expected)
        raise LogError(f"{self._folder}: segment {wrong} is {what}", hint=f"found {name} in its place")

    def _names(self, start: int, end: int | None, *, fresh: bool) -> list[str]:
        """What is listed from `start` to `end`; the archive is looked at only when landing begins later."""
        landing = self._landing_names()
        recent = _between(landing, start, end)
        if landing and _number(landing[0]) <= start and not fresh:
            return recent
        swept = _between(self._archive.names(fresh=fresh), start, end)
        return sorted({*swept, *recent}) if swept and recent and swept[-1] >= recent[0] else swept + recent


class _Archive:
    """The swept segments. Listings of its hour folders are kept and read again only when a folder changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hours: dict[Path, tuple[int, list[str]]] = {}
        self._sorted: list[str] = []

    def path(self, name: str) -> Path:
        """Where the segment of this name lies once it is swept."""
        arrival = datetime.fromtimestamp(_arrival(name) // 1_000_000, UTC)
        return self._folder / f"{arrival:%Y-%m-%d}" / f"{arrival:%H}" / name

    def names(self, *, fresh: bool) -> list[str]:
        """The names of all swept segments in order; `fresh` trusts no earlier listing."""
        changed = False
        for hour in self._folder.glob("*/*"):
            stamp = hour.stat().st_mtime_ns
            if fresh or self._hours.get(hour, (None,))[0] != stamp:
                self._hours[hour] = (stamp, _listed(hour))
                changed = True
        if changed:
            self._sorted = sorted(name for _, names in self._hours.values() for name in names)
        return self._sorted


def _listed(folder: Path) -> list[str]:
    """The segment names in a folder, in order; dot-files do not count."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208 - names, not paths
    except FileNotFoundError:
        return []
    for name in names:
        if not _NAME.fullmatch(name):
            raise LogError(f"{folder / name} is no segment", hint="only capture writes here; move the file away")
    return names


def _between(names: list[str], start: int, end: int | None) -> list[str]:
    first = bisect_left(names, f"{start:0{_NUMBER_WIDTH}d}")
    return names[first:] if end is None else names[first : bisect_left(names, f"{end:0{_NUMBER_WIDTH}d}")]


def _number(name: str) -> int:
    return int(name[:_NUMBER_WIDTH])


def _arrival(name: str) -> int:
    return int(name[_NUMBER_WIDTH + 1 : -len("-d.seg")])


def _letter(*, control: bool, live: bool) -> str:
    if control and live:
        raise LogError("control rows are not live", hint="live says of data that it is told as it happens")
    if control:
        return _CONTROL
    return _LIVE if live else _DATA


def _segment_name(number: int, arrival_us: int, letter: str) -> str:
    name = f"{number:012d}-{arrival_us:016d}-{letter}.seg"
    if not _NAME.fullmatch(name):
        raise LogError(
            f"a segment cannot carry number {number} and arrival {arrival_us}", hint="microseconds since 1970"
        )
    return name


def _write(path: Path, payload: bytes, *, after_ms: int) -> int:
    """Writes and fsyncs a file with an mtime after `after_ms`, gives it in ms: Spark's file source orders by it."""
    if len(payload) >= SEGMENT_LIMIT:
        raise LogError(f"a segment of {len(payload)} bytes", hint=f"it must be below {SEGMENT_LIMIT}; cut it smaller")
    with path.open("wb") as file:
        file.write(payload)
        file.flush()
        mtime_ms = max(os.fstat(file.fileno()).st_mtime_ns // _NS_PER_MS, after_ms + 1)
        os.utime(file.fileno(), ns=(mtime_ms * _NS_PER_MS, mtime_ms * _NS_PER_MS))
        os.fsync(file.fileno())
    return mtime_ms


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _reader_position(path: Path) -> int:
    try:
        return int(json.loads(path.read_bytes())["segment"])
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{path} tells no position", hint="remove it: its reader writes it again") from error
