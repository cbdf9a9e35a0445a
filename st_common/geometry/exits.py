"""Until when points stay in many regions of one kind: a region for each point, by its place among them (SPEC G8).

regions      which      points            until
0: a box     0          p, in region 0    when p crosses its first edge
1: a box     1          q, in region 1
             0          r, in region 0
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from st_common.geometry.space import Space
from st_common.geometry.until import (
    Motion,
    in_areas_until,
    in_boxes_until,
    in_circles_until,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Shapes = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxExits:
    """The ways out of boxes that stand still.

    Attributes:
        edges: float64[4, m]: minx, miny, maxx, maxy.
    """

    edges: Floats

    def until(self, which: Ints, members: Motion, at_s: Floats) -> Floats:
        """Until the first edge is reached; float64[n], as `in_boxes_until`."""
        still = np.zeros(len(at_s))
        return in_boxes_until(members, self.edges[:, which], still, still, at_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleExits:
    """The ways out of circles that stand still.

    Attributes:
        x: float64[m], the centres; `y` likewise.
        radius_m: float64[m], metres or the unit of the plane.
    """

    x: Floats
    y: Floats
    radius_m: Floats
    space: Space

    def until(self, which: Ints, members: Motion, at_s: Floats) -> Floats:
        """Until the border is reached; float64[n], as `in_circles_until`."""
        still = np.zeros(len(at_s))
        centre = Motion(x=self.x[which], y=self.y[which], vx=still, vy=still)
        radius_m = self.radius_m[which]
        return in_circles_until(members, centre, radius_m, at_s, space=self.space)


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaExits:
    """The ways out of polygons.

    Attributes:
        areas: geometries[m], prepared.
    """

    areas: Shapes

    def until(self, which: Ints, members: Motion, at_s: Floats) -> Floats:
        """Until the border is first crossed; float64[n], as `in_areas_until`."""
        return in_areas_until(self.areas[which], members, at_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingBoxExits:
    """The ways out of boxes around objects.

    Attributes:
        width: float64[m], full sides along x; `height` along y.
        metres: bool[m], whether sides are metres; else they are in coordinates.
    """

    width: Floats
    height: Floats
    metres: Bools
    space: Space

    def until(
        self, which: Ints, members: Motion, focal: Motion, at_s: Floats
    ) -> Floats:
        """Until the first edge is reached; float64[n], as `in_boxes_until`."""
        half_x, half_y = self._halves(which, focal)
        edges = [
            focal.x - half_x,
            focal.y - half_y,
            focal.x + half_x,
            focal.y + half_y,
        ]
        # A member beyond 180 degrees has the longitude that it would have if these went on.
        near = replace(members, x=focal.x + self.space.shortest(members.x - focal.x))
        return in_boxes_until(near, np.stack(edges), focal.vx, focal.vy, at_s)

    def _halves(self, which: Ints, focal: Motion) -> tuple[Floats, Floats]:
        """Half the sides in coordinates; metres on degrees are those at the latitude of the focal object."""
        half_x, half_y = self.width[which] / 2, self.height[which] / 2
        metres = self.metres[which]
        across, along = self.space.scale(focal.y)
        return (
            np.where(metres, half_x / across, half_x),
            np.where(metres, half_y / along, half_y),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingCircleExits:
    """The ways out of circles around objects.

    Attributes:
        radius_m: float64[m], metres or the unit of the plane.
    """

    radius_m: Floats
    space: Space

    def until(
        self, which: Ints, members: Motion, focal: Motion, at_s: Floats
    ) -> Floats:
        """Until the two are a radius apart; float64[n], as `in_circles_until`."""
        radius_m = self.radius_m[which]
        return in_circles_until(members, focal, radius_m, at_s, space=self.space)
