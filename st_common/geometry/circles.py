"""Which closed circles contain which points, in the plane and on the globe, across 180 degrees and the poles too."""

import numpy as np
import numpy.typing as npt

from st_common.geometry.grid import BoxIndex
from st_common.geometry.join import Test, points_in_boxes
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_FEW_PAIRS = 1 << 8  # of a circle and a point: tested one by one
_GROWTH = (
    1 + 1e-9
)  # boxes of candidates are a little too large rather than a rounding error too small
_ULPS = 4e-16
# Anything shorter has no length: on the globe angles are rounded so, on a plane it has no square long before.
_SMALLEST = 1e-16


def points_in_circles(
    cx: Floats,
    cy: Floats,
    radius_m: Floats,
    x: Floats,
    y: Floats,
    *,
    space: Space,
    test: Test | None = None,
) -> Pairs:
    """All pairs of a closed circle and a point in it, for circles that change with each call.

    Args:
        cx: float64[m], longitude in degrees or a planar coordinate; a circle with NaN contains nothing.
        cy: float64[m].
        radius_m: float64[m], metres; for planar coordinates, their unit. Infinite ones contain every point.
        x: float64[n], any values; NaN lies in no circle.
        y: float64[n].
        space: what coordinates mean.
        test: what pairs must hold besides; asked before distances, for circle and point numbers, in pieces.

    Returns:
        `(circle_idx, point_idx)`, int64, sorted by circle; each pair once.
    """
    if len(cx) * len(x) <= _FEW_PAIRS:
        return _each(cx, cy, radius_m, x, y, space=space, test=test)
    boxes, circle = circle_boxes(cx, cy, radius_m, space=space)

    def holds(box: Ints, point: Ints) -> Bools:
        of = circle[box]
        keep = np.ones(len(of), np.bool_) if test is None else test(of, point)
        of, point = of[keep], point[keep]
        keep[keep] = space.is_within(cx[of], cy[of], x[point], y[point], radius_m[of])
        return keep

    box, point = points_in_boxes(boxes.T, x, y, test=holds)
    circle_of_box = circle[box]
    if len(circle) == len(cx):
        return circle_of_box, point
    order = np.argsort(circle_of_box, kind="stable")
    return circle_of_box[order], point[order]


def _each(
    cx: Floats,
    cy: Floats,
    radius_m: Floats,
    x: Floats,
    y: Floats,
    *,
    space: Space,
    test: Test | None,
) -> Pairs:
    """Every circle with every point: where both are few, that costs less than boxes around circles."""
    circle, point = np.divmod(np.arange(len(cx) * len(x)), max(len(x), 1))
    keep = space.is_within(cx[circle], cy[circle], x[point], y[point], radius_m[circle])
    circle, point = circle[keep], point[keep]
    if test is None or not len(circle):
        return circle, point
    keep = test(circle, point)
    return circle[keep], point[keep]


def circle_boxes(
    cx: Floats, cy: Floats, radius_m: Floats, *, space: Space
) -> tuple[Floats, Ints]:
    """Boxes around circles, a little too large rather than too small.

    A circle that reaches across 180 degrees has a second box, a whole turn away; one that holds a pole has the whole
    turn. No point is in two boxes of a circle.

    Args:
        cx: float64[m], centres: longitude in degrees or a planar coordinate; `cy` likewise.
        cy: see `cx`.
        radius_m: float64[m], metres; for planar coordinates, their unit.
        space: what coordinates mean.

    Returns:
        float64[b, 4] of minx, miny, maxx, maxy, the first boxes of all circles first; and int64[b], whose each is.

    Example:
        5 km around 179.99 0 on the globe:  179.945 .. 180.035 and -180.055 .. -179.965
    """
    across, along = space.reach(cy, radius_m)
    with np.errstate(over="ignore", invalid="ignore"):
        wide, high = (
            r * _GROWTH + np.abs(c) * _ULPS + _SMALLEST
            for r, c in ((across, cx), (along, cy))
        )
        boxes = np.stack([cx - wide, cy - high, cx + wide, cy + high], axis=1)
    return space.wrap(boxes)


def box_around(cx: Floats, cy: Floats, radius_m: Floats, *, space: Space) -> Floats:
    """One box around each circle, float64[n, 4]; across 180 degrees as wide as both of its parts together.

    Args:
        cx: float64[n], centres; `cy` likewise.
        cy: see `cx`.
        radius_m: float64[n], metres; for planar coordinates, their unit.
        space: what coordinates mean.
    """
    parts, owner = circle_boxes(cx, cy, radius_m, space=space)
    return around_parts(parts, owner, len(cx))


def around_parts(parts: Floats, owner: Ints, count: int) -> Floats:
    """One box around all parts of each owner; float64[count, 4].

    Args:
        parts: float64[b, 4], boxes.
        owner: int64[b], whose each is; one without parts has a box that is empty: from infinity to minus infinity.
        count: how many owners there are.
    """
    low, high = (np.full((count, 2), value) for value in (np.inf, -np.inf))
    np.minimum.at(low, owner, parts[:, :2])
    np.maximum.at(high, owner, parts[:, 2:])
    return np.concatenate([low, high], axis=1)


class CircleIndex:
    """Finds the closed circles that contain points, exactly; immutable, built once for a set of circles.

    Args:
        x: float64[n], centres: longitude in degrees or a planar coordinate. A circle with NaN contains nothing.
        y: float64[n].
        radius_m: float64[n], metres; for planar coordinates, their unit.
        space: what coordinates mean.
    """

    __slots__ = ("_boxes", "_circle", "_radius_m", "_space", "_x", "_y", "size")

    def __init__(self, x: Floats, y: Floats, radius_m: Floats, *, space: Space) -> None:
        self._x, self._y, self._radius_m = (
            np.array(column, np.float64) for column in (x, y, radius_m)
        )
        self._space = space
        self.size = len(self._x)
        boxes, self._circle = circle_boxes(
            self._x, self._y, self._radius_m, space=space
        )
        self._boxes = BoxIndex(boxes)

    def probe(self, x: Floats, y: Floats) -> Pairs:
        """All pairs of a point and a circle that contains it, borders included.

        Args:
            x: float64[m], any values; NaN lies in no circle.
            y: float64[m].

        Returns:
            `(point_idx, circle_idx)`, int64, sorted by point, then circle; each pair once.
        """
        point, box = self._boxes.probe(x, y)
        circle = self._circle[box]
        keep = self._space.is_within(
            self._x[circle],
            self._y[circle],
            x[point],
            y[point],
            self._radius_m[circle],
        )
        point, circle = point[keep], circle[keep]
        if len(self._circle) > self.size:
            order = np.lexsort((circle, point))
            point, circle = point[order], circle[order]
        return point, circle
