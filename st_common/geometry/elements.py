"""Elements with an extent, and which regions they meet, or lie wholly in: exact, all closed (SPEC B1).

```
    regions            0 1 2 3 4 5        element    meets          lies in
    a = 1 .. 3           [---]            2 .. 3     a, b           a
    b = 3 .. 5               [---]        3 .. 4     a (touches), b b
```

Boxes rule most pairs out, by a tree; boxes are then compared with boxes, and all else is asked of shapely.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.apart import distances
from st_common.geometry.borders import near_around
from st_common.geometry.circles import box_around
from st_common.geometry.longitudes import turned
from st_common.geometry.near import outlines
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Shapes = npt.NDArray[np.object_]
Pairs = tuple[Ints, Ints]

_AREA = 2
_ENDLESS = 1e300
_SIDE_DEG = 1.0
"""Between corners so far apart a straight side leaves a circle on the globe by less than 0.5 % of its radius."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The extents of elements; n of them.

    Attributes:
        bounds: float64[n, 4]: minx, miny, maxx, maxy; NaN for one that is nowhere.
        shapes: object[n], their geometries; None where they are the boxes of `bounds`.
    """

    bounds: Floats
    shapes: Shapes | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    def geometries(self, which: Ints) -> Shapes:
        """The geometries of some of them (int64[m]); object[m]."""
        if self.shapes is None:
            return boxes_as_shapes(self.bounds[which])
        chosen: Shapes = self.shapes[which]
        return chosen


def boxes_as_shapes(bounds: Floats) -> Shapes:
    """Closed boxes as geometries: one without width or height is the line or the point that it is.

    Args:
        bounds: float64[n, 4]: minx, miny, maxx, maxy.
    """
    minx, miny, maxx, maxy = bounds.T
    shapes: Shapes = np.array(shapely.box(minx, miny, maxx, maxy), object)
    thin = np.flatnonzero((minx == maxx) | (miny == maxy))
    # A polygon without area is not valid, and predicates do not hold of it.
    shapes[thin] = shapely.linestrings(bounds[thin].reshape(-1, 2, 2))
    single = np.flatnonzero((minx == maxx) & (miny == maxy))
    shapes[single] = shapely.points(minx[single], miny[single])
    return shapes


class Tested(Protocol):
    """Regions of one kind that extents are held against.

    Attributes:
        bounds: float64[q, 4], a box around each, never too small.
    """

    bounds: Floats

    def meets(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """Whether the element and the region of each pair, whose boxes meet, have a point in common; bool[p]."""

    def covers(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """Whether the element of each pair, whose boxes meet, lies wholly in the region, border included; bool[p]."""


class Rectangles:
    """Closed rectangles, also such without width or height.

    Args:
        corners: float64[q, 4]: minx, miny, maxx, maxy.
    """

    __slots__ = ("_shapes", "bounds")

    def __init__(self, corners: Floats) -> None:
        self.bounds = corners
        self._shapes = boxes_as_shapes(corners)
        shapely.prepare(self._shapes)

    def meets(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """See `Tested`."""
        if elements.shapes is None:
            return np.ones(len(element), np.bool_)  # their boxes meet, and are all
        return np.asarray(
            shapely.intersects(self._shapes[region], elements.shapes[element])
        )

    def covers(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """See `Tested`: what lies in a rectangle is what has its box there."""
        inner, outer = elements.bounds[element], self.bounds[region]
        low = (inner[:, :2] >= outer[:, :2]).all(axis=1)
        return np.asarray(low & (inner[:, 2:] <= outer[:, 2:]).all(axis=1))


class Surfaces:
    """Polygons and multipolygons.

    Args:
        shapes: object[q], valid ones in the coordinates of the elements.
    """

    __slots__ = ("_shapes", "bounds")

    def __init__(self, shapes: Shapes) -> None:
        self.bounds = shapely.bounds(shapes).reshape(-1, 4)
        self._shapes = shapes
        shapely.prepare(self._shapes)

    def meets(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """See `Tested`."""
        shapes = elements.geometries(element)
        return np.asarray(shapely.intersects(self._shapes[region], shapes))

    def covers(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """See `Tested`."""
        shapes = elements.geometries(element)
        return np.asarray(shapely.covers(self._shapes[region], shapes))


class Discs:
    """Closed circles. On the globe distances are right to 0.5 % up to 85 degrees of latitude, as those of `near`.

    Args:
        x: float64[q], centres: longitude in degrees or a planar coordinate; `y` likewise.
        y: see `x`.
        radius_m: float64[q], metres; for planar coordinates, their unit.
        space: what coordinates mean.
    """

    __slots__ = ("_radius_m", "_space", "_x", "_y", "bounds")

    def __init__(self, x: Floats, y: Floats, radius_m: Floats, *, space: Space) -> None:
        self._x, self._y, self._radius_m = x, y, radius_m
        self._space = space
        self.bounds = box_around(x, y, radius_m, space=space)

    def meets(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """See `Tested`: the nearest point of the element is in the circle."""
        x, y, reach = self._x[region], self._y[region], self._radius_m[region]
        if elements.shapes is None and self._space.is_flat:
            minx, miny, maxx, maxy = elements.bounds[element].T
            near_x, near_y = np.clip(x, minx, maxx), np.clip(y, miny, maxy)
            return self._space.is_within(x, y, near_x, near_y, reach)
        shapes = elements.geometries(element)
        held: Bools = shapely.intersects_xy(shapes, x, y)
        pairs = np.arange(len(element))
        near = near_around(outlines(shapes), pairs, x, y, reach, space=self._space)
        return held | near

    def covers(self, elements: Elements, element: Ints, region: Ints) -> Bools:
        """See `Tested`: all corners of the element are in the circle."""
        shapes = elements.geometries(element)
        if not self._space.is_flat:
            shapes = shapely.segmentize(shapes, _SIDE_DEG)
        corners, pair = shapely.get_coordinates(shapes, return_index=True)
        of = region[pair]
        centre_x, centre_y, reach = self._x[of], self._y[of], self._radius_m[of]
        x, y = corners.T
        is_in = self._space.is_within(centre_x, centre_y, x, y, reach)
        return np.asarray(
            np.bincount(pair[~is_in], minlength=len(element)) == 0, np.bool_
        )


def distances_from(
    shapes: Shapes, which: Ints, x: Floats, y: Floats, *, space: Space
) -> Floats:
    """How far the point of each pair is from its geometry the shortest way around: 0 inside an area; float64[n].

    Args:
        shapes: object[g].
        which: int64[n], the geometry of each pair.
        x: float64[n], longitude in degrees or a planar coordinate; `y` likewise.
        y: see `x`.
        space: what coordinates mean.

    Returns:
        Metres, or the unit of the plane, as exact as `apart.distances`; NaN where the point or the geometry is nowhere.
    """
    lines = outlines(shapes)
    far = distances(lines, which, x, y, space=space)
    beyond = space.reaching_across(x, space.reach(y, far)[0])
    other = distances(lines, which[beyond], turned(x[beyond]), y[beyond], space=space)
    far[beyond] = np.fmin(far[beyond], other)
    areas = np.flatnonzero(shapely.get_dimensions(shapes)[which] == _AREA)
    held = shapely.intersects_xy(shapes[which[areas]], x[areas], y[areas])
    far[areas[held]] = 0.0
    return far


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Some regions of one kind, asked in one way.

    Attributes:
        number: int64[q], the place of each among all regions.
        regions: the regions.
        wholly: whether elements must lie in them; else one point is enough.
    """

    number: Ints
    regions: Tested
    wholly: bool


