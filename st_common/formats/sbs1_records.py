"""The lines of SBS-1, each position with what its aircraft said before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.csv_records import read_csv
from st_common.formats.format_settings import FormatSettings
from st_common.formats.last_known import LastKnown
from st_common.formats.numbers import mask
from st_common.formats.records import Reason, Records, columns_read
from st_common.formats.said_before import (
    NOTHING,
    Said,
    SaidBefore,
    Value,
    said_before,
)
from st_common.formats.spans import Ints
from st_common.formats.stamped import RECEIVED, STAMP

_FIELDS = (
    *("kind", "type", "session", "aircraft", "hex", "flight"),
    *("date", "clock", "logged_date", "logged_clock", "callsign", "altitude"),
    *("ground_speed", "track", "latitude", "longitude", "vertical_rate", "squawk"),
    *("alert", "emergency", "spi", "on_ground"),
)
_HEADER = ",".join(_FIELDS).encode() + b"\n"
_FLAGS = ("alert", "emergency", "spi", "on_ground")
_OWN = ("hex", "latitude", "longitude")  # never taken from another line
_TOLD_LATER = (
    *("callsign", "altitude", "ground_speed", "track", "vertical_rate", "squawk"),
    *_FLAGS,
)
"""Columns that a position has from the line in which its aircraft said them last."""
_TYPES = pa.array([str(number) for number in range(1, 9)])
_POSITIONS = pa.array(["2", "3"])  # on the ground, in the air
_OTHERS = (
    rf"^(?:{STAMP})?(?:SEL|ID|AIR|STA|CLK),"  # what BaseStation says beside messages
)
_STAMPED = rf"^{STAMP}(?P<kind>[A-Z]{{2,3}})$"


@dataclass(frozen=True, slots=True)
class _Columns:
    """As CSV takes them; all columns are read as attributes."""

    object: str = "hex"
    event_ts: str | None = None
    x: str = "longitude"
    y: str = "latitude"
    age: str | None = None
    place: str | None = None
    box: tuple[str, ...] = ()
    shape: str | None = None
    gone: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The settings by which CSV takes the lines apart."""

    columns: _Columns = field(default_factory=_Columns)
    attributes: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(_FIELDS, "string")
    )
    crs: str = "EPSG:4326"
    header: bool = False
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = ""
    records: str | None = None
    filtering_columns: tuple[str, ...] = ()


LINES = _Lines()
"""Lines between commas, without a header and without quotes."""


def read_sbs1(payload: bytes, stream: FormatSettings) -> Records:
    """The lines of a payload; see `sbs1`. A line with more or fewer than 22 fields is `ragged`."""
    before, records = said_before(payload)
    lines = _taken_apart(records)
    aircraft = _Aircraft(lines.fields, before)
    is_position = pa.array(lines.fault[lines.read] == Reason.NONE)
    fields = {
        name: aircraft.column(name).filter(is_position) for name in columns_read(stream)
    }
    return Records(fault=lines.fault, fields=fields, raw=lines.raw)


def said_in(payload: bytes, stream: FormatSettings) -> Said:
    """What a payload says that payloads behind it need: the columns that the stream's settings name."""
    wanted = [name for name in columns_read(stream) if name in _TOLD_LATER]
    if not wanted:
        return Said()
    lines = _taken_apart(payload)
    aircraft = _Aircraft(lines.fields, NOTHING)
    is_position = pa.array(lines.fault[lines.read] == Reason.NONE)
    asking = aircraft.ids.filter(is_position).unique().drop_null()
    return Said(asking=asking.to_pylist(), objects=aircraft.last(wanted))


def made_at(payload: bytes, stream: FormatSettings) -> pa.Array:
    """When the lines of a payload were made, as the settings take it; null of what is no line.

    It is date and time with a blank between, or the stamp in front of each.
    """
    lines = _taken_apart(said_before(payload)[1])
    read = np.flatnonzero(np.isin(lines.fault, (Reason.NONE, Reason.NO_POSITION)))
    has_fields = np.isin(lines.read, read)
    fields = {
        name: values.filter(pa.array(has_fields))
        for name, values in lines.fields.items()
    }
    is_received = stream.columns.event_ts == RECEIVED
    times = fields[RECEIVED] if is_received else _time_of(fields)
    rows = np.full(len(lines.fault), -1)
    rows[lines.read[has_fields]] = np.arange(len(times))
    return times.take(pa.array(rows, mask=rows < 0))


