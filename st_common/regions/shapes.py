"""Shapes as canonical text, and what is wrong with the texts that people write."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from st_common.crs import SRID
from st_common.regions.region import ShapeError

if TYPE_CHECKING:
    import shapely

_SHOWN = 60  # characters of a long shape
_LONGEST = 64


def shape_of(
    wkt: str, kinds: Collection[str], expected: str, like: str
) -> "shapely.Geometry":
    """The shape of a text, in two dimensions and not empty.

    Args:
        wkt: the text as somebody wrote it.
        kinds: shapely's names of the types that it may have.
        expected: these in words: "a polygon or multipolygon".
        like: an example, for the hint.

    Raises:
        ShapeError: it is no WKT, or of another type.
    """
    import numpy as np
    import shapely  # slow to import, and seldom needed

    if said := system_said(wkt):
        message = (
            f"SRID={said} stands before the shape, and its stream is not known here"
        )
        raise ShapeError(message, "leave it out: coordinates are those of the stream")
    try:
        with np.errstate(
            all="ignore"
        ):  # a number too large: whoever asks for validity says so
            shape = shapely.from_wkt(wkt)
    except (shapely.errors.ShapelyError, ValueError, TypeError):
        raise ShapeError(f"this is no WKT: {short(wkt)!r}", like) from None
    except NotImplementedError:  # an arc; GEOS may know them, and shapely does not
        raise ShapeError(f"expected {expected} without arcs", like) from None
    if shape.geom_type not in kinds or shape.is_empty:
        what = "an empty area" if shape.is_empty else f"a {shape.geom_type}"
        raise ShapeError(f"expected {expected}, not {what}", like)
    return shapely.force_2d(shape)


def text_of(shape: "shapely.Geometry") -> str:
    """The canonical WKT of a shape: its parts in one order, numbers as short as they are."""
    import shapely

    return str(shapely.to_wkt(shapely.normalize(shape), rounding_precision=-1))


def short(wkt: str) -> str:
    """A text that people can read, cut where it is long."""
    return wkt if len(wkt) <= _LONGEST else f"{wkt[:_SHOWN]}..."


def why_invalid(shape: "shapely.Geometry") -> str:
    """Why a shape is not valid, in words, with the place where there is one.

    POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0)) -> "its border crosses itself at (1, 1)"
    """
    import shapely

    reason, _, place = shapely.is_valid_reason(shape).partition("[")
    x, _, y = place.rstrip("]").partition(" ")
    words = _WHY.get(reason.casefold(), "its border makes no shape")
    return f"{words} at ({x}, {y})" if y else words


_WHY = {
    "self-intersection": "its border crosses itself",
    "ring self-intersection": "its border touches itself",
    "too few points in geometry component": "a part has too few different points",
    "invalid coordinate": "a coordinate is not finite",
    "hole lies outside shell": "a hole lies outside of the border",
    "holes are nested": "a hole lies in a hole",
    "nested shells": "a part lies in another one",
    "interior is disconnected": "holes cut it into pieces",
    "duplicate rings": "a border is there twice",
}


def system_said(wkt: str) -> int | None:
    """The number of the system that a text of PostGIS says: 4326 of `SRID=4326;POINT (1 2)`; None without one."""
    said = SRID.match(wkt)
    return int(said[1]) if said is not None else None