class ElementIndex:
    """Finds which of many regions elements meet, or lie wholly in; immutable, built once.

    Args:
        asked: the regions, by kind and by how they are asked; each region once.
    """

    __slots__ = ("_groups",)

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._groups = [(one, _tree(one.regions.bounds)) for one in asked]

    def probe(self, elements: Elements) -> Pairs:
        """All pairs of an element and a region that it meets, or lies in, as the region asks.

        Args:
            elements: n of them; what is nowhere meets nothing.

        Returns:
            `(element_idx, region_idx)`, int64, sorted by element, then region; each pair once.
        """
        somewhere = np.flatnonzero(~np.isnan(elements.bounds).any(axis=1))
        boxes = shapely.box(*elements.bounds[somewhere].T)
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for asked, tree in self._groups:
            at, region = tree.query(boxes)
            element = somewhere[at]
            test = asked.regions.covers if asked.wholly else asked.regions.meets
            keep = test(elements, element, region)
            parts.append((element[keep], asked.number[region[keep]]))
        element, region = (np.concatenate([one[i] for one in parts]) for i in range(2))
        order = np.lexsort((region, element))
        return element[order], region[order]


def _tree(bounds: Floats) -> shapely.STRtree:
    """A tree of boxes; one around a pole is endless, and one that is empty meets nothing."""
    boxes = np.clip(bounds, -_ENDLESS, _ENDLESS)
    return shapely.STRtree(np.array(shapely.box(*boxes.T), object))
