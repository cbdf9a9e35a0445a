"""Polygons as canonical text, so that one area has one plan."""

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.region import Area

_KINDS = ("Polygon", "MultiPolygon")
_LIKE = "'POLYGON ((x y, x y, x y, x y))'"


def area_of(literal: exp.Expr) -> Area:
    """The area of a WKT text: a valid polygon or multipolygon, its rings in one order, numbers as short as they are."""
    import numpy as np
    import shapely  # slow to import, and seldom needed

    try:
        with np.errstate(
            all="ignore"
        ):  # a number too large makes an area that is not valid
            shape = shapely.from_wkt(literal.this)
    except (shapely.errors.ShapelyError, ValueError, TypeError) as error:
        raise Refused(
            f"this is no WKT: {_first_line(error)}", span_of(literal), _LIKE
        ) from None
    if shape.geom_type not in _KINDS or shape.is_empty:
        what = "an empty area" if shape.is_empty else f"a {shape.geom_type}"
        raise Refused(
            f"expected a polygon or multipolygon, not {what}", span_of(literal), _LIKE
        )
    flat = shapely.force_2d(shape)
    if not shapely.is_valid(flat):
        raise Refused(
            f"the area is not valid: {shapely.is_valid_reason(flat)}", span_of(literal)
        )
    return Area(wkt=shapely.to_wkt(shapely.normalize(flat), rounding_precision=-1))


def _first_line(error: Exception) -> str:
    return (
        str(error).partition("\n")[0].removeprefix("ParseException: ")
        or type(error).__name__
    )