@dataclass(frozen=True, slots=True)
class _Taken:
    """Lines taken apart: the fault of each, the fields of those at `read`, and the bytes of some."""

    fault: NDArray[np.int8]
    read: Ints
    fields: Mapping[str, pa.Array]
    raw: Callable[[Ints], pa.Array]


def _taken_apart(records: bytes) -> _Taken:
    lines = read_csv(_HEADER + records, _Lines(header=True))
    fault = lines.fault.copy()
    ragged = np.flatnonzero(fault == Reason.RAGGED)
    others = mask(pc.match_substring_regex(lines.raw(ragged), _OTHERS))
    fault[ragged[others]] = Reason.NO_POSITION
    read = np.flatnonzero(fault == Reason.NONE)
    none = dict.fromkeys(_FIELDS, pa.array([], pa.string()))
    fields = _unstamped(lines.fields if len(read) else none)
    fault[read] = _kinds(fields)
    return _Taken(fault, read, fields, lines.raw)


def _unstamped(fields: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """The fields of lines without the stamps in front of the first ones, which are a field of their own."""
    kinds = fields["kind"]
    nothing = pa.nulls(len(kinds), pa.string())
    if pc.all(pc.equal(kinds, "MSG"), min_count=0).as_py():
        return {**fields, RECEIVED: nothing}
    parts = pc.extract_regex(kinds, _STAMPED)
    stamps, plain = parts.field("received"), parts.field("kind")
    stamped = parts.is_valid()
    return {
        **fields,
        "kind": pc.if_else(stamped, plain, kinds),
        RECEIVED: pc.if_else(stamped, stamps, nothing),
    }


def _time_of(fields: Mapping[str, pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(fields["date"], fields["clock"], " ")


def _kinds(fields: Mapping[str, pa.Array]) -> NDArray[np.int8]:
    """Which lines are positions (Reason.NONE), which are about something else, and which are no messages."""
    is_message = mask(pc.equal(fields["kind"], "MSG"))
    is_message &= mask(pc.is_in(fields["type"], _TYPES))
    is_position = mask(pc.is_in(fields["type"], _POSITIONS))
    kinds = np.where(is_position, Reason.NONE, Reason.NO_POSITION)
    return np.where(is_message, kinds, Reason.UNREADABLE).astype(np.int8)


class _Aircraft:
    """The columns of lines, as each has them, or as its aircraft said them last.

    Args:
        fields: of the lines.
        before: what was said before them.
    """

    def __init__(self, fields: Mapping[str, pa.Array], before: SaidBefore) -> None:
        self._fields = fields
        self.ids = _trimmed(fields["hex"])
        self._known = LastKnown(self.ids, before)

    def column(self, name: str) -> pa.Array:
        """The values of a column, one for each line."""
        if name == "time":
            return _time_of(self._fields)
        if name == RECEIVED:
            return self._fields[RECEIVED]
        if name in _OWN:
            return _trimmed(self._fields[name])
        if name not in _TOLD_LATER:
            return pa.nulls(len(self.ids), pa.string())
        return self._known.values(name, self._said(name))

    def last(self, names: Sequence[str]) -> Mapping[str, Mapping[str, Value]]:
        """By aircraft what it has said of some columns at the end."""
        return self._known.last({name: self._said(name) for name in names})

    def _said(self, name: str) -> pa.Array:
        """What each line says itself."""
        values = _trimmed(self._fields[name])
        if name in _FLAGS:
            values = pc.if_else(pc.equal(values, "-1"), "1", values)
        return values


def _trimmed(values: pa.Array) -> pa.Array:
    """Texts without the blanks around them; null where nothing is left."""
    trimmed = pc.utf8_trim_whitespace(values)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
