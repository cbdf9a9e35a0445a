"""The bits of AIS messages, six in each symbol, read for all messages at once (ITU-R M.1371-5)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.ais_messages import Messages
from st_common.formats.spans import Ints, Mask

_BITS = 6  # of a symbol
_TYPES = 64
_NO_PLACE = -1
_END = ord("@")  # of a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a number stands in messages of some types.

    Attributes:
        at: its first bit, by type.
        width: bits.
        signed: whether it is negative where its first bit is set.
        per: how many make a unit.
        none: the value that stands for "not available".
        most: the largest value that has a meaning; None: all have.
    """

    at: Mapping[int, int]
    width: int
    signed: bool = False
    per: int = 1
    none: int | None = None
    most: int | None = None


class Bits:
    """The bits of messages.

    Args:
        messages: whole ones.
    """

    def __init__(self, messages: Messages) -> None:
        codes = messages.data - np.uint8(48)
        self._symbols = np.append(
            codes - 8 * (codes > 40).astype(np.uint8), np.uint8(0)
        )
        self._starts, self._ends = messages.starts, messages.ends
        self.count = _BITS * (messages.ends - messages.starts) - messages.fill
        self.type = self.unsigned(np.zeros(len(self.count), np.int64), _BITS)

    def unsigned(self, at: Ints, width: int) -> Ints:
        """The numbers of `width` bits that start at a bit of each message; bits behind its end are 0."""
        first, count = at // _BITS, (width + 2 * _BITS - 2) // _BITS
        value = np.zeros(len(at), np.int64)
        for step in range(count):
            place = self._starts + first + step
            inside = place < self._ends
            symbol = self._symbols[np.where(inside, place, -1)]
            value = value << _BITS | np.where(inside, symbol, 0)
        shift = (first + count) * _BITS - at - width
        return value >> shift & (1 << width) - 1

    def number(self, layout: Layout) -> tuple[Ints, Mask]:
        """The values of a number, and bool[n]: which messages have it, whole and with a meaning."""
        at = _lookup(layout.at)[self.type]
        value = self.unsigned(np.maximum(at, 0), layout.width)
        if layout.signed:
            value -= (value >> layout.width - 1) << layout.width
        has = (at != _NO_PLACE) & (at + layout.width <= self.count)
        if layout.none is not None:
            has &= value != layout.none
        if layout.most is not None:
            has &= value <= layout.most
        return value, has

    def is_whole(self, layout: Layout) -> Mask:
        """Which messages are long enough for the number that their type has."""
        at = _lookup(layout.at)[self.type]
        is_whole: Mask = (at != _NO_PLACE) & (at + layout.width <= self.count)
        return is_whole

    def text(self, at: Mapping[int, int], size: int, only: Mask) -> pa.Array:
        """The texts of `size` symbols that start at a bit by type; null where there is none, or nothing but blanks.

        Args:
            at: the first bit, by type.
            size: symbols.
            only: which messages are looked at.
        """
        rows = np.flatnonzero(only & (_lookup(at)[self.type] != _NO_PLACE))
        some, place = self._select(rows), _lookup(at)[self.type[rows]]
        symbols = np.empty((len(rows), size), np.uint8)
        for step in range(size):
            symbols[:, step] = some.unsigned(place + _BITS * step, _BITS)
        letters = np.where(symbols < 32, symbols + np.uint8(64), symbols)
        ended = np.logical_or.accumulate(letters == _END, axis=1)
        letters[ended] = ord(" ")
        offsets = np.arange(0, (len(rows) + 1) * size, size, dtype=np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes())]
        texts = pa.Array.from_buffers(pa.string(), len(rows), buffers)
        texts = pc.utf8_trim_whitespace(texts)
        filled = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        places = np.full(len(self.type), _NO_PLACE)
        places[rows] = np.arange(len(rows))
        return filled.take(pa.array(places, mask=places < 0))

    def _select(self, rows: Ints) -> "Bits":
        some = object.__new__(Bits)
        some._symbols = self._symbols
        some._starts, some._ends = self._starts[rows], self._ends[rows]
        return some


def _lookup(at: Mapping[int, int]) -> Ints:
    places = np.full(_TYPES, _NO_PLACE)
    places[list(at)] = list(at.values())
    return places
