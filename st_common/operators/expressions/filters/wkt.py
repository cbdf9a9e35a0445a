"""The filter `wkt`: fixes whose box meets a geometry, really and not by its bounds alone."""

import numpy as np
import shapely

from st_common.geometry.areas import prepared
from st_common.operators.expressions.filters.protocol import Bools, Features, Fixes


class WktFilter:
    """Passes fixes whose box, enlarged or not, meets the geometry that the value gives as WKT; borders count."""

    def filter_fixes(self, fixes: Fixes, value: str | None) -> Bools:
        """Which fixes' boxes meet the geometry; bool[n], none without a value."""
        (shape,) = prepared([value or "POINT EMPTY"])
        return meeting(shape, fixes)

    def filter_pairs(
        self,
        fixes: Fixes,
        features: Features,  # noqa: ARG002
        value: str | None,
    ) -> Bools:
        """The same: the join itself says how a fix lies to the feature."""
        return self.filter_fixes(fixes, value)


def meeting(shape: shapely.Geometry, fixes: Fixes) -> Bools:
    """Which fixes' boxes meet a geometry; bool[n], borders included.

    Args:
        shape: prepared, in the stream's coordinates. What lies beyond 180 degrees is not looked for.
        fixes: n fixes; points where nothing was enlarged.
    """
    x, y = fixes.readings.x, fixes.readings.y
    are_points = not (fixes.half_x.any() or fixes.half_y.any())
    if are_points:
        return np.asarray(shapely.intersects_xy(shape, x, y), np.bool_)
    boxes = shapely.box(
        x - fixes.half_x, y - fixes.half_y, x + fixes.half_x, y + fixes.half_y
    )
    return np.asarray(shapely.intersects(shape, boxes), np.bool_)
