"""The records of files in the order of their event times, whatever order they stand in: a sort that is never in memory.

    as they stand    bus0 10:00, 10:30, 11:00    bus1 10:05, 10:35           what an export gives, by vehicle
    in order         bus0 10:00  bus1 10:05  bus0 10:30  bus1 10:35  bus0 11:00

Files are read once for their times alone. Where these ascend, that is all. Else records are dealt out, as they are, to
temporary files by spans of time, each of which is small enough to be sorted in memory; equal times keep the order in
which they stood. These files have no names: who is killed leaves nothing.

A record without a time keeps its place behind the one in front of it. The records of one object that end `_LONG_AGO`
years before all others come last: its clock was behind (GPS counts 1,024 weeks), so they are late, and no beginning.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.decode import decode, event_times
from st_common.formats.chunk import Chunk
from st_common.formats.registry import format_of

Ints = NDArray[np.int64]
Chunks = Callable[[], Iterator[Chunk]]
"""Gives the chunks of a file, as often as it is asked."""

PART_BYTES = 32 << 20
"""What is sorted at once, unless files would make more than `_MOST_PARTS` of it."""
_MOST_PARTS = 256
_SAMPLE = 1 << 20
_YEAR_US = 365 * 86_400_000_000
_YEARS = 300
_LONG_AGO = 10
_LF = 10
_UNKNOWN = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Ordered:
    """Records in the order of their times.

    Attributes:
        chunks: with the time of each record; where they were sorted also with its line in the file.
        descents: in how many places of the files time goes back.
    """

    chunks: Iterator[Chunk]
    descents: int


def in_order(
    files: Sequence[Chunks], stream: StreamSettings, stack: ExitStack
) -> Ordered:
    """The records of some files in the order of their event times; equal ones keep the order of the files.

    Args:
        files: whose records are one feed.
        stream: how they are read; it has a column of times.
        stack: holds temporary files until it is closed: they take as much of the disk as the records.

    Raises:
        ConfigError: a file cannot be read.
    """
    keys = Keys(_temporary(stack))
    for chunk in chain.from_iterable(read() for read in files):
        keys.add(*_times_of(chunk, stream), size=int(chunk.spans.ends[-1]))
    long_ago_us = _long_ago(keys.years)
    if not keys.descents and long_ago_us is None:
        every = chain.from_iterable(read() for read in files)
        return Ordered(_with_times(every, keys), 0)
    parts = _Parts(keys, stack, long_ago_us)
    numbered = (_with_lines(read(), stream) for read in files)
    for chunk in _with_times(chain.from_iterable(numbered), keys):
        parts.add(chunk, stream)
    return Ordered(parts.chunks(), keys.descents)


def _temporary(stack: ExitStack) -> IO[bytes]:
    """A file without a name."""
    return stack.enter_context(tempfile.TemporaryFile())


def _times_of(chunk: Chunk, stream: StreamSettings) -> tuple[Ints, NDArray[np.bool_]]:
    """The times of a chunk's records, and where they have one; nowhere where it is not known which is whose."""
    count = len(chunk.spans)
    times, known = event_times(chunk.payload(0, count), stream)
    if len(times) != count:
        return np.zeros(count, np.int64), np.zeros(count, bool)
    return times, known


