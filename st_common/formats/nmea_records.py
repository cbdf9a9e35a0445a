"""The sentences of a GPS receiver, those of one moment as one fix."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.chunk import Chunk, whole
from st_common.formats.format_settings import FormatSettings, Source
from st_common.formats.ndjson_chunks import LEAST_CHUNK, chunks_of_lines
from st_common.formats.nmea_sums import has_sum
from st_common.formats.numbers import doubles, long_values, mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.said_before import Said, SaidBefore, said_before
from st_common.formats.spans import Ints, Mask, lines

DEVICE = "gps"
"""The object of all sentences: they do not say whose they are."""
_SENTENCE = (
    r"^(?P<front>[^$!]*)\$(?P<checked>(?P<talker>[A-Z]{2})(?P<kind>[A-Z]{3}),"
    r"(?P<fields>[ -)+-~]*))(?:\*(?P<sum>[0-9A-Fa-f]{2})\s*)?$"
)
_OTHER = r"^[^$!]*[$!][A-Z]|^#"
_FIELDS = 13
_TIME = r"^(?P<H>[01][0-9]|2[0-3])(?P<M>[0-5][0-9])(?P<S>[0-5][0-9](?:\.[0-9]*)?|60)$"
_DATE = r"^(?P<d>[0-9]{2})(?P<m>[0-9]{2})(?P<y>[0-9]{2})$"
_DEGREES = r"^(?P<d>[0-9]{0,3}?)(?P<m>[0-9]{1,2}(?:\.[0-9]*)?)$"
_DAY_MS, _DAY_US = 86_400_000, 86_400_000_000
_UNKNOWN = -1
_LONGEST_EPOCH = 64  # lines at most that are of one moment
_TIMED = re.compile(rb"\$[A-Z]{2}(?:RMC|GGA),([0-9.]*),")
_PIVOT = 80  # of years of two digits: GPS began in 1980


def nmea_chunks(source: Source, *, size: int) -> Iterator[Chunk]:
    """Chunks of at most `size` bytes, raised to 256 KiB where it is less, that end between two moments."""
    return chunks_of_lines(whole(source, b"", max(size, LEAST_CHUNK), _border))


def _border(data: bytes) -> int:
    """How many bytes are whole lines in front of the last moment that is told; all whole lines if none is."""
    end = stop = data.rfind(b"\n") + 1
    at = end
    told: bytes | None = None
    for _ in range(_LONGEST_EPOCH):
        start = data.rfind(b"\n", 0, max(at - 1, 0)) + 1
        found = _TIMED.search(data, start, at)
        if found is not None:
            if told is not None and found[1] != told:
                return stop
            told, stop = found[1], start
        if not start:
            return end
        at = start
    return end


def read_nmea(payload: bytes, stream: FormatSettings) -> Records:
    """The sentences of a payload; see `nmea`."""
    before, records = said_before(payload)
    every = lines(np.frombuffer(records, np.uint8))
    read = _read(every.texts(), before)
    fields = {name: read.column(name) for name in columns_read(stream)}
    return Records(
        fault=read.fault,
        fields=fields,
        raw=lambda rows: every.select(rows).texts(RAW_LIMIT),
    )


def said_in(payload: bytes) -> Said:
    """What sentences behind a payload need of it: the date, when it was said, and the moment that was told last."""
    before, records = said_before(payload)
    said = _read(lines(np.frombuffer(records, np.uint8)).texts(), before).said()
    return Said(asking=[DEVICE], objects={DEVICE: said} if said else {})


def _read(texts: pa.Array, before: SaidBefore) -> "_Moments":
    parts = pc.extract_regex(texts, _SENTENCE)
    is_one = mask(parts.is_valid())
    is_other = mask(pc.match_substring_regex(texts, _OTHER))
    fault = np.where(is_other, Reason.NO_POSITION, Reason.UNREADABLE).astype(np.int8)
    rows = np.flatnonzero(is_one)
    parts = parts.take(pa.array(rows))
    fault[rows] = Reason.NO_POSITION
    summed = mask(pc.not_equal(parts.field("sum"), b""))
    wrong = summed & ~has_sum(parts.field("checked"), parts.field("sum"))
    fault[rows[wrong]] = Reason.BAD_CHECKSUM
    kinds = parts.field("kind").cast(pa.string())
    told = mask(pc.is_in(kinds, pa.array(["RMC", "GGA", "ZDA"]))) & ~wrong
    kept = pa.array(told)
    sentences = _Sentences(rows[told], parts.filter(kept), kinds.filter(kept))
    return _Moments(sentences, fault, before)


@dataclass(frozen=True)
class _Sentences:
    """Those that say a place or a date: their rows, their parts, and RMC, GGA or ZDA."""

    rows: Ints
    parts: pa.StructArray
    kinds: pa.Array

    def __len__(self) -> int:
        return len(self.rows)

    def is_of(self, kind: str) -> Mask:
        """Which are of a kind."""
        return mask(pc.equal(self.kinds, kind))

    def field(self, **places: int) -> pa.Array:
        """A field, which stands at another place in each kind; null in kinds that have none, and where it is empty."""
        values = pa.nulls(len(self), pa.string())
        for kind, place in places.items():
            mine = pa.array(self.is_of(kind))
            values = pc.if_else(mine, self._cells[place], values)
        return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)

    @cached_property
    def _cells(self) -> list[pa.Array]:
        """The fields of each, filled up to as many as are looked at."""
        if not len(self):
            return [pa.array([], pa.string())] * _FIELDS
        texts = self.parts.field("fields").cast(pa.string())
        filled = pc.binary_join_element_wise(texts, "," * _FIELDS, "")
        cells = pc.list_flatten(
            pc.split_pattern(filled, ",", max_splits=_FIELDS)
        ).to_numpy(zero_copy_only=False)
        columns = cells.reshape(len(self), _FIELDS + 1)
        return [pa.array(columns[:, place], pa.string()) for place in range(_FIELDS)]


class _Moments:
    """Sentences by the moment that they tell; each moment is a fix, in the row of the first one that has a place.

    Adjacent sentences of one time are a moment. One that calls its place void makes the moment void.

    Args:
        sentences: those that say something.
        fault: int8[n], the reason of each line; of those that are fixes it becomes none.
        before: what was said before.
    """

    def __init__(
        self, sentences: _Sentences, fault: NDArray[np.int8], before: SaidBefore
    ) -> None:
        self._of, self.fault = sentences, fault
        self._times = _clock_ms(sentences.field(RMC=0, GGA=0, ZDA=0))
        begins = np.ones(len(sentences), bool)
        begins[1:] = (self._times[1:] != self._times[:-1]) | (self._times[1:] < 0)
        self._first = np.flatnonzero(begins)
        self._moment = np.cumsum(begins) - 1
        known = before.objects.get(DEVICE, {})
        self._days = self._dated(_whole(known.get("day")), _whole(known.get("clock")))
        self._fixes = self._placed(_whole(known.get("told")))

    def column(self, name: str) -> pa.Array:
        """The values of a column, one for each fix."""
        rows, parts = pa.array(self._fixes), self._of.parts
        if name in ("latitude", "longitude"):
            return pa.array(self._degrees(name)[self._fixes])
        if name == "time":
            days, clock = self._days[self._moment], self._times
            us = np.where((days < 0) | (clock < 0), -1, days * _DAY_US + clock * 1000)
            us = us[self._fixes]
            return pa.array(us, pa.timestamp("us", "UTC"), mask=us < 0)
        if name == "device":
            return pa.repeat(DEVICE, len(rows))
        if name == "talker":
            return parts.field("talker").take(rows).cast(pa.string())
        if name == "received":
            return _stamps(parts.field("front").take(rows))
        if name not in _VALUES:
            return pa.nulls(len(rows), pa.string())
        return self._of_moments(self._of.field(**_VALUES[name]))

    def said(self) -> Mapping[str, int]:
        """What sentences behind these need: the last day and its time, and the moment that was told last."""
        if not len(self._of):
            return {}
        said = {"told": int(self._times[-1]) if self._has_place[-1] else _UNKNOWN}
        dated = np.flatnonzero(self._own_days >= 0)
        if len(dated):
            said["day"] = int(self._own_days[dated[-1]])
            said["clock"] = int(self._times[self._first[dated[-1]]])
        return said

    def _dated(self, day: int, clock: int) -> Ints:
        """The day of each moment since 1970: its own, else by the last one before that says one; -1 for none."""
        own, said = np.full(len(self._first), _UNKNOWN), _days_of(self._of)
        for kind in ("ZDA", "RMC"):  # the date that comes with the place counts
            dated = np.flatnonzero(self._of.is_of(kind) & (said >= 0))[::-1]
            own[self._moment[dated]] = said[dated]
        self._own_days = own
        times = self._times[self._first]
        if day >= 0:  # said before: a moment in front of all others
            own, times = np.append(day, own), np.append(clock, times)
        at = np.maximum.accumulate(np.where(own >= 0, np.arange(len(own)), -1))
        latest = np.maximum(at, 0)
        behind = times - times[latest] if len(own) else times
        turned = (behind < -_DAY_MS // 2).astype(np.int64) - (behind > _DAY_MS // 2)
        days = np.where(at < 0, _UNKNOWN, own[latest] + turned if len(own) else own)
        return days[1:] if day >= 0 else days

    def _placed(self, told: int) -> Ints:
        """The sentences that are fixes; faults are set."""
        of, moment = self._of, self._moment
        is_place = ~of.is_of("ZDA")
        is_void = of.is_of("RMC") & ~mask(pc.equal(of.field(RMC=1), "A"))
        is_void |= mask(pc.equal(of.field(GGA=5), "0"))
        count = len(self._first)
        void, self._has_place = np.zeros(count, bool), np.zeros(count, bool)
        void[moment[is_void]] = True
        self._has_place[moment[is_place]] = True
        where = mask(pc.and_(*(of.field(**_PLACES[n][0]).is_valid() for n in _PLACES)))
        told_already = np.zeros(count, bool)
        told_already[:1] = (told >= 0) & (self._times[:1] == told)
        speaks = np.flatnonzero(is_place & ~told_already[moment])
        good = np.flatnonzero(where & is_place & ~(void | told_already)[moment])
        fixes, lacking = _firsts(moment, good), _firsts(moment, speaks)
        lacking = lacking[~np.isin(moment[lacking], moment[fixes])]
        self.fault[of.rows[fixes]] = Reason.NONE
        self.fault[of.rows[lacking]] = Reason.MISSING_POSITION
        return fixes

    def _degrees(self, name: str) -> NDArray[np.float64]:
        """Degrees; NaN for none, infinite for what is no number of degrees."""
        value, side = (self._of.field(**places) for places in _PLACES[name])
        said = pc.extract_regex(value, _DEGREES)
        degrees, minutes = (
            doubles(_filled(pc.struct_field(said, part))).values for part in "dm"
        )
        signs = {"N": 1.0, "E": 1.0, "S": -1.0, "W": -1.0}
        sign = pa.array(list(signs.values())).take(
            pc.index_in(side, pa.array(list(signs)))
        )
        found = np.where(np.isnan(degrees), 0.0, degrees) + minutes / 60
        found *= sign.cast(pa.float64()).to_numpy(zero_copy_only=False)
        bad = mask(value.is_valid()) & (np.isnan(found) | (minutes >= 60))
        return np.where(bad, np.inf, found)

    def _of_moments(self, values: pa.Array) -> pa.Array:
        """The first value that a sentence of each fix's moment has."""
        known = _firsts(self._moment, np.flatnonzero(mask(values.is_valid())))
        row = np.full(len(self._first), -1)
        row[self._moment[known]] = known
        wanted = row[self._moment[self._fixes]]
        return values.take(pa.array(wanted, mask=wanted < 0))


