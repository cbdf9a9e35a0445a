"""Pieces of a byte buffer (lines, records) as arrays of starts and ends, found and picked without a loop over them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_LF, _CR = 10, 13
_GATHER_COST = 8  # of one byte, compared with passing over one
_LINE_END = 2  # bytes at most: CR, LF
_BOM = np.frombuffer(b"\xef\xbb\xbf", np.uint8)


@dataclass(frozen=True, slots=True)
class Spans:
    """Pieces of `buffer`: bytes from `starts[i]` up to `ends[i]`, not included; starts and ends ascend."""

    buffer: Bytes
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, which: NDArray[np.bool_] | Ints) -> "Spans":
        """Some of the pieces, by a mask or by their numbers."""
        return Spans(self.buffer, self.starts[which], self.ends[which])

    def texts(self, limit: int | None = None) -> pa.Array:
        """The pieces as a binary array, each cut at `limit` bytes."""
        sizes = self.ends - self.starts
        if limit is not None:
            sizes = np.minimum(sizes, limit)
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if (
            limit is None
            and offsets[-1] * _GATHER_COST > len(self.buffer)
            and self._ascend()
        ):
            return binary_array(self.buffer[self._mask()], offsets)
        data = self.buffer[
            np.repeat(self.starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        ]
        return binary_array(data, offsets)

    def _ascend(self) -> bool:
        return bool((self.starts[1:] >= self.ends[:-1]).all())

    def _mask(self) -> Mask:
        """Which bytes of the buffer lie in a piece."""
        borders = np.empty(2 * len(self) + 2, np.int64)
        borders[0], borders[-1] = 0, len(self.buffer)
        borders[1:-1:2], borders[2:-1:2] = self.starts, self.ends
        inside = np.zeros(len(borders) - 1, bool)
        inside[1::2] = True
        return np.repeat(inside, np.diff(borders))

    def with_line_ends(self, which: NDArray[np.bool_] | Ints) -> pa.Array:
        """Some of the lines as a binary array, each with the line end behind it: cheaper than without.

        A blank line or the lack of a last line end shows as two line ends, or none.
        """
        behind = np.append(self.starts[1:], len(self.buffer))
        # Nothing else between them, or behind the last: no need to cut.
        if (behind - self.ends <= _LINE_END).all():
            return binary_array(
                self.buffer, np.append(self.starts, len(self.buffer))
            ).take(pa.array(_numbers(which)))
        padded = np.append(self.buffer, np.uint8(_LF))
        padded[self.ends] = _LF
        return Spans(padded, self.starts[which], self.ends[which] + 1).texts()

    def without(self, text: bytes) -> "Spans":
        """The pieces that are not exactly `text`."""
        same = self.ends - self.starts == len(text)
        if same.any():
            same[same] = pc.equal(
                self.select(same).texts(), pa.scalar(text, pa.binary())
            ).to_numpy(zero_copy_only=False)
        return self.select(~same) if same.any() else self

    def holding(self, places: Ints) -> Mask:
        """Which pieces hold at least one of the ascending places in the buffer."""
        return np.searchsorted(places, self.ends) > np.searchsorted(places, self.starts)

    def count(self, places: Ints) -> Ints:
        """How many of the ascending places each piece holds."""
        return np.asarray(
            np.searchsorted(places, self.ends) - np.searchsorted(places, self.starts),
            np.int64,
        )


def _numbers(which: NDArray[np.bool_] | Ints) -> Ints:
    return np.flatnonzero(which) if which.dtype == bool else which.astype(np.int64)


def binary_array(data: Bytes, offsets: Ints) -> pa.Array:
    """A binary array over `data` without a copy; value i is data[offsets[i] : offsets[i + 1]]."""
    buffers = [
        None,
        pa.py_buffer(offsets.astype(np.int32)),
        pa.py_buffer(np.ascontiguousarray(data)),
    ]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def byte_places(buffer: Bytes, byte: int) -> Ints:
    """Where a byte stands in the buffer, ascending."""
    return np.flatnonzero(buffer == byte)


def lines(buffer: Bytes) -> Spans:
    """All lines that are not empty, without their line ends (LF or CRLF) and without byte order marks at their starts.

    A last line needs no line end.
    """
    breaks = byte_places(buffer, _LF)
    if len(buffer) and (not len(breaks) or breaks[-1] != len(buffer) - 1):
        breaks = np.append(breaks, len(buffer))
    starts = np.concatenate([np.zeros(min(len(breaks), 1), np.int64), breaks[:-1] + 1])
    starts = _after_marks(buffer, starts, breaks)
    returned = (
        (breaks > starts) & (buffer[breaks - 1] == _CR)
        if len(breaks)
        else np.zeros(0, bool)
    )
    ends = breaks - returned
    filled = ends > starts
    return Spans(buffer, starts[filled], ends[filled])


def count_lines(buffer: Bytes, *, blank: bool) -> int:
    """The number of lines that are not empty, as `lines` finds them where there are no byte order marks.

    `blank` says whether two line ends may follow each other at all; without it the count is cheaper.
    """
    return (
        len(lines(buffer))
        if blank
        else int(np.count_nonzero(buffer == _LF)) + bool(buffer[-1:] != _LF)
    )


def odd_lines(buffer: Bytes, byte: int) -> Mask:
    """Which lines, empty ones included, hold a byte an odd number of times."""
    breaks = byte_places(buffer[:-1], _LF)
    is_byte = (buffer == byte).view(np.uint8)
    sums = (
        np.add.reduceat(is_byte, np.append(0, breaks + 1)) if len(is_byte) else is_byte
    )  # modulo 256: even stays even
    return np.asarray(sums % 2 == 1, bool)


def _after_marks(buffer: Bytes, starts: Ints, ends: Ints) -> Ints:
    """The starts, moved behind byte order marks (there may be several when files were joined)."""
    if not len(starts) or not (buffer == _BOM[0]).any():
        return starts
    while True:
        marked = ends - starts >= len(_BOM)
        for offset, byte in enumerate(_BOM):
            marked[marked] = buffer[starts[marked] + offset] == byte
        if not marked.any():
            return starts
        starts = starts + len(_BOM) * marked


def utf8_faults(buffer: Bytes) -> Ints:
    """Where bytes stand that break UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).

    Ascending. For a sequence that is cut short it is the place of its first byte, for a stray byte its own place.
    """
    places = np.flatnonzero(buffer >= 0x80)
    lead = buffer[places]
    padded = np.append(buffer, np.zeros(3, np.uint8))
    size = np.select(
        [
            (lead >= 0xC2) & (lead < 0xE0),
            (lead >= 0xE0) & (lead < 0xF0),
            (lead >= 0xF0) & (lead < 0xF5),
        ],
        [2, 3, 4],
        0,
    )
    whole = size > 0
    for step in (1, 2, 3):
        whole &= (size <= step) | (padded[places + step] & 0xC0 == 0x80)
    second = padded[places + 1]
    whole &= ~(((lead == 0xE0) & (second < 0xA0)) | ((lead == 0xED) & (second >= 0xA0)))
    whole &= ~(((lead == 0xF0) & (second < 0x90)) | ((lead == 0xF4) & (second >= 0x90)))
    covered = np.zeros(len(padded), bool)
    for step in (1, 2, 3):
        covered[places[whole & (size > step)] + step] = True
    return places[~whole & ~covered[places]]
