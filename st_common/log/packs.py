"""Closed segments of a log in few files: packs of adjacent numbers, never changed.

    packs/000000000000-000000017650-17650.pack      segments 0 to 17,649, all of them
    packs/000000017650-000000035410-17760.pack      those behind them; then come single files, see `stored_log`
    raw-packs/000000000000-000000017650-17650.pack  the bytes of their packets as they arrived
    packs/000000000000-000000035410-12.rest         control rows of segments 0 to 35,409, after a purge of these

A name says which numbers a pack stands for, and how many of them it holds: so it says how long its index is.

    0          numbers that it holds (i8[n]), ascending
    8 n        where each begins, and where the last one ends (i8[n + 1])
    16 n + 8   CRC-32 of the index (u4), 4 unused
    16 n + 16  what it holds, one after the other: of segments header and payload, as in a file of their own

A damaged index of segments is made again from their headers, which say how long each is. A rest is laid out alike; of
records it has headers alone. Of packs that overlap, for a packer was killed, the one that reaches farthest counts: both
hold the same.
"""

import re
import struct
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from st_common.errors import LogError, MissingError
from st_common.log.segment import HEADER_BYTES, numbered_size
from st_common.storage import Storage

if TYPE_CHECKING:
    import numpy as np

PACKS = "packs"
RAW_PACKS = "raw-packs"
_CRC = struct.Struct("<I4x")
_NAME = re.compile(r"(\d{12})-(\d{12})-(\d+)\.(pack|rest)")
_INDEXES = 16
"""Indexes that a log keeps in memory: 280 KB for an hour of five segments a second."""
PAUSE_S = 60
"""How old a listing of packs may be, or a look at the log's end: nothing is packed that is younger than ten minutes."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A pack by what its name says.

    Attributes:
        first: the first number that it stands for.
        end: the number behind the last one.
        count: how many of them it holds.
        is_rest: it holds what retention has left.
    """

    first: int
    end: int
    count: int
    is_rest: bool = False

    @property
    def name(self) -> str:
        """The last part of its key."""
        kind = "rest" if self.is_rest else "pack"
        return f"{self.first:012d}-{self.end:012d}-{self.count}.{kind}"

    @property
    def body(self) -> int:
        """The first byte behind its index."""
        return 16 * self.count + 16


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Where a pack has what it holds.

    Attributes:
        numbers: ascending; int64[n].
        starts: the first byte of each, and the byte behind the last one; int64[n + 1].
    """

    numbers: "np.ndarray"
    starts: "np.ndarray"

    def place(self, number: int) -> tuple[int, int] | None:
        """The first byte and the length of what a pack holds of a number; None for nothing."""
        import numpy as np  # Airflow reads logs without it

        at = int(np.searchsorted(self.numbers, number))
        if at == len(self.numbers) or self.numbers[at] != number:
            return None
        return int(self.starts[at]), int(self.starts[at + 1] - self.starts[at])


class Packs:
    """The packs of one kind of a log; making one touches nothing.

    Args:
        storage: what holds the log's objects.
        folder: `PACKS` or `RAW_PACKS`.
    """

    def __init__(self, storage: Storage, folder: str = PACKS) -> None:
        self._storage, self._folder = storage, folder
        self._spans: list[Span] = []
        self._listed_s = -float("inf")
        self._index = lru_cache(_INDEXES)(self._read_index)

    def stored(self) -> list[Span]:
        """All packs that lie there, by their first numbers, also those that another one covers.

        Raises:
            LogError: another file lies in the folder.
        """
        names = self._storage.names(self._folder)
        return [_span_of(name, self._folder) for name in names]

    def spans(self, *, anew: bool = False) -> list[Span]:
        """The packs that count, ascending.

        Args:
            anew: list the folder again; else it may be what was seen within the last minute.
        """
        if anew or uptime_s() - self._listed_s > PAUSE_S:
            # Noted first: what is packed while it is listed may be missing.
            listed_s, self._spans = uptime_s(), _counting(self.stored())
            self._listed_s = listed_s
        return self._spans

    def end(self, *, anew: bool = False) -> int:
        """The number behind the last pack; 0 when there is none."""
        spans = self.spans(anew=anew)
        return spans[-1].end if spans else 0

    def key(self, span: Span) -> str:
        """The key of a pack."""
        return f"{self._folder}/{span.name}"

    def span(self, number: int, *, anew: bool = False) -> Span | None:
        """The pack that stands for a number; None for a number in front of all packs, or behind."""
        spans = self.spans(anew=anew)
        at = bisect_right(spans, number, key=lambda span: span.first) - 1
        return spans[at] if at >= 0 and number < spans[at].end else None

    def has(self, number: int) -> bool:
        """Whether a pack holds something of a number."""
        span = self.span(number) or self.span(number, anew=True)
        return span is not None and self._found(number, span)[1] > 0

    def read(self, number: int, *, length: int | None = None) -> bytes:
        """What a pack holds of a number.

        Args:
            number: the segment's.
            length: how many bytes at most; None: all.

        Raises:
            MissingError: no pack holds any.
            LogError: the index of the pack is damaged.
        """
        for anew in (False, True):  # retention puts another pack in the place of some
            span = self.span(number, anew=anew)
            start, size = (0, 0) if span is None else self._found(number, span)
            if span is not None and size:
                size = size if length is None else min(size, length)
                try:
                    return self._storage.read(self.key(span), start=start, length=size)
                except MissingError:
                    continue
        raise MissingError(f"no pack holds segment {number}")

    def index(self, span: Span) -> Index:
        """Where a pack has what it holds.

        Raises:
            MissingError: it is gone.
            LogError: its index is damaged.
        """
        return self._index(span)

    def create(
        self, span: Span, sizes: Mapping[int, int], read: Callable[[int], bytes]
    ) -> bool:
        """Makes a pack, whole and durable when this returns; never over another.

        Args:
            span: its name.
            sizes: the numbers that it holds, ascending, with the bytes of each.
            read: gives these bytes; called for one after the other.

        Returns:
            Whether it was made; False when there is one of this name already.

        Raises:
            StorageError: the disk is full, or refuses; nothing was made.
        """
        made = self._storage.create(self.key(span), _parts(span, sizes, read))
        self.spans(anew=True)
        return made

    def delete(self, span: Span) -> None:
        """Removes a pack, if it is there."""
        self._storage.delete(self.key(span))
        self.spans(anew=True)

    def _found(self, number: int, span: Span) -> tuple[int, int]:
        """The first byte and the length of what a pack holds of a number; no bytes, where it holds none or is gone."""
        try:
            return self.index(span).place(number) or (0, 0)
        except MissingError:
            return 0, 0

    def _read_index(self, span: Span) -> Index:
        import numpy as np  # Airflow reads logs without it

        data = self._storage.read(self.key(span), length=span.body)
        checked, count = len(data) - 8, span.count
        if len(data) == span.body and data[checked:] == _CRC.pack(
            zlib.crc32(data[:checked])
        ):
            values = np.frombuffer(data, "<i8", 2 * count + 1)
            return Index(values[:count], values[count:])
        if self._folder != PACKS:
            raise _damaged(self.key(span))
        found = list(self._by_headers(span))
        numbers, starts = np.array(found, np.int64).reshape(-1, 2).T
        return Index(numbers[:-1].copy(), starts.copy())

    def _by_headers(self, span: Span) -> Iterator[tuple[int, int]]:
        """Number and first byte of each segment, as their headers say; at last the byte behind them."""
        start = span.body
        for _ in range(span.count):
            header = self._storage.read(
                self.key(span), start=start, length=HEADER_BYTES
            )
            said = numbered_size(header)
            if said is None:
                raise _damaged(self.key(span))
            number, size, is_control = said
            yield number, start
            start += HEADER_BYTES + (size if is_control or not span.is_rest else 0)
        yield span.end, start


def uptime_s() -> float:
    """Seconds since the machine was started, those in which it was suspended too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _span_of(name: str, folder: str) -> Span:
    match = _NAME.fullmatch(name)
    if match is None:
        raise LogError(
            f"{folder}/{name} is no pack of segments",
            hint="only Fairway writes here; move the file away",
        )
    first, end, count = map(int, match.groups()[:3])
    return Span(first, end, count, is_rest=match[4] == "rest")


