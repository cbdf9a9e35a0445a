"""Which closed circles contain which points, in the plane and on the globe, across 180 degrees and the poles too."""

import numpy as np
import numpy.typing as npt

from st_common.geometry.distance import reach_degrees, within_metres
from st_common.geometry.grid import BoxIndex
from st_common.geometry.join import Test, points_in_boxes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_FEW_PAIRS = 1 << 8  # of a circle and a point: tested one by one
_TURN = 360.0
_GROWTH = (
    1 + 1e-9
)  # boxes of candidates are a little too large rather than a rounding error too small
_ULPS = 4e-16
_SMALLEST = 1e-150  # the square of anything shorter is nothing


def within(
    cx: Floats, cy: Floats, radius_m: Floats, x: Floats, y: Floats, *, geographic: bool
) -> Bools:
    """For each pair of a circle and a point, whether the point is in it or on its border.

    In the plane dx * dx + dy * dy <= radius_m * radius_m, else `metres_between` <= radius_m. NaN is in no circle.
    """
    if geographic:
        return within_metres(cx, cy, x, y, radius_m)
    with np.errstate(over="ignore", invalid="ignore"):
        dx, dy = x - cx, y - cy
        return np.asarray(dx * dx + dy * dy <= radius_m * radius_m)


def points_in_circles(
    cx: Floats,
    cy: Floats,
    radius_m: Floats,
    x: Floats,
    y: Floats,
    *,
    geographic: bool,
    test: Test | None = None,
) -> Pairs:
    """All pairs of a closed circle and a point in it, for circles that change with each call.

    Args:
        cx: float64[m], longitude in degrees or a planar coordinate; a circle with NaN contains nothing.
        cy: float64[m].
        radius_m: float64[m], metres; for planar coordinates, their unit. Infinite ones contain every point.
        x: float64[n], any values; NaN lies in no circle.
        y: float64[n].
        geographic: whether coordinates are degrees on WGS 84.
        test: what pairs must hold besides; asked before distances, for circle and point numbers, in pieces.

    Returns:
        `(circle_idx, point_idx)`, int64, sorted by circle; each pair once.
    """
    if len(cx) * len(x) <= _FEW_PAIRS:
        return _each(cx, cy, radius_m, x, y, geographic=geographic, test=test)
    boxes, circle = circle_boxes(cx, cy, radius_m, geographic=geographic)

    def holds(box: Ints, point: Ints) -> Bools:
        of = circle[box]
        keep = np.ones(len(of), np.bool_) if test is None else test(of, point)
        of, point = of[keep], point[keep]
        keep[keep] = within(
            cx[of], cy[of], radius_m[of], x[point], y[point], geographic=geographic
        )
        return keep

    box, point = points_in_boxes(boxes.T, x, y, test=holds)
    found = circle[box]
    if len(circle) == len(cx):
        return found, point
    order = np.argsort(found, kind="stable")
    return found[order], point[order]


def _each(
    cx: Floats,
    cy: Floats,
    radius_m: Floats,
    x: Floats,
    y: Floats,
    *,
    geographic: bool,
    test: Test | None,
) -> Pairs:
    """Every circle with every point: where both are few, that costs less than boxes around circles."""
    circle, point = np.divmod(np.arange(len(cx) * len(x)), max(len(x), 1))
    keep = within(
        cx[circle],
        cy[circle],
        radius_m[circle],
        x[point],
        y[point],
        geographic=geographic,
    )
    circle, point = circle[keep], point[keep]
    if test is None or not len(circle):
        return circle, point
    keep = test(circle, point)
    return circle[keep], point[keep]


def circle_boxes(
    cx: Floats, cy: Floats, radius_m: Floats, *, geographic: bool
) -> tuple[Floats, Ints]:
    """Boxes around circles, float64[b, 4], and whose they are.

    A circle that reaches across 180 degrees has a second box, a whole turn away; one that holds a pole has the whole
    turn. No point is in two boxes of a circle.
    """
    owner = np.arange(len(cx))
    across, along = reach_degrees(cy, radius_m) if geographic else (radius_m, radius_m)
    with np.errstate(over="ignore", invalid="ignore"):
        wide, high = (
            r * _GROWTH + np.abs(c) * _ULPS + _SMALLEST
            for r, c in ((across, cx), (along, cy))
        )
        boxes = np.stack([cx - wide, cy - high, cx + wide, cy + high], axis=1)
    if not geographic:
        return boxes, owner
    return across_180(boxes)


def across_180(boxes: Floats) -> tuple[Floats, Ints]:
    """Boxes in degrees (float64[n, 4]), with a second one a whole turn away for each that reaches across 180 degrees.

    One that goes all around has every longitude. Also whose each box is: int64. No point is in two boxes of one.
    """
    boxes, owner = boxes.copy(), np.arange(len(boxes))
    with np.errstate(invalid="ignore"):
        whole = boxes[:, 2] - boxes[:, 0] >= _TURN
    boxes[whole, 0::2] = [-np.inf, np.inf]
    west = np.flatnonzero(~whole & (boxes[:, 0] < -_TURN / 2))
    east = np.flatnonzero(~whole & (boxes[:, 2] > _TURN / 2))
    turned = [
        boxes,
        boxes[west] + [_TURN, 0, _TURN, 0],
        boxes[east] - [_TURN, 0, _TURN, 0],
    ]
    return np.concatenate(turned), np.concatenate([owner, west, east])


class CircleIndex:
    """Finds the closed circles that contain points, exactly; immutable, built once for a set of circles.

    Args:
        x: float64[n], centres: longitude in degrees or a planar coordinate. A circle with NaN contains nothing.
        y: float64[n].
        radius_m: float64[n], metres; for planar coordinates, their unit.
        geographic: whether coordinates are degrees on WGS 84.
    """

    __slots__ = ("_boxes", "_circle", "_geographic", "_radius_m", "_x", "_y", "size")

    def __init__(
        self, x: Floats, y: Floats, radius_m: Floats, *, geographic: bool
    ) -> None:
        self._x, self._y, self._radius_m = (
            np.array(column, np.float64) for column in (x, y, radius_m)
        )
        self._geographic = geographic
        self.size = len(self._x)
        boxes, self._circle = circle_boxes(
            self._x, self._y, self._radius_m, geographic=geographic
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
        centre = self._x[circle], self._y[circle], self._radius_m[circle]
        keep = within(*centre, x[point], y[point], geographic=self._geographic)
        point, circle = point[keep], circle[keep]
        if len(self._circle) > self.size:
            order = np.lexsort((circle, point))
            point, circle = point[order], circle[order]
        return point, circle
