"""The lines of SBS-1, each position with what its aircraft said before."""

from collections.abc import Mapping
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

_FIELDS = (
    *("kind", "type", "session", "aircraft", "hex", "flight"),
    *("date", "clock", "logged_date", "logged_clock", "callsign", "altitude"),
    *("ground_speed", "track", "latitude", "longitude", "vertical_rate", "squawk"),
    *("alert", "emergency", "spi", "on_ground"),
)
_HEADER = ",".join(_FIELDS).encode() + b"\n"
_FLAGS = ("alert", "emergency", "spi", "on_ground")
_OWN = ("hex", "latitude", "longitude")  # never taken from another line
_TYPES = pa.array([str(number) for number in range(1, 9)])
_POSITIONS = pa.array(["2", "3"])  # on the ground, in the air
_OTHERS = rb"^(?:SEL|ID|AIR|STA|CLK),"  # what BaseStation says beside messages


@dataclass(frozen=True, slots=True)
class _Columns:
    """As CSV takes them; all columns are read as attributes."""

    object: str = "hex"
    event_ts: str | None = None
    x: str = "longitude"
    y: str = "latitude"
    place: str | None = None
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
    delimiter: str = ","
    quote: str = ""


LINES = _Lines()
"""Lines between commas, without a header and without quotes."""


def read_sbs1(payload: bytes, stream: FormatSettings) -> Records:
    """The lines of a payload; see `sbs1`. A line with more or fewer than 22 fields is `ragged`."""
    lines = read_csv(_HEADER + payload, _Lines(header=True))
    fault = lines.fault.copy()
    ragged = np.flatnonzero(fault == Reason.RAGGED)
    others = mask(pc.match_substring_regex(lines.raw(ragged), _OTHERS))
    fault[ragged[others]] = Reason.NO_POSITION
    read = np.flatnonzero(fault == Reason.NONE)
    if not len(read):
        fields = {name: pa.array([], pa.string()) for name in columns_read(stream)}
        return Records(fault=fault, fields=fields, raw=lines.raw)
    fault[read] = _kinds(lines.fields)
    is_position = pa.array(fault[read] == Reason.NONE)
    known = LastKnown(_trimmed(lines.fields["hex"]))
    fields = {
        name: _said(name, lines.fields, known).filter(is_position)
        for name in columns_read(stream)
    }
    return Records(fault=fault, fields=fields, raw=lines.raw)


def _kinds(fields: Mapping[str, pa.Array]) -> NDArray[np.int8]:
    """Which lines are positions (Reason.NONE), which are about something else, and which are no messages."""
    is_message = mask(pc.equal(fields["kind"], "MSG"))
    is_message &= mask(pc.is_in(fields["type"], _TYPES))
    is_position = mask(pc.is_in(fields["type"], _POSITIONS))
    kinds = np.where(is_position, Reason.NONE, Reason.NO_POSITION)
    return np.where(is_message, kinds, Reason.UNREADABLE).astype(np.int8)


def _said(name: str, fields: Mapping[str, pa.Array], known: LastKnown) -> pa.Array:
    """A column as each line has it, or as its aircraft said it last."""
    if name == "time":
        return pc.binary_join_element_wise(fields["date"], fields["clock"], " ")
    if name not in _FIELDS:
        return pa.nulls(len(fields["hex"]), pa.string())
    values = _trimmed(fields[name])
    if name in _FLAGS:
        values = pc.if_else(pc.equal(values, "-1"), "1", values)
    return values if name in _OWN else known.values(values, mask(values.is_valid()))


def _trimmed(values: pa.Array) -> pa.Array:
    """Texts without the blanks around them; null where nothing is left."""
    trimmed = pc.utf8_trim_whitespace(values)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
