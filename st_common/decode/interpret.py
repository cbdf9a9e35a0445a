"""Records to fixes and rejects: what the fields mean, the same for every format."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.config.columns import GEOMETRY
from st_common.config.stream import AttributeType, StreamSettings
from st_common.decode.boxes import boxes_of
from st_common.decode.cleaning import ids_of, trimmed
from st_common.decode.decoded import REASONS, Decoded, fixes_schema, rejects_table
from st_common.decode.degrees import coordinates_of, with_point
from st_common.decode.instants import instants
from st_common.decode.points import as_one, points_of
from st_common.formats.format_settings import parts
from st_common.formats.numbers import (
    Mask,
    Parsed,
    as_texts,
    bools,
    doubles,
    longs,
    mask,
)
from st_common.formats.records import Reason, Records
from st_common.formats.registry import format_of
from st_common.formats.said_before import NOTHING, SaidBefore
from st_common.times import form_of

_OLDEST_S = 1e9  # more is no age of a place
_NAMES_GIVE = (
    Reason.MISSING_OBJECT,
    Reason.BAD_TIME,
    Reason.BAD_NUMBER,
    Reason.NO_POINT,
)
"""What is wrong with a line of names, where its place is read as one of a fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When the segments of some records arrived (us UTC), and how many of the records each has."""

    at_us: NDArray[np.int64]
    counts: NDArray[np.int64]

    def of_records(self) -> NDArray[np.int64]:
        """The arrival of each record's segment."""
        return np.repeat(self.at_us, self.counts)

    def instants(self) -> NDArray[np.int64]:
        """The arrival of each record: the last of a segment has the segment's, each before it a microsecond less."""
        behind = (
            np.repeat(np.cumsum(self.counts), self.counts)
            - 1
            - np.arange(self.counts.sum())
        )
        return np.asarray(self.of_records() - behind, np.int64)


def one_arrival(arrival_us: int, records: Records) -> Arrivals:
    """All the records are of one segment."""
    return Arrivals(
        at_us=np.array([arrival_us], np.int64),
        counts=np.array([len(records.fault)], np.int64),
    )


class Faults:
    """The reason of each record whose fields could be read; the first one that is found stays.

    Args:
        count: how many records these are.
    """

    def __init__(self, count: int) -> None:
        self.reasons = np.zeros(count, np.int8)
        self.filtered_out: Mapping[str, int] = {}
        self.unread: dict[
            str, Mask
        ] = {}  # by attribute: where its text was none of its type
        self.twice = self.never = np.zeros(count, bool)  # local times, see `Instants`

    def mark(self, where: Mask, reason: Reason) -> None:
        """Says why some records are no fixes."""
        if where.any():
            self.reasons[where & (self.reasons == Reason.NONE)] = reason

    def unread_of(self, records: Mask) -> dict[str, int]:
        """By attribute, of how many of some records its text was none of its type."""
        counts = {
            name: int((where & records).sum()) for name, where in self.unread.items()
        }
        return {name: count for name, count in counts.items() if count}


def interpret(
    records: Records,
    stream: StreamSettings,
    arrivals: Arrivals,
    before: SaidBefore = NOTHING,
) -> Decoded:
    """The fixes and rejects of records: each record becomes exactly one of them.

    Args:
        records: those of one payload, or of several.
        stream: what their fields mean.
        arrivals: of the segments that they are in.
        before: what stood in front of the payload; of several nothing did.
    """
    rows = np.flatnonzero(records.fault == Reason.NONE)
    faults = Faults(len(rows))
    fields = _fields(records, stream, arrivals, before, faults) if len(rows) else {}
    faults.mark(np.isin(rows, before.ahead), Reason.AHEAD_OF_STREAM)
    if faults.reasons.any() and stream.cleaning > 1:
        _name_headers(records.fields, stream, faults)
    fault = records.fault.copy()
    fault[rows] = faults.reasons
    bad = np.flatnonzero(fault)
    rejects = rejects_table(
        pa.array(bad, pa.int32()),
        REASONS.take(pa.array(fault[bad])),
        records.raw(bad) if len(bad) else [],
        _lines(before, bad),
    )
    schema = fixes_schema(stream)
    if not len(rows):
        return Decoded(fixes=schema.empty_table(), rejects=rejects, rows=len(fault))
    good = faults.reasons == Reason.NONE
    fixes = pa.table({"row": pa.array(rows, pa.int32()), **fields}, schema=schema)
    if faults.reasons.any():
        fixes = fixes.filter(pa.array(good))
    return Decoded(
        fixes=fixes,
        rejects=rejects,
        rows=len(fault),
        nulled=faults.unread_of(good),
        filtered_out=faults.filtered_out,
        twice=int((faults.twice & good).sum()),
        never=int((faults.never & (faults.reasons == Reason.BAD_TIME)).sum()),
    )


