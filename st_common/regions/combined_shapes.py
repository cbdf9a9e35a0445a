"""Where the parts of combined regions lie, and how they are drawn."""

import numpy as np
import shapely

from st_common.errors import StateError
from st_common.geometry.space import Space
from st_common.regions.combining import MOVES
from st_common.regions.region import Region, StillRegion

FAR = 1e9  # how far a region without end is drawn on a plane: beyond any map
_ELLIPSE_SIDES = 16  # in a quarter, drawn


def bounds_of(part: Region, space: Space) -> np.ndarray:
    """The bounds of a part, float64[4]."""
    still = _standing(part)
    bounds: np.ndarray = type(still).bounds([still], space=space)[0]
    return bounds


def drawn_shape(part: Region, space: Space) -> shapely.Geometry:
    """A part as it is drawn: an ellipse fills its outline, which is a box."""
    still = _standing(part)
    shape = still.outline(space=space)
    if still.drawn != "ellipse":
        return shape
    minx, miny, maxx, maxy = shapely.bounds(shape)
    one = shapely.Point(0, 0).buffer(1.0, quad_segs=_ELLIPSE_SIDES)
    half = (maxx - minx) / 2, (maxy - miny) / 2
    middle = (minx + maxx) / 2, (miny + maxy) / 2
    return shapely.transform(one, lambda places: places * half + middle)


def _standing(part: Region) -> StillRegion:
    """The part, which stands still.

    Raises:
        StateError: it goes with an object.
    """
    if isinstance(part, StillRegion):
        return part
    raise StateError(MOVES)


def everywhere(space: Space, far: float) -> tuple[float, float, float, float]:
    """minx, miny, maxx, maxy of all places."""
    return (-far, -far, far, far) if space.is_flat else (-180.0, -90.0, 180.0, 90.0)
