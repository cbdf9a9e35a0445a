"""Shapes as canonical text, and what is wrong with the texts that people write."""

from collections.abc import Collection
from typing import TYPE_CHECKING

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

    try:
        with np.errstate(
            all="ignore"
        ):  # a number too large: whoever asks for validity says so
            shape = shapely.from_wkt(wkt)
    except (shapely.errors.ShapelyError, ValueError, TypeError) as error:
        raise ShapeError(f"this is no WKT: {_first_line(error)}", like) from None
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


def _first_line(error: Exception) -> str:
    return (
        str(error).partition("\n")[0].removeprefix("ParseException: ")
        or type(error).__name__
    )
