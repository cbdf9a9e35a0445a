"""Boxes around points: enlarged by factors, values and metres, and which closed boxes they meet (BBoxDB section 4.3.1).

Each step is linear in the extents, so whatever was done to a point's box, its extents are
`value + metres / metres per degree` on either axis: the same two numbers for both, whichever the latitude.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.distance import metres_per_degree
from st_common.geometry.longitudes import turned
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Axes = tuple[Floats, Floats]  # along x, along y

_SLACK = 1.001  # boxes of candidates are a little too large rather than a rounding error too small
_SHORTEST_M = 110_574.0  # a degree of latitude at the equator, where it is shortest
_POLAR = 89.9  # nearer to a pole boxes of candidates go all around it


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The extents of the box around a point, in both directions: `value` coordinates and `metres` (SPEC B10).

    A plane's metres are its coordinates; on longitude and latitude they are converted at the point's latitude.

        Growth().by_value(4).by_factor(0.5).by_metres(10)      value 6, metres 10
    """

    value: float = 0.0
    metres: float = 0.0

    def by_factor(self, amount: float) -> "Growth":
        """An extent e becomes (1 + amount) e; a point stays one.

        Args:
            amount: the share by which extents grow: 0.5 makes them half as large again.
        """
        return Growth(
            value=self.value * (1 + amount), metres=self.metres * (1 + amount)
        )

    def by_value(self, amount: float) -> "Growth":
        """Extents grow by coordinates, half on each side."""
        return Growth(value=self.value + amount, metres=self.metres)

    def by_metres(self, amount: float) -> "Growth":
        """Extents grow by metres, half on each side."""
        return Growth(value=self.value, metres=self.metres + amount)

    @property
    def is_point(self) -> bool:
        """Whether nothing was enlarged."""
        return not self.value and not self.metres

    def half_sides(self, latitude: Floats, *, space: Space) -> Axes:
        """Half of the extents along x and y of the boxes around points, in coordinates; float64[n] each.

        Metres are right to 0.5 % up to 85 degrees of latitude for boxes of some kilometres.

        Args:
            latitude: float64[n], the y of the points.
            space: what coordinates mean.
        """
        return half_sides(self.value, self.metres, space.scale(latitude))

    def rounded(self) -> "Growth":
        """One that is as large or up to twice as large: of those there are few, so that indexes can be kept."""
        value, metres = (
            2.0 ** np.ceil(np.log2(part)) if part > 0 else 0.0
            for part in (self.value, self.metres)
        )
        return Growth(value=float(value), metres=float(metres))

    def stands(self, *, space: Space) -> bool:
        """Whether extents are the same everywhere."""
        return space.is_flat or not self.metres


POINT = Growth()
"""A point that was not enlarged."""


def half_sides(value: Floats | float, metres: Floats | float, scale: Axes) -> Axes:
    """Half of the extents of boxes along x and y, in coordinates; float64[n] each.

    Args:
        value: extents in coordinates, one for all or float64[n].
        metres: extents in metres beside these, likewise.
        scale: metres per unit of x and of y where the points are, as `Space.scale` gives them.
    """
    return (value + metres / scale[0]) / 2, (value + metres / scale[1]) / 2


def meets(boxes: Floats, half: Axes, x: Floats, y: Floats) -> Bools:
    """Whether the box around the point of each pair meets the other box, both closed; bool[n].

    Args:
        boxes: float64[4, n]: minx, miny, maxx, maxy.
        half: half of the extents of the boxes around the points, float64[n] each.
        x: float64[n]; NaN meets nothing.
        y: float64[n].
    """
    minx, miny, maxx, maxy = boxes
    across, along = half
    keep: Bools = x >= minx - across
    keep &= x <= maxx + across
    keep &= y >= miny - along
    keep &= y <= maxy + along
    return keep


def reached(boxes: Floats, growth: Growth, *, space: Space) -> Floats:
    """Boxes that hold every point whose own box, so enlarged, meets the given ones; float64[n, 4].

    They hold no other point where extents are the same everywhere; on degrees metres make them somewhat larger.

    Args:
        boxes: float64[n, 4]: minx, miny, maxx, maxy.
        growth: that of the points' boxes.
        space: what coordinates mean.
    """
    outwards = np.array([-1.0, -1.0, 1.0, 1.0])
    if growth.stands(space=space):
        return boxes + (growth.value + growth.metres) / 2 * outwards
    along = (growth.value + growth.metres / _SHORTEST_M) / 2 * _SLACK
    farthest = np.abs(boxes[:, 1::2]).max(axis=1, initial=0.0) + along
    across = (
        (
            growth.value
            + growth.metres / metres_per_degree(np.minimum(farthest, _POLAR))[0]
        )
        / 2
        * _SLACK
    )
    across = np.where(farthest < _POLAR, across, np.inf)
    grown: Floats = (
        boxes + np.stack([across, np.full_like(across, along)] * 2, axis=1) * outwards
    )
    return grown


def boxes_reached(
    boxes: Floats, distance_m: float | None, growth: Growth, *, space: Space
) -> Floats:
    """Boxes that hold every point which is within a distance of the given ones, or whose own box meets them.

    Args:
        boxes: float64[n, 4]: minx, miny, maxx, maxy.
        distance_m: metres or the unit of the plane; None: boxes around points must meet them.
        growth: of these boxes around points.
        space: what coordinates mean.

    Returns:
        float64[n, 4]; see `grown` and `reached`.
    """
    if distance_m is not None:
        return grown(boxes, distance_m, space=space)
    return boxes if growth.is_point else reached(boxes, growth, space=space)


def points_reaching(
    x: Floats,
    y: Floats,
    distance_m: Floats | float | None,
    growth: Growth,
    *,
    space: Space,
) -> tuple[Floats, Floats, Ints]:
    """Points, those that reach across 180 degrees once more a whole turn away, and whose each is.

    Args:
        x: float64[n]; NaN reaches nothing.
        y: float64[n].
        distance_m: how far points reach, one for all or float64[n]; None: as far as the boxes around them.
        growth: of these boxes.
        space: what coordinates mean.

    Returns:
        x and y, float64[n + m]; int64[n + m], places of the points that were given.
    """
    owner = np.arange(len(x))
    if distance_m is None and growth.is_point:
        return x, y, owner
    reach = (
        growth.half_sides(y, space=space)[0]
        if distance_m is None
        else space.reach(y, distance_m)[0]
    )
    beyond = space.reaching_across(x, reach)
    if not len(beyond):
        return x, y, owner
    return (
        np.concatenate([x, turned(x[beyond])]),
        np.concatenate([y, y[beyond]]),
        np.concatenate([owner, beyond]),
    )


def grown(boxes: Floats, distance: Floats | float, *, space: Space) -> Floats:
    """Boxes that hold every place within a distance of each box, and some more; float64[n, 4].

    Args:
        boxes: float64[n, 4]: minx, miny, maxx, maxy; not wrapped at 180 degrees.
        distance: metres or the unit of the plane, one for all or float64[n].
        space: what coordinates mean.
    """
    farthest = np.abs(boxes[:, 1::2]).max(axis=1, initial=0.0)
    across, along = space.reach(farthest, distance)
    growth: Floats = np.stack([-across, -along, across, along], axis=1)
    return boxes + growth
