r"""Which corridors contain which points, and which ways meet them: everything within a width of lines.

```
      . - - - - - - - - - .
    (    o-----------o     )      o--o  the line, in one part or in several
      ' - - - - .     \     \     the width is that on either side
                  \    o     )
                    ' - - -'
```
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.borders import (
    Pairs,
    Segments,
    Shapes,
    any_of,
    each_once,
    near_around,
)
from st_common.geometry.circles import around_parts
from st_common.geometry.enlarged import grown
from st_common.geometry.grid import BoxIndex
from st_common.geometry.longitudes import turned
from st_common.geometry.near import Outlines, near, outlines
from st_common.geometry.passing import passing
from st_common.geometry.space import Space
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_GROWTH = (
    1 + 1e-9
)  # boxes of candidates are too large rather than a rounding error too small


class _Pieces:
    """The lines of corridors in pieces of a few segments, whose boxes are small.

    `outlines` has each piece as a geometry of its own; `corridor` is whose each is, `width_m` the width of that, and
    `boxes` (float64[p, 4]) hold everything in it.
    """

    __slots__ = ("boxes", "corridor", "outlines", "width_m")

    def __init__(self, lines: Shapes, width_m: Floats, *, space: Space) -> None:
        whole = outlines(lines)
        count = whole.boxes.shape[1]
        self.outlines: Outlines = replace(whole, piece_start=np.arange(count + 1))
        self.corridor = np.repeat(np.arange(len(lines)), np.diff(whole.piece_start))
        self.width_m: Floats = width_m[self.corridor]
        self.boxes = grown(whole.boxes.T, self.width_m * _GROWTH, space=space)


class CorridorIndex:
    """Finds the corridors that contain points, borders included; immutable, built once for a set of corridors.

    Distances are right as those of `near.near`: exact on a plane; geodesic on the globe, also across 180 degrees.

    Args:
        lines: lines or multilines, in the points' coordinates.
        width_m: float64[n], metres on either side; for planar coordinates, their unit.
        space: what coordinates mean.
    """

    __slots__ = ("_boxes", "_pieces", "_space", "_widest_m", "size")

    def __init__(self, lines: Shapes, width_m: Floats, *, space: Space) -> None:
        self.size = len(lines)
        self._space, self._widest_m = space, float(np.max(width_m, initial=0.0))
        self._pieces = _Pieces(lines, width_m, space=space)
        self._boxes = BoxIndex(self._pieces.boxes)

    def probe(self, x: Floats, y: Floats) -> Pairs:
        """All pairs of a point and a corridor that contains it.

        Args:
            x: float64[m], any values; NaN lies in no corridor.
            y: float64[m].

        Returns:
            `(point_idx, corridor_idx)`, int64, sorted by point, then corridor; each pair once.
        """
        reach, _ = self._space.reach(y, self._widest_m)
        beyond = self._space.reaching_across(x, reach)
        x = np.concatenate([x, turned(x[beyond])])
        owner = np.concatenate([np.arange(len(y)), beyond])
        y = y[owner]
        point, piece = self._boxes.probe(x, y)
        far, pieces = self._pieces.width_m[piece], self._pieces.outlines
        keep = near(pieces, piece, x[point], y[point], far, space=self._space)
        # Several pieces of a corridor may be near to a point: each pair counts once.
        key = owner[point[keep]] * self.size + self._pieces.corridor[piece[keep]]
        at, corridor = np.divmod(np.unique(key), max(self.size, 1))
        return at, corridor


class Corridors:
    """The borders of corridors, in the order in which these are given; `lines` and `width_m` as of `CorridorIndex`."""

    __slots__ = ("_lines", "_outlines", "_pieces", "_space", "_tree", "_width_m")

    def __init__(self, lines: Shapes, width_m: Floats, *, space: Space) -> None:
        self._lines, self._width_m, self._space = lines, width_m, space
        self._outlines = outlines(lines)
        self._pieces = _Pieces(lines, width_m, space=space)
        around = np.clip(self._pieces.boxes, -1e300, 1e300)  # at a pole one is endless
        boxes: Shapes = np.array(shapely.box(*around.T), object)
        self._tree = shapely.STRtree(boxes)

    def near(self, which: Ints, x: Floats, y: Floats, distance_m: Floats) -> Bools:
        """Whether the point of each pair is so near to the corridor; bool[n]. Points inside are not asked about.

        Args:
            which: int64[n], corridors.
            x: float64[n], outside of the corridor of the pair; `y` likewise.
            y: see `x`.
            distance_m: float64[n], metres from the border; for planar coordinates, their unit.
        """
        far = self._width_m[which] + distance_m
        return near_around(self._outlines, which, x, y, far, space=self._space)

    def met_by(self, segments: Segments) -> Pairs:
        """All pairs of a segment and a corridor that have a point in common.

        Returns:
            Two int64 arrays, sorted by segment, then corridor; each pair once.
        """
        widest_m = float(np.max(self._width_m, initial=0.0))
        line, lines = segments.lines(self._space, widest_m)
        at, piece = self._tree.query(lines, predicate="intersects")
        corridor = self._pieces.corridor[piece]
        meets = np.asarray(shapely.intersects(lines[at], self._lines[corridor]))
        left = np.flatnonzero(~meets)
        ways = shapely.get_coordinates(lines[at[left]]).reshape(-1, 4).T
        far, pieces = self._pieces.width_m[piece[left]], self._pieces.outlines
        meets[left] = passing(pieces, piece[left], ways, far, space=self._space)
        return each_once(line[at[meets]], corridor[meets])

    def meet(self, which: Ints, segments: Segments) -> Bools:
        """Whether the segment of each pair has a point in common with its corridor (int64[n]); bool[n]."""
        widest_m = float(np.max(self._width_m, initial=0.0))
        line, lines = segments.lines(self._space, widest_m)
        meets = np.asarray(shapely.intersects(lines, self._lines[which[line]]))
        left = np.flatnonzero(~meets)
        corridor = which[line[left]]
        start = np.searchsorted(self._pieces.corridor, corridor)
        count = np.searchsorted(self._pieces.corridor, corridor, side="right") - start
        at, piece = np.repeat(left, count), ranges(start, count)
        ways = shapely.get_coordinates(lines[at]).reshape(-1, 4).T
        far, pieces = self._pieces.width_m[piece], self._pieces.outlines
        meets[at[passing(pieces, piece, ways, far, space=self._space)]] = True
        return any_of(line, meets, len(which))


def corridor_bounds(lines: Shapes, width_m: Floats, *, space: Space) -> Floats:
    """The box around each corridor, float64[n, 4]; across 180 degrees as wide as both of its parts together.

    Args:
        lines: lines or multilines, in the points' coordinates.
        width_m: float64[n], metres on either side; for planar coordinates, their unit.
        space: what coordinates mean.
    """
    around = grown(shapely.bounds(lines).reshape(-1, 4), width_m, space=space)
    parts, owner = space.wrap(around)
    return around_parts(parts, owner, len(lines))