def _firsts(moment: Ints, sentences: Ints) -> Ints:
    """Of some sentences the first one of each moment."""
    _, first = np.unique(moment[sentences], return_index=True)
    firsts: Ints = sentences[first]
    return firsts


def _clock_ms(texts: pa.Array) -> Ints:
    """Times of the day (ms); -1 for what is none."""
    said = pc.extract_regex(texts, _TIME)
    hour, minute, second = (
        doubles(_filled(pc.struct_field(said, name))).values for name in "HMS"
    )
    clock = np.round(((hour * 60 + minute) * 60 + second) * 1000)
    return np.where(np.isnan(clock), _UNKNOWN, clock).astype(np.int64)


def _days_of(of: _Sentences) -> Ints:
    """The day since 1970 that each sentence says; -1 for none, or one that no calendar has."""
    trusted = mask(pc.equal(of.field(RMC=1), "A"))
    short = pc.extract_regex(of.field(RMC=8), _DATE)
    day, month, year = (_numbers(pc.struct_field(short, name)) for name in "dmy")
    year = np.where(year < _PIVOT, year + 2000, year + 1900)
    is_long = of.is_of("ZDA")
    long_ones = (_numbers(of.field(ZDA=place)) for place in (1, 2, 3))
    day, month, year = (
        np.where(is_long, own, other)
        for own, other in zip(long_ones, (day, month, year), strict=True)
    )
    real = (trusted | is_long) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = np.where(real, (year - 1970) * 12 + month - 1, 0)
    date = months.astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
    real &= (date.astype("datetime64[M]").astype(np.int64) == months) & (months >= 0)
    return np.where(real, date.astype(np.int64), _UNKNOWN)