class Keys:
    """The times of records in a file: what has none has that of the record in front, the first ones the first time.

    Args:
        file: an empty one, which is written and read here alone.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._last, self._first = file, _UNKNOWN, 0
        self.count = self.size = self.descents = 0
        self.years = np.zeros(_YEARS, np.int64)
        """How many records are of each year since 1970."""

    def add(self, times: Ints, known: NDArray[np.bool_], *, size: int) -> None:
        """The times of the next records, and how many bytes these have."""
        at = np.maximum.accumulate(np.where(known, np.arange(len(times)), -1))
        keys = np.where(at < 0, self._last, times[np.maximum(at, 0)])
        before = np.append(self._last, keys[:-1])
        self.descents += int((keys < before).sum())
        if self._last == _UNKNOWN and known.any():
            self._first = int(times[known][0])
        told = times[known]
        self.years += np.bincount(told // _YEAR_US, minlength=_YEARS)[:_YEARS]
        keys.astype(np.int64).tofile(self._file)
        self._last = int(keys[-1])
        self.count += len(keys)
        self.size += size

    def times(self, start: int, stop: int) -> Ints:
        """Those of records `start` to `stop`, not included."""
        return self._known(self._all()[start:stop])

    def sample(self) -> Ints:
        """Some of them, from everywhere."""
        return self._known(self._all()[:: max(self.count // _SAMPLE, 1)])

    def _all(self) -> Any:
        self._file.flush()
        return np.memmap(self._file, np.int64, mode="r", shape=(self.count,))

    def _known(self, keys: Any) -> Ints:
        return np.where(keys == _UNKNOWN, self._first, keys)


def _long_ago(years: Ints) -> int | None:
    """The end of what lies ten years before all else (us UTC); None: nothing does."""
    filled = np.flatnonzero(years)
    for before, behind in pairwise(filled.tolist()):
        if behind - before > _LONG_AGO:
            return int((before + 1) * _YEAR_US)
    return None


def _with_times(chunks: Iterator[Chunk], keys: Keys) -> Iterator[Chunk]:
    at = 0
    for chunk in chunks:
        stop = at + len(chunk.spans)
        columns = {**chunk.columns(), "times": keys.times(at, stop)}
        yield chunk.with_columns(columns)
        at = stop


def _with_lines(chunks: Iterator[Chunk], stream: StreamSettings) -> Iterator[Chunk]:
    """The chunks of a file with the line of each record, from 1 on; where records are no lines, with their numbers."""
    is_lines = format_of(stream.format).is_lines
    at = stream.skip_lines + 1 if is_lines else 1
    for number, chunk in enumerate(chunks):
        if not is_lines:
            lines = np.arange(at, at + len(chunk.spans))
            at += len(chunk.spans)
        else:
            at += chunk.header.count(b"\n") if number == 0 else 0
            ends = np.flatnonzero(chunk.spans.buffer == _LF)
            lines = at + np.searchsorted(ends, chunk.spans.starts)
            at += len(ends)
        yield chunk.with_columns({**chunk.columns(), "lines": lines})


class _Parts:
    """Records by spans of time, each in a file.

    Args:
        keys: the times of all records.
        stack: closes the files.
        long_ago_us: what is earlier may be of a clock that was behind; None: nothing is.
    """

    def __init__(self, keys: Keys, stack: ExitStack, long_ago_us: int | None) -> None:
        count = int(np.clip(keys.size // PART_BYTES + 1, 1, _MOST_PARTS))
        shares = np.arange(1, count) / count
        self._borders = np.unique(np.quantile(keys.sample(), shares, method="lower"))
        # One more for what is long ago.
        self._files = [_temporary(stack) for _ in range(len(self._borders) + 2)]
        self._long_ago_us = long_ago_us
        self._behind: set[str] = set()
        self._owners: dict[str, int] = {}
        self._heads: dict[str, int] = {}
        self._alike: list[Chunk] = []

    def add(self, chunk: Chunk, stream: StreamSettings) -> None:
        """Deals out the records of a chunk that knows their times."""
        times = chunk.columns()["times"]
        part = np.searchsorted(self._borders, times, side="right")
        if self._long_ago_us is not None and (times < self._long_ago_us).any():
            is_old = times < self._long_ago_us
            self._behind |= _objects(chunk, is_old, stream)
            part[is_old] = len(self._files) - 1
        rows = chunk.rows()
        for name, values in self._facts(chunk).items():
            rows = rows.append_column(f"{_OWN}{name}", pa.array(values, pa.int64()))
        order = np.argsort(part, kind="stable")
        rows, part = rows.take(pa.array(order)), part[order]
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), len(part)]):
            _write(self._files[int(part[start])], rows.slice(start, stop - start))

    def _facts(self, chunk: Chunk) -> dict[str, Ints]:
        """What is known of each record: also of which chunk it was, and whose it is."""
        count = len(chunk.spans)
        facts = {"head": np.full(count, self._head(chunk)), **chunk.columns()}
        if chunk.owners:
            codes = [
                self._owners.setdefault(n, len(self._owners)) for n in chunk.owners
            ]
            whose = (
                chunk.owner_of if chunk.owner_of is not None else np.zeros(count, int)
            )
            facts["owner_of"] = np.array(codes)[whose]
        return facts

    def _head(self, chunk: Chunk) -> int:
        """The number of the chunks whose records can stand together with those of this one."""
        names = [*chunk.head, chunk.line_end, *(n.encode() for n in _names(chunk))]
        document = json.dumps(chunk.document, sort_keys=True)
        key = json.dumps([each.hex() for each in names]) + document
        if key not in self._heads:
            self._heads[key] = len(self._heads)
            self._alike.append(chunk.part(0, 0))
        return self._heads[key]

    def chunks(self) -> Iterator[Chunk]:
        """All records, in order."""
        *files, old = self._files
        is_behind = len(self._behind) == 1
        for file in [*files, old] if is_behind else [old, *files]:
            rows = _read(file)
            if not len(rows):
                continue
            order = np.argsort(rows[f"{_OWN}times"].to_numpy(), kind="stable")
            yield from self._in_runs(rows.take(pa.array(order)))

    def _in_runs(self, rows: pa.Table) -> Iterator[Chunk]:
        """Adjacent records that can stand together."""
        head = rows[f"{_OWN}head"].to_numpy()
        starts = np.flatnonzero(np.diff(head, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), len(head)]):
            yield self._chunk(rows.slice(start, stop - start), int(head[start]))

    def _chunk(self, rows: pa.Table, head: int) -> Chunk:
        like = self._alike[head]
        columns = {
            name.removeprefix(_OWN): rows[name].to_numpy()
            for name in rows.column_names
            if name.startswith(_OWN) and name != f"{_OWN}head"
        }
        chunk = like.of_rows(rows.select(_names(like)).combine_chunks())
        owners = tuple(self._owners) if like.owners else ()
        return chunk.with_columns(columns, owners=owners)


_OWN = "fairway:"


def _names(chunk: Chunk) -> list[str]:
    """The columns of a chunk's records."""
    return list(chunk.part(0, 0).rows().column_names)


def _objects(
    chunk: Chunk, which: NDArray[np.bool_], stream: StreamSettings
) -> set[str]:
    """The objects of some records of a chunk."""
    of_any_time = replace(stream, max_ahead_s=None)
    payload = chunk.payload(0, len(chunk.spans))
    fixes = decode(payload, of_any_time, arrival_us=0).fixes
    rows = fixes["row"].to_numpy()
    mine = fixes.filter(pa.array(which[np.minimum(rows, len(which) - 1)]))
    return set(mine["object"].unique().to_pylist())


def _write(file: IO[bytes], rows: pa.Table) -> None:
    with pa.ipc.new_stream(file, rows.schema) as writer:
        writer.write_table(rows)


def _read(file: IO[bytes]) -> pa.Table:
    """All rows of a file that `_write` wrote, in that order."""
    size = file.tell()
    file.seek(0)
    tables = []
    while file.tell() < size:
        tables.append(pa.ipc.open_stream(file).read_all())
    whole = (
        pa.concat_tables(tables, promote_options="permissive")
        if tables
        else pa.table({})
    )
    return whole.combine_chunks()