def _counting(stored: list[Span]) -> list[Span]:
    """Packs without those that another one covers; what stands in a rest is gone from packs."""
    counting: list[Span] = []
    for span in sorted(
        stored, key=lambda span: (span.first, -span.end, not span.is_rest)
    ):
        if not counting or span.end > counting[-1].end:
            counting.append(span)
    return counting


def _parts(
    span: Span, sizes: Mapping[int, int], read: Callable[[int], bytes]
) -> Iterator[bytes]:
    """The bytes of a pack, one part after the other."""
    import numpy as np  # Airflow reads logs without it

    numbers = np.fromiter(sizes, "<i8", len(sizes))
    lengths = np.fromiter(sizes.values(), np.int64, len(sizes))
    starts = span.body + np.r_[0, np.cumsum(lengths)]
    index = numbers.tobytes() + starts.astype("<i8").tobytes()
    yield index + _CRC.pack(zlib.crc32(index))
    for number, size in sizes.items():
        data = read(number)
        if len(data) != size:
            raise LogError(
                f"segment {number} has {len(data)} bytes now, not {size}",
                hint="nothing else writes here",
            )
        yield data


def _damaged(key: str) -> LogError:
    return LogError(
        f"{key} is damaged: its index was changed",
        hint="restore this file from a copy",
    )