def _numbers(texts: pa.Array) -> Ints:
    """Short texts of digits as numbers; 0 for others."""
    short = pc.match_substring_regex(texts, r"^[0-9]{1,4}$")
    return long_values(pc.if_else(short, texts, None).cast(pa.int64()))


def _filled(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def _stamps(texts: pa.Array) -> pa.Array:
    """What stands in front of sentences, without what parts it from them; null for nothing, and for what is no text."""
    ascii_only = pc.match_substring_regex(texts, r"^[ -~\t]*$")
    known = pc.if_else(ascii_only, texts, None).cast(pa.string())
    return _filled(pc.utf8_trim(known, " \t,;:|>()[]"))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else _UNKNOWN


_VALUES: Mapping[str, Mapping[str, int]] = {
    "speed": {"RMC": 6},
    "course": {"RMC": 7},
    "quality": {"GGA": 5},
    "satellites": {"GGA": 6},
    "hdop": {"GGA": 7},
    "altitude": {"GGA": 8},
}
"""Where columns stand."""
_PLACES: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]] = {
    "latitude": ({"RMC": 2, "GGA": 1}, {"RMC": 3, "GGA": 2}),
    "longitude": ({"RMC": 4, "GGA": 3}, {"RMC": 5, "GGA": 4}),
}
"""Where coordinates stand, and the side of the globe."""
