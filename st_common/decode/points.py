"""Values that stand in another form than one column each: ids and times of several columns, points of one.

A point is WKT (`POINT (24.9 60.1)`, also with a Z or M, or `SRID=4326;` in front), WKB, as bytes or in hexadecimal
digits, with or without PostGIS's SRID, a point of GeoJSON, or two coordinates (`pairs`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.decode.pairs import pairs_of
from st_common.formats.format_settings import Column, parts
from st_common.formats.numbers import Mask, Parsed, as_texts, doubles, is_missing, mask

_POINT = (
    r"^\s*(?i:(?:SRID=(?P<srid>[0-9]{1,9});)?\s*POINT\s*(?:ZM|Z|M)?)\s*"
    r"(?:\(\s*(?P<x>[^\s(),]+)\s+(?P<y>[^\s(),]+)(?:\s+[^\s(),]+){0,2}\s*\)|(?P<none>(?i:EMPTY)))\s*$"
)
_HEX = r"^(?:[0-9A-Fa-f]{2}){21,41}$"
_POINT_TYPE = 1
_SRID, _HEIGHTS = 0x2000_0000, 0xC000_0000  # PostGIS's flags in the type of WKB
_HEAD = 5  # bytes: the byte order, and the type
_LEAST, _LONGEST = _HEAD + 16, _HEAD + 4 + 32  # bytes of a point


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one column. Where `other` or `elsewhere`, x and y are no numbers that count.

    Attributes:
        x: the first coordinate of each.
        y: the second one.
        other: bool[n], what is no point: another geometry, or nothing that is known.
        elsewhere: bool[n], a point that says that it is in another system.
    """

    x: Parsed
    y: Parsed
    other: Mask
    elsewhere: Mask


def as_one(fields: Mapping[str, pa.Array], column: Column, *, between: str) -> pa.Array:
    """The values of a column; of several all their texts, null where one of them is missing.

        object = ["oper", "veh"], between "/":   "18", "640"  ->  "18/640"      "", "640"  ->  null

    Args:
        fields: the columns of records.
        column: one name, or several.
        between: what stands between two texts.
    """
    names = parts(column)
    if len(names) == 1:
        return fields[names[0]]
    texts = [as_texts(fields[name]) for name in names]
    missing = np.logical_or.reduce([is_missing(one) for one in texts])
    joined = pc.binary_join_element_wise(*texts, between)
    return pc.if_else(pa.array(missing), pa.scalar(None, pa.string()), joined)


def points_of(
    values: pa.Array,
    *,
    epsg: int,
    order: str | None = None,
    decimal: str = ".",
    in_degrees: bool = True,
) -> Points:
    """The points that WKT, WKB, GeoJSON or two coordinates give; total, as all that judges records.

    Args:
        values: texts, or binary values.
        epsg: of the stream's system; 0: none, so that no SRID is another one.
        order: of two numbers: see `pairs_of`.
        decimal: what stands in front of their decimals.
        in_degrees: whether x and y are longitude and latitude, so that letters and GeoJSON can give them.
    """
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return _of_wkb(values.cast(pa.binary()), epsg)
    texts = as_texts(values)
    is_hex = mask(pc.match_substring_regex(texts, _HEX))
    points = _of_wkt(texts, epsg)
    at = np.flatnonzero(points.other)
    if len(at):
        pairs = pairs_of(
            texts.take(pa.array(at)), order=order, decimal=decimal, letters=in_degrees
        )
        points = _with(points, at, _of_pairs(*pairs))
    if not is_hex.any():
        return points
    at = np.flatnonzero(is_hex)
    wkb = [bytes.fromhex(text) for text in texts.take(pa.array(at)).to_pylist()]
    return _with(points, at, _of_wkb(pa.array(wkb, pa.binary()), epsg))


def _of_pairs(x: Parsed, y: Parsed) -> Points:
    none = np.zeros(len(x.bad), bool)
    return Points(
        x=Parsed(x.values, none, none),
        y=Parsed(y.values, none, none),
        other=x.bad,
        elsewhere=none,
    )


