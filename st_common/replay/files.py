"""Replay of files into a stream's log: as fast as possible, at a rate, or as its event times say."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.formats.chunk import HEADER_LIMIT, Chunk
from st_common.formats.registry import format_of
from st_common.formats.said_before import SaidBefore, also
from st_common.log.appending import append_records, time_of
from st_common.log.control import write_end
from st_common.log.event_time import EventTime
from st_common.log.log import SEGMENT_LIMIT, Log
from st_common.log.record_settings import settle
from st_common.replay.chunks import chunks
from st_common.replay.looking_ahead import LookingAhead
from st_common.replay.memory import Memory
from st_common.replay.ordered import Ordered, in_order
from st_common.replay.source import name_of, opened

Rate = Literal["fast", "event"] | float
SEGMENT_BYTES = 8 << 20
_LARGEST = SEGMENT_LIMIT - 2 * HEADER_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """What a replay wrote.

    Attributes:
        records: lines that are neither blank nor the header.
        segments: data segments, the end mark not included.
        bytes: of these segments' payloads.
        first: the number of the first segment.
        end: the number after the last segment, the end mark included.
        broken: the files that are packed and ended or broke early: what could be unpacked is in the log.
        grown: the files that had more at the end than at the beginning: these are feeds.
        descents: in how many places the time of records went back, so that they were sorted.
        ahead: how many records leap ahead of the stream, and are rejects.
        reading: the segment from which on records are read by other settings than those before; None: by the same.
    """

    records: int
    segments: int
    bytes: int
    first: int
    end: int
    broken: tuple[Path, ...] = ()
    grown: tuple[Path, ...] = ()
    descents: int = 0
    ahead: int = 0
    reading: int | None = None


@dataclass(frozen=True, slots=True)
class _Pace:
    """How fast records arrive, in which segments, and by whose clock."""

    rate: Rate
    speed: float
    segment_s: float
    segment_bytes: int
    clock: Callable[[], int]
    sleep: Callable[[float], None]


def wall_clock() -> int:
    """Now, in microseconds since 1970."""
    return time.time_ns() // 1000


def replay(
    log: Log,
    path: Path | Sequence[Path],
    stream: StreamSettings,
    *,
    as_they_stand: bool = False,
    rate: Rate = "fast",
    speed: float = 1.0,
    segment_s: float = 0.2,
    segment_bytes: int = SEGMENT_BYTES,
    end_mark: bool = True,
    live: bool = False,
    clock: Callable[[], int] = wall_clock,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[int], None] = lambda _records: None,
) -> ReplayReport:
    """Appends the records of files to the log in the order of their event times, nothing left out, and an end mark.

    Each segment is whole by itself: it ends behind a record and starts with the header. When records are due, in
    seconds since the start, for event times 0 s, 10 s, 4 s and 20 s:

        rate 2.0                              0, 0.5, 1, 1.5
        rate "event", speed 10                0, 0.4, 1, 2      in their order: 0 s, 4 s, 10 s, 20 s
        the same as they stand                0, 1, 1, 2        the fix of 4 s comes right behind the one of 10 s

    Args:
        log: the log of the stream.
        path: the file, or files that are one feed, packed by gzip or not, or in a zip.
        stream: how records are separated, and how they will be read.
        as_they_stand: in the order of the files; what is out of order there may be late. So are records that have no
            times.
        rate: "fast" as fast as they can be written; a number of records each second; or "event": in the distances of
            their event times, where a record that is no fix comes right behind the one before it.
        speed: with "event", how many times as fast.
        segment_s: with a rate, how many seconds of records make a segment.
        segment_bytes: the most bytes of a segment; a longer record stands alone.
        end_mark: whether an end mark follows; none follows `live` records.
        live: the records are told as they happen, so time goes on after the file.
        clock: the time that stamps arrivals, us UTC; tests bring their own.
        sleep: waits so many seconds; tests bring their own.
        progress: told after each segment how many records were written.

    Raises:
        ConfigError: a file cannot be read or has no header, or an argument is out of its range.
        StateError: an attribute has another type than in records before.
        StorageError: the disk is full, or refuses.
    """
    pace = _Pace(rate, speed, segment_s, segment_bytes, clock, sleep)
    _check(pace, stream)
    files = _Files([path] if isinstance(path, Path) else list(path), stream, pace)
    sizes: list[int] = []
    with ExitStack() as stack:
        source = _source(files, stream, stack, as_they_stand=as_they_stand)
        reading, first = settle(log, stream), log.end()
        looking = LookingAhead(stream, _time(log, stream), arrival_us=clock())
        records = 0
        marked = looking.marked(source.chunks)
        for payload, count in _remembering(marked, stream, pace):
            append_records(
                log, stream, payload, arrival_us=clock(), live=live, is_judged=True
            )
            records += count
            sizes.append(len(payload))
            progress(records)
    log.event_time = replace(looking.time, segment=log.end())
    if end_mark and not live:
        write_end(log, arrival_us=clock())
    return ReplayReport(
        records=records,
        segments=len(sizes),
        bytes=sum(sizes),
        first=first,
        end=log.end(),
        broken=tuple(files.broken),
        grown=files.grown(),
        descents=source.descents,
        ahead=looking.ahead,
        reading=reading,
    )


def owners_of(stream: StreamSettings, path: Path) -> tuple[str, ...]:
    """Whose the records of a file are, where that follows from its name; () where they say it, or the settings do.

    Raises:
        ConfigError: it follows from a source, and a file that is replayed has none.
    """
    origin = stream.columns.object_from
    if origin == "source":
        raise ConfigError(
            f"stream {stream.name!r} takes the names of sources for objects, and a file has no source",
            hint='columns.object = { from = "file name" } or { value = "ID" }, or a source that reads files',
        )
    return () if origin is None else (name_of(path),)


def _source(
    files: "_Files", stream: StreamSettings, stack: ExitStack, *, as_they_stand: bool
) -> Ordered:
    """The records of files in the order of their times, where they have any and nobody wants them as they stand."""
    if as_they_stand or stream.columns.event_ts is None:
        return Ordered(files.chunks(), 0)
    is_owned = stream.columns.object_from is not None
    if is_owned and len(files.readers) > 1 and format_of(stream.format).remembers:
        raise ConfigError(
            f"{len(files.readers)} files of {stream.format} whose names are their objects cannot be sorted together",
            hint="a line needs those before it of its own file: replay one after the other, or --as-they-stand",
        )
    return in_order(files.readers, stream, stack)


def _time(log: Log, stream: StreamSettings) -> EventTime:
    with log.locked():
        return time_of(log, stream)


class _Files:
    """Files that are read as often as they are needed; `broken` are those whose packed bytes end early."""

    def __init__(
        self, paths: Sequence[Path], stream: StreamSettings, pace: _Pace
    ) -> None:
        self._stream, self._size = stream, pace.segment_bytes
        self.readers = [partial(self._read, path) for path in paths]
        self.broken: dict[Path, None] = {}
        self._sizes = {path: path.stat().st_size for path in paths if path.is_file()}

    def grown(self) -> tuple[Path, ...]:
        """The files that are larger now than they were before they were read."""
        return tuple(
            path for path, size in self._sizes.items() if path.stat().st_size > size
        )

    def chunks(self) -> Iterator[Chunk]:
        """The chunks of all files."""
        return chain.from_iterable(read() for read in self.readers)

    def _read(self, path: Path) -> Iterator[Chunk]:
        owners = owners_of(self._stream, path)
        with opened(path, encoding=self._stream.encoding) as file:
            for chunk in chunks(file.source, self._stream, size=self._size):
                yield replace(chunk, owners=owners) if owners else chunk
            if file.broken:
                self.broken[path] = None


def _remembering(
    source: Iterator[Chunk], stream: StreamSettings, pace: _Pace
) -> Iterator[tuple[bytes, int]]:
    """Segments to be, as `_payloads` has them, with what stands in front of each."""
    memory = Memory(stream)
    for payload, count, before in _payloads(source, stream, pace):
        said = memory.put_in_front(payload, arrival_us=pace.clock())
        yield also(said, before), count


def _check(pace: _Pace, stream: StreamSettings) -> None:
    if isinstance(pace.rate, float | int) and not pace.rate > 0:
        raise ConfigError(
            f"a rate of {pace.rate} records a second", hint="above 0, or fast, or event"
        )
    if pace.rate == "event" and stream.columns.event_ts is None:
        raise ConfigError(
            f"stream {stream.name!r} has no event time",
            hint="give a rate in records a second",
        )
    if not (pace.speed > 0 and pace.segment_s > 0):
        raise ConfigError(
            f"a speed of {pace.speed} and segments of {pace.segment_s} s",
            hint="both above 0",
        )
    if not 0 < pace.segment_bytes <= _LARGEST:
        raise ConfigError(
            f"segments of {pace.segment_bytes} bytes",
            hint=f"above 0, at most {_LARGEST}",
        )


def _payloads(
    source: Iterator[Chunk], stream: StreamSettings, pace: _Pace
) -> Iterator[tuple[bytes, int, SaidBefore]]:
    """Segments to be, each when it is due, with the number of their records and what stands in front of them."""
    if pace.rate == "fast":
        for chunk in source:
            yield from _by_size(chunk, 0, len(chunk.spans), pace)
        return
    start_us, segment_us = pace.clock(), max(round(pace.segment_s * 1e6), 1)
    due_us = (
        _due_by_event(stream, pace.speed)
        if pace.rate == "event"
        else _due_by_rate(float(pace.rate))
    )
    for chunk in source:
        due, at = due_us(chunk), 0
        while at < len(due):
            # A segment holds what is due by the end of its stretch; who is behind sends all that is overdue at once.
            tick = (int(due[at]) // segment_us + 1) * segment_us
            elapsed = pace.clock() - start_us
            if elapsed < tick:
                pace.sleep((tick - elapsed) / 1e6)
            stop = int(np.searchsorted(due, max(tick, elapsed)))
            yield from _by_size(chunk, at, stop, pace)
            at = stop


def _by_size(
    chunk: Chunk, start: int, stop: int, pace: _Pace
) -> Iterator[tuple[bytes, int, SaidBefore]]:
    """Records `start` to `stop` of a chunk, in payloads of at most `segment_bytes`; a longer record stands alone."""
    starts = chunk.spans.starts
    while start < stop:
        around = len(chunk.header) + len(chunk.footer)
        room = starts[start] + max(pace.segment_bytes - around, 1)
        end = min(
            max(int(np.searchsorted(chunk.spans.ends, room, "right")), start + 1), stop
        )
        yield chunk.payload(start, end), end - start, chunk.before(start, end)
        start = end


def _due_by_rate(rate: float) -> Callable[[Chunk], NDArray[np.int64]]:
    """When each record of the next chunk is due, us since the start."""
    before = 0

    def due(chunk: Chunk) -> NDArray[np.int64]:
        nonlocal before
        numbers = np.arange(before, before + len(chunk.spans), dtype=np.float64)
        before += len(chunk.spans)
        return (numbers * 1e6 / rate).astype(np.int64)

    return due


def _due_by_event(
    stream: StreamSettings, speed: float
) -> Callable[[Chunk], NDArray[np.int64]]:
    """The same by event times: the largest so far, counted from the first that the file has."""
    judged = replace(stream, max_ahead_s=None)
    first: int | None = None
    largest = 0

    def due(chunk: Chunk) -> NDArray[np.int64]:
        nonlocal first, largest
        count = len(chunk.spans)
        fixes = decode(chunk.payload(0, count), judged, arrival_us=0).fixes
        times = fixes["event_ts"].to_numpy()
        if first is None and len(times):
            first = largest = int(times[0])
        known = np.full(count, largest, np.int64)
        known[np.minimum(fixes["row"].to_numpy(), count - 1)] = times
        known = np.maximum(np.maximum.accumulate(known), largest)
        largest = int(known[-1])
        return np.asarray((known - (first or 0)) / speed, np.int64)

    return due