def _name_headers(
    fields: Mapping[str, pa.Array], stream: StreamSettings, faults: Faults
) -> None:
    """Gives lines of CSV that name columns or units a reason of their own: exports that were put one behind another."""
    if format_of(stream.format).written_as != "delimited":
        return
    from st_common.formats.csv_records import names_columns, places_named

    columns = places_named(stream)  # of boxes and shapes there are none
    rows = np.flatnonzero(np.isin(faults.reasons, _NAMES_GIVE) & bool(columns))
    for column in columns if len(rows) else ():
        texts = as_texts(fields[column].take(pa.array(rows)))
        rows = rows[names_columns(texts, stream)]
    faults.reasons[rows] = Reason.HEADER


def _lines(before: SaidBefore, rows: NDArray[np.int64]) -> pa.Array:
    """The lines of some records in their file, where it was sorted."""
    if not before.lines:
        return pa.nulls(len(rows), pa.int64())
    lines = np.asarray(before.lines, np.int64)
    return pa.array(lines[np.minimum(rows, len(lines) - 1)], mask=rows >= len(lines))


def _fields(
    records: Records,
    stream: StreamSettings,
    arrivals: Arrivals,
    before: SaidBefore,
    faults: Faults,
) -> dict[str, pa.Array]:
    fields = _cleared(records.fields, stream)
    if stream.where is not None:
        from st_common.decode.entry import passing  # most streams need no database

        passed, faults.filtered_out = passing(fields, stream.where, len(faults.reasons))
        faults.mark(~passed, Reason.FILTERED_OUT)
    objects = _objects(fields, records, stream, before)
    faults.mark(_empty_ids(objects), Reason.MISSING_OBJECT)
    event_ts = _event_ts(records, fields, stream, arrivals, faults)
    gone = _gone(fields, stream)
    own_x, own_y, own = _places(fields, stream, gone, faults)
    x, y = _coordinates(own_x, own_y, stream, gone, faults)
    attributes = _attributes(fields, own, stream, faults)
    if stream.max_ahead_s is not None:
        arrived = arrivals.of_records()[records.fault == Reason.NONE]
        faults.mark(
            event_ts > arrived + round(stream.max_ahead_s * 1e6), Reason.TOO_FAR_AHEAD
        )
    return {
        "object": objects,
        "event_ts": pa.array(event_ts),
        "x": pa.array(x),
        "y": pa.array(y),
        "gone": pa.array(gone),
        **attributes,
    }


def _objects(
    fields: Mapping[str, pa.Array],
    records: Records,
    stream: StreamSettings,
    before: SaidBefore,
) -> pa.DictionaryArray:
    """The id of each record that could be taken apart: its own, that of all, or that of where it came from."""
    named, rows = stream.columns, np.flatnonzero(records.fault == Reason.NONE)
    if parts(named.object):
        return ids_of(fields, named.object, clean=stream.cleaning > 0)
    value = named.object_value
    names = before.owners if value is None else (value,)
    # Where nobody has said from where records come, nobody knows whose they are: "" is no id.
    codes = np.zeros(len(rows), np.int32)
    if value is None and before.owner_of:
        codes = np.asarray(before.owner_of, np.int32)[rows]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32()), pa.array(names or ("",), pa.string())
    )


def _gone(fields: Mapping[str, pa.Array], stream: StreamSettings) -> Mask:
    """Which records say that their object has left."""
    named = stream.columns
    if named.gone is None:
        return np.zeros(len(next(iter(fields.values()))), bool)
    said = _texts(fields[named.gone], clean=stream.cleaning > 0)
    return mask(pc.is_in(said, pa.array(named.gone_values, pa.string())))


def _attributes(
    fields: Mapping[str, pa.Array],
    own: Mapping[str, pa.Array],
    stream: StreamSettings,
    faults: Faults,
) -> dict[str, pa.Array]:
    """The attributes by name, with their `own` ones that follow from a box or a shape."""
    clean = stream.cleaning > 0
    columns = {name: stream.columns.of_attribute(name) for name in stream.attributes}
    return {
        name: own[name]
        if name in own
        else _attribute(name, fields[columns[name]], kind, faults, clean=clean)
        for name, kind in stream.attributes.items()
    }


def _empty_ids(objects: pa.DictionaryArray) -> Mask:
    """Where ids are null or hold nothing but blanks."""
    empty = pc.match_substring_regex(objects.dictionary, r"^\s*$")
    places = pc.indices_nonzero(empty)
    missing = mask(objects.is_null())
    return (
        missing | mask(pc.is_in(objects.indices, places.cast(pa.int32())))
        if len(places)
        else missing
    )


