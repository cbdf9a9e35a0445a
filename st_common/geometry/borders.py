"""How far points are from regions that stand still, and which segments meet them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.circles import circle_boxes
from st_common.geometry.longitudes import turned
from st_common.geometry.near import Outlines, near, outlines, squared_gaps
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Shapes = npt.NDArray[np.object_]
Pairs = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Straight ways between two places each, float64[n]; on degrees the short way around."""

    ax: Floats
    ay: Floats
    bx: Floats
    by: Floats

    def __len__(self) -> int:
        return len(self.ax)

    def take(self, index: Ints | slice) -> "Segments":
        """Some of the segments, by place."""
        return Segments(
            ax=self.ax[index], ay=self.ay[index], bx=self.bx[index], by=self.by[index]
        )

    def lines(self, space: Space, distance_m: float = 0.0) -> tuple[Ints, Shapes]:
        """The segments as lines, and whose each line is.

        One that goes beyond 180 degrees, or reaches there by the distance, has a second, a turn away, so that whatever
        lies on either side of the edge of the map is met by one of the two:

            from 179 to -179 on the globe:  179 .. 181 and -181 .. -179

        Args:
            space: what coordinates mean.
            distance_m: how near to a line somebody will look, in metres, of planes in their unit.

        Returns:
            int64[l], the segment of each line, and object[l], the lines.
        """
        way = self.bx - self.ax
        short = space.shortest(way)
        bx = np.where(short == way, self.bx, self.bx + (short - way))
        farthest = np.where(np.abs(self.ax) > np.abs(bx), self.ax, bx)
        latitude = np.maximum(np.abs(self.ay), np.abs(self.by))
        reach, _ = space.reach(latitude, distance_m)
        beyond = space.reaching_across(farthest, reach)
        shift = turned(farthest[beyond]) - farthest[beyond]
        first = np.stack([self.ax, self.ay, bx, self.by], axis=1)
        second = first[beyond]
        second[:, 0::2] += shift[:, None]
        ends = np.concatenate([first, second]).reshape(-1, 2, 2)
        whose = np.concatenate([np.arange(len(first), dtype=np.int64), beyond])
        return whose, np.array(shapely.linestrings(ends), object)


class Areas:
    """Polygons whose borders are looked at, in the order in which they are given.

    Args:
        shapes: polygons or multipolygons (or anything else that has an outline), in the points' coordinates.
        space: what coordinates mean.
    """

    __slots__ = ("_outlines", "_space", "_tree")

    def __init__(self, shapes: Shapes, *, space: Space) -> None:
        self._space = space
        self._outlines: Outlines = outlines(shapes)
        self._tree = shapely.STRtree(shapes)

    def near(self, which: Ints, x: Floats, y: Floats, distance_m: Floats) -> Bools:
        """Whether the point of each pair is so near to the polygon; bool[n]. Points inside are not asked about.

        Distances are closed; right as those of `near.near`.

        Args:
            which: int64[n], polygons.
            x: float64[n], outside of the polygon of the pair; `y` likewise.
            y: see `x`.
            distance_m: float64[n], metres, of planes in their unit.
        """
        return near_around(self._outlines, which, x, y, distance_m, space=self._space)

    def met_by(self, segments: Segments) -> Pairs:
        """All pairs of a segment and a polygon that have a point in common, its border included.

        Returns:
            Two int64 arrays, sorted by segment, then polygon; each pair once.
        """
        line, lines = segments.lines(self._space)
        at, area = self._tree.query(lines, predicate="intersects")
        return each_once(line[at], area)

    def meet(self, which: Ints, segments: Segments) -> Bools:
        """Whether the segment of each pair has a point in common with its polygon (int64[n]); bool[n]."""
        line, lines = segments.lines(self._space)
        areas = self._tree.geometries[which[line]]
        return any_of(line, np.asarray(shapely.intersects(lines, areas)), len(which))