def _of_wkt(texts: pa.Array, epsg: int) -> Points:
    found = pc.extract_regex(texts, _POINT)
    # `extract_regex` has "" for a group that took no part.
    missing = is_missing(texts) | mask(pc.not_equal(found.field("none"), ""))
    x, y = doubles(found.field("x")), doubles(found.field("y"))
    srid = doubles(found.field("srid"))
    elsewhere = ~srid.missing & (srid.values != epsg) & (epsg != 0)
    other = mask(found.is_null()) & ~missing
    return Points(_beside(x, missing), _beside(y, missing), other, elsewhere)


def _beside(parsed: Parsed, missing: Mask) -> Parsed:
    """The same numbers; missing are those alone whose point is."""
    return Parsed(parsed.values, missing, parsed.bad & ~missing)


def _of_wkb(values: pa.Array, epsg: int) -> Points:
    """Points by the places of their bytes; a point without coordinates (NaN) is missing."""
    sizes = np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(), np.int64)
    table = _bytes_of(values, sizes)
    little = table[:, 0] == 1
    kinds = _whole(table[:, 1:_HEAD], little)
    with_srid = (kinds & _SRID) != 0
    plain = kinds & ~np.uint32(_SRID | _HEIGHTS)
    srid = _whole(table[:, _HEAD : _HEAD + 4], little)
    start = np.where(with_srid, _HEAD + 4, _HEAD)
    x, y = (_double(table, start + offset, little) for offset in (0, 8))
    missing = mask(values.is_null()) | (np.isnan(x) & np.isnan(y) & (sizes > 0))
    heights = (sizes - start - 16) // 8
    is_point = (table[:, 0] <= 1) & (plain % 1000 == _POINT_TYPE) & (plain < 4000)
    is_point &= (heights >= 0) & (heights <= 2) & ((sizes - start) % 8 == 0)
    other = ~is_point & ~mask(values.is_null())
    elsewhere = is_point & with_srid & (srid != epsg) & (epsg != 0)
    missing &= ~other
    bad = np.zeros(len(values), bool)
    return Points(Parsed(x, missing, bad), Parsed(y, missing, bad), other, elsewhere)


def _bytes_of(values: pa.Array, sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The first bytes of each value as uint8[n, 41], zeros behind its end."""
    ends = np.cumsum(np.minimum(sizes, _LONGEST))
    cut = pc.binary_slice(values.fill_null(b""), 0, _LONGEST)
    held = np.frombuffer(b"".join(cut.to_pylist()), np.uint8)
    table = np.zeros((len(values), _LONGEST), np.uint8)
    taken = np.minimum(sizes, _LONGEST)
    row = np.repeat(np.arange(len(values)), taken)
    table[row, np.arange(len(held)) - np.repeat(ends - taken, taken)] = held
    return table


def _whole(four: NDArray[np.uint8], little: Mask) -> NDArray[np.uint32]:
    """Four bytes of each row as a whole number."""
    data = np.ascontiguousarray(four)
    low = data.view("<u4")[:, 0]
    return np.where(little, low, data.view(">u4")[:, 0]).astype(np.uint32)


def _double(
    table: NDArray[np.uint8], start: NDArray[np.int64], little: Mask
) -> NDArray[np.float64]:
    """Eight bytes of each row as a number."""
    places = start[:, None] + np.arange(8)
    data = np.ascontiguousarray(np.take_along_axis(table, places, axis=1))
    low = data.view("<f8")[:, 0]
    return np.where(little, low, data.view(">f8")[:, 0]).astype(np.float64)


def _with(points: Points, at: NDArray[np.int64], others: Points) -> Points:
    """The points with others in some places."""
    points.x.values[at], points.y.values[at] = others.x.values, others.y.values
    for mine, theirs in (
        (points.x.missing, others.x.missing),
        (points.y.missing, others.y.missing),
        (points.x.bad, others.x.bad),
        (points.y.bad, others.y.bad),
        (points.other, others.other),
        (points.elsewhere, others.elsewhere),
    ):
        mine[at] = theirs
    return points