def _event_ts(
    records: Records,
    fields: Mapping[str, pa.Array],
    stream: StreamSettings,
    arrivals: Arrivals,
    faults: Faults,
) -> NDArray[np.int64]:
    """Event times (us).

    Without a column for them (SPEC P1) each record has its own: the last one that of the arrival, each one before it a
    microsecond less, so that they keep their order and none is ahead of its arrival.
    """
    column = stream.columns.event_ts
    if column is None:
        return np.asarray(arrivals.instants()[records.fault == Reason.NONE], np.int64)
    times = as_one(fields, column, between=" ")
    parsed = instants(times, stream.time_unit, stream.time_zone)
    faults.twice, faults.never = parsed.twice, parsed.never
    faults.mark(parsed.missing, Reason.MISSING_TIME)
    faults.mark(parsed.bad, Reason.BAD_TIME)
    seen = parsed.values.astype(np.int64, copy=False)
    if stream.columns.age is None:
        return seen
    return _earlier(seen, doubles(fields[stream.columns.age]), faults)


def _earlier(
    times: NDArray[np.int64], ages: Parsed, faults: Faults
) -> NDArray[np.int64]:
    """Times (us) less so many seconds."""
    faults.mark(ages.missing, Reason.MISSING_TIME)
    is_known = ~(ages.missing | ages.bad) & (np.abs(ages.values) <= _OLDEST_S)
    micros = np.where(is_known, ages.values, 0) * 1e6
    earlier = times - np.rint(micros).astype(np.int64)
    faults.mark(~is_known | (earlier < 0) | (micros < 0), Reason.BAD_TIME)
    return earlier


def times_in(
    records: Records, made_at: pa.Array | None, stream: StreamSettings
) -> tuple[NDArray[np.int64], Mask]:
    """When records were made (us UTC), whatever else is wrong with them, and where one says so.

    Args:
        records: those of one payload.
        made_at: as `Format.made_at` gives it.
        stream: it has a column of times.
    """
    count = len(records.fault)
    if made_at is not None:
        parsed = instants(made_at, stream.time_unit, stream.time_zone)
        return parsed.values.astype(np.int64), ~(parsed.missing | parsed.bad)
    rows = np.flatnonzero(records.fault == Reason.NONE)
    faults = Faults(len(rows))
    times, known = np.zeros(count, np.int64), np.zeros(count, bool)
    if len(rows):
        fields = _cleared(records.fields, stream)
        arrivals = one_arrival(0, records)
        times[rows] = _event_ts(records, fields, stream, arrivals, faults)
        known[rows] = faults.reasons == Reason.NONE
    return times, known


def _places(
    fields: Mapping[str, pa.Array], stream: StreamSettings, gone: Mask, faults: Faults
) -> tuple[Parsed, Parsed, Mapping[str, pa.Array]]:
    """The numbers of x and of y, and the attributes that come with them: of boxes the sides, of shapes the geometry."""
    named = stream.columns
    if named.x is not None and named.y is not None:
        x, y = (
            coordinates_of(
                as_one(fields, column, between=" "), axis, stream.coordinates
            )
            if stream.is_in_degrees
            else doubles(as_one(fields, column, between=" "))
            for axis, column in (("x", named.x), ("y", named.y))
        )
        return *_without_null_island(x, y, stream), {}
    if named.box:
        return _boxes(fields, stream, gone, faults)
    if named.shape is not None:
        return _shapes(fields[named.shape], stream, gone, faults)
    points = points_of(
        fields[str(named.place)],
        epsg=stream.epsg,
        order=stream.place_order,
        decimal=stream.decimal,
        in_degrees=stream.is_in_degrees,
    )
    faults.mark(points.other & ~gone, Reason.NO_POINT)
    faults.mark(points.elsewhere & ~gone, Reason.OUT_OF_CRS)
    return *_without_null_island(points.x, points.y, stream), {}


def _without_null_island(
    x: Parsed, y: Parsed, stream: StreamSettings
) -> tuple[Parsed, Parsed]:
    """The coordinates, missing where they are exactly 0, 0: what devices write that do not know where they are."""
    drops = stream.drop_null_island
    if drops is None:
        drops = format_of(stream.format).drops_null_island
    at_0 = x.values == 0
    if not drops or not at_0.any():
        return x, y
    nowhere = at_0 & (y.values == 0) & ~(x.missing | y.missing)
    nowhere &= ~(x.bad | y.bad)
    if not nowhere.any():
        return x, y
    return _missing(x, nowhere), _missing(y, nowhere)


