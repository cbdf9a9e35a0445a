"""The sentences of AIS, each position with what its ship said of itself before."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.formats.ais_bits import Bits, Layout
from st_common.formats.ais_heard import Heard, heard_in
from st_common.formats.format_settings import FormatSettings
from st_common.formats.last_known import LastKnown
from st_common.formats.records import Reason, Records, columns_read
from st_common.formats.said_before import (
    NOTHING,
    Said,
    SaidBefore,
    Value,
    said_before,
)

_CLASS_A = (1, 2, 3)
_LAST_TYPE = 28
_LONG_RANGE = 27
_DEGREE, _COARSE_DEGREE = 600_000, 600  # in a minute's 10,000th, and its 10th


def _class_a(at: int) -> dict[int, int]:
    return dict.fromkeys(_CLASS_A, at)


def _degrees(at: dict[int, int], *, width: int, per: int, none: int) -> Layout:
    return Layout(at=at, width=width, signed=True, per=per, none=none * per)


_LONGITUDE = {**_class_a(61), 4: 79, 9: 61, 18: 57, 19: 57, 21: 164}
_LATITUDE = {**_class_a(89), 4: 107, 9: 89, 18: 85, 19: 85, 21: 192}
_SPEED = {**_class_a(50), 18: 46, 19: 46}
_COURSE = {**_class_a(116), 9: 116, 18: 112, 19: 112}
_MMSI = Layout(at=dict.fromkeys(range(64), 8), width=30)
_NUMBERS: Mapping[str, tuple[Layout, ...]] = {
    "longitude": (
        _degrees(_LONGITUDE, width=28, per=_DEGREE, none=181),
        _degrees({_LONG_RANGE: 44}, width=18, per=_COARSE_DEGREE, none=181),
    ),
    "latitude": (
        _degrees(_LATITUDE, width=27, per=_DEGREE, none=91),
        _degrees({_LONG_RANGE: 62}, width=17, per=_COARSE_DEGREE, none=91),
    ),
    "sog": (
        Layout(at=_SPEED, width=10, per=10, none=1023),
        Layout(at={9: 50}, width=10, none=1023),
        Layout(at={_LONG_RANGE: 79}, width=6, none=63),
    ),
    "cog": (
        Layout(at=_COURSE, width=12, per=10, most=3599),
        Layout(at={_LONG_RANGE: 85}, width=9, most=359),
    ),
    "heading": (Layout(at={**_class_a(128), 18: 124, 19: 124}, width=9, most=359),),
    "status": (Layout(at={**_class_a(38), _LONG_RANGE: 40}, width=4, none=15),),
    "accuracy": (
        Layout(
            at={**_class_a(60), 4: 78, 9: 60, 18: 56, 19: 56, 21: 163, 27: 38}, width=1
        ),
    ),
    "altitude": (Layout(at={9: 38}, width=12, none=4095),),
}
"""Numbers of a position; a column is where its type has it."""

_DIMENSIONS = {5: 240, 19: 271, 21: 219, 24: 132}
_SHIPTYPE = {5: 232, 19: 263, 24: 40}
_TEXTS: Mapping[str, tuple[tuple[dict[int, int], int], ...]] = {
    "name": (({5: 112, 19: 143, 21: 43, 24: 40}, 20),),
    "callsign": (({5: 70, 24: 90}, 7),),
    "destination": (({5: 302}, 20),),
}
"""Texts that a ship says of itself: where, and how many symbols."""

_TOLD_LATER = (*_TEXTS, "shiptype", "imo", "draught", "length", "width")
"""Columns that a position has from the message in which its ship said them last."""

_PART = Layout(at={24: 38}, width=2)  # of type 24: 0 has the name, 1 the rest
_AUXILIARY = 98  # an MMSI that starts so is a ship's boat: in the place of its size it names the ship


def read_ais(payload: bytes, stream: FormatSettings) -> Records:
    """The sentences of a payload; see `ais`."""
    before, records = said_before(payload)
    heard = heard_in(records, before)
    ships = _Ships(heard, before)
    fault = heard.fault
    fault[heard.sentences.rows[heard.messages.last]] = ships.kinds
    is_fix = pa.array(ships.kinds == Reason.NONE)
    fields = {name: ships.column(name).filter(is_fix) for name in columns_read(stream)}
    return Records(fault=fault[heard.earlier :], fields=fields, raw=heard.raw)


def said_in(payload: bytes, stream: FormatSettings) -> Said:
    """What a payload says that payloads behind it need: the columns that the stream's settings name, and open ends.

    Args:
        payload: with what was not finished before in front.
        stream: the settings.
    """
    before, records = said_before(payload)
    heard = heard_in(records, before)
    ships = _Ships(heard, NOTHING)
    wanted = [name for name in columns_read(stream) if name in _TOLD_LATER]
    asking = ships.mmsi[ships.kinds == Reason.NONE] if wanted else []
    return Said(
        asking=[str(mmsi) for mmsi in dict.fromkeys(asking)],
        objects=ships.last(wanted),
        unfinished=heard.unfinished(),
        received=heard.received(),
    )


def made_at(payload: bytes) -> pa.Array:
    """When the sentences of a payload were received (us UTC), those of a message together; null where none says it."""
    heard = heard_in(said_before(payload)[1], NOTHING)
    sentences, messages = heard.sentences, heard.messages
    times = sentences.times_us()
    together = np.maximum(times[messages.first], times[messages.last])
    times[messages.first] = times[messages.last] = together
    us = np.zeros(len(heard.fault), np.int64)
    us[sentences.rows] = times
    return pa.array(us, pa.timestamp("us", "UTC"), mask=us == 0)


def _kinds(bits: Bits) -> NDArray[np.int8]:
    """Which messages are positions (Reason.NONE), which are about something else, too short, or of no known type."""
    has_place, is_long = (np.zeros(len(bits.type), bool) for _ in range(2))
    for layout in _NUMBERS["latitude"]:
        has_place |= np.isin(bits.type, list(layout.at))
        is_long |= bits.is_whole(layout)
    kinds = np.where(has_place & is_long, Reason.NONE, Reason.NO_POSITION)
    kinds[(bits.type == 0) | (bits.type > _LAST_TYPE)] = Reason.UNREADABLE
    kinds[(has_place & ~is_long) | (bits.count < _MMSI.width + 8)] = Reason.INCOMPLETE
    return kinds.astype(np.int8)


class _Ships:
    """The columns of messages: their own, or what their ships said last.

    Args:
        heard: the messages.
        before: what ships said before.
    """

    def __init__(self, heard: Heard, before: SaidBefore) -> None:
        self._sentences, self._messages = heard.sentences, heard.messages
        self._bits = bits = Bits(heard.messages)
        self.kinds = _kinds(bits)
        self.mmsi, _ = bits.number(_MMSI)
        self._known = LastKnown(pa.array(self.mmsi), before)
        part, is_24 = bits.number(_PART)
        self._is_name = ~is_24 | (part == 0)
        self._is_rest = ~is_24 | (part == 1)

    def column(self, name: str) -> pa.Array:
        """The values of a column, one for each message: its own, or what its ship said last."""
        own: Mapping[str, Callable[[], pa.Array]] = {
            "mmsi": lambda: pa.array(self.mmsi),
            "type": lambda: pa.array(self._bits.type),
            "time": self._times,
        }
        if name in own:
            return own[name]()
        if name in _NUMBERS:
            return self._number(name)
        if name not in _TOLD_LATER:
            return pa.nulls(len(self.mmsi), pa.string())
        return self._known.values(name, self._said(name))

    def last(self, names: Sequence[str]) -> Mapping[str, Mapping[str, Value]]:
        """By MMSI what each ship has said of some columns at the end."""
        return self._known.last({name: self._said(name) for name in names})

    def _times(self) -> pa.Array:
        times = self._sentences.times_us()
        last, first = times[self._messages.last], times[self._messages.first]
        us = np.where(last == 0, first, last)
        return pa.array(us, pa.timestamp("us", "UTC"), mask=us == 0)

    def _number(self, name: str) -> pa.Array:
        layouts = _NUMBERS[name]
        values, known = np.zeros(len(self.mmsi)), np.zeros(len(self.mmsi), bool)
        for layout in layouts:
            value, has = self._bits.number(layout)
            values = np.where(has, value / layout.per, values)
            known |= has
        if name == "accuracy":
            return pa.array(values > 0, mask=~known)
        is_whole = all(layout.per == 1 for layout in layouts)
        return pa.array(values.astype(np.int64) if is_whole else values, mask=~known)

    def _said(self, name: str) -> pa.Array:
        """What a message says of its ship."""
        if name in _TEXTS:
            only = self._is_name if name == "name" else self._is_rest
            ((at, size),) = _TEXTS[name]
            return self._bits.text(at, size, only)
        if name == "length":
            return self._size(0, 9)
        if name == "width":
            return self._size(18, 6)
        return self._static(name)

    def _static(self, name: str) -> pa.Array:
        layouts = {
            "shiptype": Layout(at=_SHIPTYPE, width=8, none=0),
            "imo": Layout(at={5: 40}, width=30, none=0),
            "draught": Layout(at={5: 294}, width=8, none=0, per=10),
        }
        value, has = self._bits.number(layouts[name])
        has &= self._is_rest
        scaled = value / 10 if name == "draught" else value
        return pa.array(scaled, mask=~has)

    def _size(self, behind: int, width: int) -> pa.Array:
        """Metres from one end to the other, by the two distances of the antenna to them."""
        total = np.zeros(len(self.mmsi), np.int64)
        known = self._is_rest & (self.mmsi // 10_000_000 != _AUXILIARY)
        for step in (behind, behind + width):
            at = {kind: first + step for kind, first in _DIMENSIONS.items()}
            value, has = self._bits.number(Layout(at=at, width=width))
            total, known = total + value, known & has
        return pa.array(total, mask=~known | (total == 0))
