"""Geometries of any kind, from WKT, WKB or GeoJSON in one column (SPEC B7).

A geometry stays whole, as WKT; its x and y are a point on it: of a line one of its vertices inside, of an area one that
is in it, also where the middle is in a hole (`shapely.point_on_surface`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from st_common.formats.numbers import Mask, Parsed, as_texts, is_missing, mask

Geometries = npt.NDArray[np.object_]

_EXACT = 340
"""So many decimals cut no double; the shortest digits that give it again are written."""
_HEX = r"^(?:[0-9A-Fa-f]{2}){5,}$"
_SRID = r"^\s*(?i:SRID=(?P<srid>[0-9]{1,9});)"


@dataclass(frozen=True, slots=True)
class Shapes:
    """The geometries of some records. Where `other` or `elsewhere`, x and y are no numbers that count.

    Attributes:
        x: of a point on each.
        y: likewise.
        other: bool[n], what is no geometry, or an invalid one.
        elsewhere: bool[n], one that says that it is in another system.
        bounds: float64[n, 4], the corners of each; NaN where there is none.
        texts: each as WKT, without a rounded number; null where there is none.
    """

    x: Parsed
    y: Parsed
    other: Mask
    elsewhere: Mask
    bounds: npt.NDArray[np.float64]
    texts: pa.Array


def shapes_of(values: pa.Array, *, epsg: int) -> Shapes:
    """The geometries that a column gives; total, as all that judges records.

    Args:
        values: texts (WKT, WKB in hexadecimal digits, GeoJSON), or binary values (WKB).
        epsg: of the stream's system; 0: none, so that no SRID is another one.
    """
    with np.errstate(invalid="ignore"):  # a NaN in a geometry is a reject
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            return _judged(_of_wkb(values), mask(values.is_null()), epsg)
        texts = as_texts(values)
        return _judged(geometries_of(texts), is_missing(texts), epsg)


def _judged(shapes: Geometries, missing: Mask, epsg: int) -> Shapes:
    coordinates = shapely.get_coordinates(shapes, return_index=True)
    is_odd = np.zeros(len(shapes), bool)
    is_odd[coordinates[1][~np.isfinite(coordinates[0]).all(axis=1)]] = True
    other = ~missing & (shapely.is_missing(shapes) | is_odd | ~shapely.is_valid(shapes))
    missing = missing | (~other & shapely.is_empty(shapes))
    srid = shapely.get_srid(shapes)
    known = ~(missing | other)
    elsewhere = known & (srid > 0) & (srid != epsg) & (epsg != 0)
    kept: Geometries = shapes.copy()
    kept[~known] = None
    points = shapely.point_on_surface(kept)
    bad = np.zeros(len(shapes), bool)
    wkt = shapely.to_wkt(kept, rounding_precision=_EXACT)
    return Shapes(
        x=Parsed(shapely.get_x(points), missing, bad),
        y=Parsed(shapely.get_y(points), missing, bad),
        other=other,
        elsewhere=elsewhere,
        bounds=shapely.bounds(kept),
        texts=pa.array(wkt, pa.string(), from_pandas=True),
    )


def _of_wkb(values: pa.Array) -> Geometries:
    wkb = values.to_numpy(zero_copy_only=False)
    return np.asarray(shapely.from_wkb(wkb, on_invalid="ignore"))


def geometries_of(texts: pa.Array) -> Geometries:
    """The geometry of each text by what it begins with: a brace, hexadecimal digits alone, else WKT.

    None where there is none; each with the SRID that it says, else 0.
    """
    srid = pc.extract_regex(texts, _SRID).field("srid")
    plain = pc.replace_substring_regex(texts, _SRID, "")
    held = plain.to_numpy(zero_copy_only=False)
    is_json = mask(pc.match_substring_regex(plain, r"^\s*\{"))
    is_hex = mask(pc.match_substring_regex(plain, _HEX))
    shapes = np.full(len(texts), None, object)
    for where, read in (
        (is_json, shapely.from_geojson),
        (is_hex, shapely.from_wkb),
        (~(is_json | is_hex), shapely.from_wkt),
    ):
        with np.errstate(invalid="ignore", over="ignore"):  # as of 1e400
            shapes[where] = read(held[where], on_invalid="ignore")
    said = pc.fill_null(pc.if_else(pc.equal(srid, ""), None, srid), "0")
    own = np.asarray(said.cast(pa.int64()))
    return np.asarray(
        shapely.set_srid(shapes, np.where(own > 0, own, shapely.get_srid(shapes)))
    )