def _missing(parsed: Parsed, where: Mask) -> Parsed:
    values = np.where(where, np.nan, parsed.values)
    return Parsed(values, parsed.missing | where, parsed.bad)


def _boxes(
    fields: Mapping[str, pa.Array], stream: StreamSettings, gone: Mask, faults: Faults
) -> tuple[Parsed, Parsed, Mapping[str, pa.Array]]:
    boxes = boxes_of(fields, stream.columns.box)
    known = ~(gone | boxes.x.missing | boxes.x.bad)
    faults.mark(boxes.crossed & known, Reason.BAD_BOX)
    faults.mark(known & _reaches_out(boxes.bounds, stream), Reason.OUT_OF_CRS)
    return boxes.x, boxes.y, boxes.sides


def _shapes(
    values: pa.Array, stream: StreamSettings, gone: Mask, faults: Faults
) -> tuple[Parsed, Parsed, Mapping[str, pa.Array]]:
    from st_common.decode.shapes import shapes_of  # shapely is slow to import

    shapes = shapes_of(values, epsg=stream.epsg)
    faults.mark(shapes.other & ~gone, Reason.NO_SHAPE)
    known = ~(gone | shapes.x.missing | shapes.other)
    outside = shapes.elsewhere | _reaches_out(shapes.bounds, stream)
    faults.mark(known & outside, Reason.OUT_OF_CRS)
    return shapes.x, shapes.y, {GEOMETRY: shapes.texts}


def _reaches_out(bounds: NDArray[np.float64], stream: StreamSettings) -> Mask:
    """Whether a corner of an extent lies where the stream's coordinates do not reach."""
    west, south, east, north = bounds.T
    contains = stream.space.contains
    return np.asarray(~(contains(west, south) & contains(east, north)), np.bool_)


def _coordinates(
    x: Parsed, y: Parsed, stream: StreamSettings, gone: Mask, faults: Faults
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coordinates, in degrees or the CRS's unit; NaN where a gone object's are absent or wrong, which is no fault."""
    here = ~gone
    faults.mark((x.missing | y.missing) & here, Reason.MISSING_POSITION)
    finite = np.isfinite(x.values) & np.isfinite(y.values)
    faults.mark(~finite & here, Reason.BAD_NUMBER)
    inside = stream.space.contains(x.values, y.values)
    faults.mark(~inside & here, Reason.OUT_OF_CRS)
    return np.where(inside, x.values, np.nan), np.where(inside, y.values, np.nan)


def _texts(values: pa.Array, *, clean: bool) -> pa.Array:
    return trimmed(as_texts(values)) if clean else as_texts(values)


def _attribute(
    name: str, values: pa.Array, kind: AttributeType, faults: Faults, *, clean: bool
) -> pa.Array:
    """An attribute's values: null where one is missing (or NaN, for a double), and where it is of no such type."""
    if kind == "string":
        texts = _texts(values, clean=clean)
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    parsed = {"double": doubles, "long": longs, "bool": bools}[kind](values)
    bad, absent = parsed.bad, parsed.missing | parsed.bad
    if kind == "double":
        bad = bad | np.isinf(parsed.values)
        absent = absent | ~np.isfinite(parsed.values)
    if bad.any():
        faults.unread[name] = bad
    return pa.array(parsed.values, mask=absent)


def _cleared(
    fields: Mapping[str, pa.Array], stream: StreamSettings
) -> Mapping[str, pa.Array]:
    """The fields with null for what stands for a missing value, and with points in numbers."""
    fields = _without_nulls(fields, stream.nulls)
    if stream.decimal == ".":
        return fields
    named = stream.columns
    numbers = {*parts(named.x), *parts(named.y), *named.box}
    numbers |= {
        named.of_attribute(name)
        for name, kind in stream.attributes.items()
        if kind in ("double", "long")
    }
    if form_of(stream.time_unit) is None:
        numbers |= {*parts(named.event_ts)}
    return {
        name: with_point(values, stream.decimal) if name in numbers else values
        for name, values in fields.items()
    }


def _without_nulls(
    fields: Mapping[str, pa.Array], nulls: tuple[str, ...]
) -> Mapping[str, pa.Array]:
    """The fields with null for each value that stands for a missing one, whatever blanks are around its text."""
    if not nulls:
        return fields
    words = pa.array(nulls, pa.string())
    return {name: _without_words(values, words) for name, values in fields.items()}


def _without_words(values: pa.Array, words: pa.Array) -> pa.Array:
    none = pa.scalar(None, values.type)
    if pa.types.is_timestamp(values.type) or pa.types.is_binary(values.type):
        return values
    texts = pc.utf8_trim_whitespace(as_texts(values))
    return pc.if_else(pc.is_in(texts, words), none, values)