class Circles:
    """Circles whose borders are looked at, in the order in which they are given.

    Args:
        x: float64[n], centres: longitude in degrees or a planar coordinate.
        y: float64[n].
        radius_m: float64[n], metres; for planar coordinates, their unit.
        space: what coordinates mean.
    """

    __slots__ = ("_circle", "_radius_m", "_space", "_tree", "_x", "_y")

    def __init__(self, x: Floats, y: Floats, radius_m: Floats, *, space: Space) -> None:
        self._x, self._y, self._radius_m = x, y, radius_m
        self._space = space
        boxes, self._circle = circle_boxes(x, y, radius_m, space=space)
        boxes = np.clip(boxes, -1e300, 1e300)  # one around a pole is endless
        shapes: Shapes = np.array(shapely.box(*boxes.T), object)
        self._tree = shapely.STRtree(shapes)

    def near(self, which: Ints, x: Floats, y: Floats, distance_m: Floats) -> Bools:
        """Whether the point of each pair is so near to the circle; bool[n], exact. Distances are closed.

        Args:
            which: int64[n], circles.
            x: float64[n], outside of the circle of the pair; `y` likewise.
            y: see `x`.
            distance_m: float64[n], metres, of planes in their unit.
        """
        reach = self._radius_m[which] + distance_m
        return self._space.is_within(self._x[which], self._y[which], x, y, reach)

    def met_by(self, segments: Segments) -> Pairs:
        """All pairs of a segment and a circle that have a point in common.

        On degrees in the plane that touches the globe at the centre: right to 0.2 % for circles of some kilometres.

        Returns:
            Two int64 arrays, sorted by segment, then circle; each pair once.
        """
        line, lines = segments.lines(self._space)
        at, box = self._tree.query(lines, predicate="intersects")
        circle = self._circle[box]
        meets = self._reached(lines[at], circle)
        return each_once(line[at[meets]], circle[meets])

    def meet(self, which: Ints, segments: Segments) -> Bools:
        """Whether the segment of each pair has a point in common with its circle (int64[n]); bool[n]."""
        line, lines = segments.lines(self._space)
        return any_of(line, self._reached(lines, which[line]), len(which))

    def _reached(self, lines: Shapes, circle: Ints) -> Bools:
        ends = shapely.get_coordinates(lines).reshape(-1, 4).T
        gap2 = self._squared_gaps(ends, circle)
        return np.asarray(gap2 <= self._radius_m[circle] ** 2)

    def _squared_gaps(self, ends: Floats, circle: Ints) -> Floats:
        """The squared distance of each segment from the centre of its circle, in metres or units of the plane."""
        x, y = self._x[circle], self._y[circle]
        way = (ends[0] + ends[2]) / 2 - x
        x = x + (way - self._space.shortest(way))  # a turn away where that is nearer
        return squared_gaps(ends, x, y, *self._space.scale(y))


def near_around(
    shapes: Outlines,
    which: Ints,
    x: Floats,
    y: Floats,
    distance_m: Floats,
    *,
    space: Space,
) -> Bools:
    """As `near.near`, also across 180 degrees; each pair has a distance.

    Args:
        shapes: the outlines.
        which: int64[n], the geometry of each pair.
        x: float64[n], longitude in degrees or a planar coordinate; `y` likewise latitude.
        y: see `x`.
        distance_m: float64[n], metres; for planar coordinates, their unit.
        space: what coordinates mean.
    """
    is_near = near(shapes, which, x, y, distance_m, space=space)
    reach, _ = space.reach(y, distance_m)
    beyond = space.reaching_across(x, reach)
    if len(beyond):
        far, there = distance_m[beyond], turned(x[beyond])
        is_near[beyond] |= near(
            shapes, which[beyond], there, y[beyond], far, space=space
        )
    return is_near


def any_of(owner: Ints, holds: Bools, count: int) -> Bools:
    """Whether something holds for one of the rows that each owner (int64[n], below `count`) has; bool[count]."""
    out = np.zeros(count, np.bool_)
    out[owner[holds]] = True
    return out


def each_once(one: Ints, other: Ints) -> Pairs:
    """Pairs of numbers sorted by the first, then the second, each once; two int64 arrays.

    Example:
        (2, 0), (1, 5), (2, 0):  (1, 5), (2, 0)
    """
    if not len(one):
        return one.astype(np.int64), other.astype(np.int64)
    pairs = np.unique(np.stack([one, other], axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]
