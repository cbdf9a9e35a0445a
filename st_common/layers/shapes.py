"""The geometries of one region of a layer, ready for exact tests, and a cache of them that is bounded in bytes."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from st_common.geometry.apart import distances, nearest_of
from st_common.geometry.longitudes import turned
from st_common.geometry.near import Outlines, near, outlines
from st_common.geometry.passing import passing
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PER_FEATURE, _PER_WKB_BYTE = (
    500,
    4,
)  # what a prepared geometry takes, about: measured on buildings and forests
_AREA = 2


def _either_way(
    far_of: Callable[[Ints, Floats, Floats], Floats],
    which: Ints,
    x: Floats,
    y: Floats,
    space: Space,
) -> Floats:
    """How far points are from features (float64[m]) by the shorter way around, where one leads over 180 degrees."""
    far = far_of(which, x, y)
    beyond = space.reaching_across(x, space.reach(y, far)[0])
    there = which[beyond], turned(x[beyond]), y[beyond]
    far[beyond] = np.fmin(far[beyond], far_of(*there))
    return far


class RegionShapes:
    """The features that are home in one region, in the order of their fids, prepared for exact tests.

    Its methods take pairs: `which`, int64[m], numbers of features here, and for each of them a point, box or line; they
    give bool[m].

    Args:
        wkb: the geometries as WKB.
    """

    __slots__ = ("_areas", "_geometries", "_outlines", "_size")

    def __init__(self, wkb: pa.ChunkedArray | pa.Array) -> None:
        self._geometries = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False))
        self._areas = shapely.get_dimensions(self._geometries) == _AREA
        self._outlines: Outlines | None = None
        self._size = (
            len(wkb) * _PER_FEATURE
            + (pc.sum(pc.binary_length(wkb)).as_py() or 0) * _PER_WKB_BYTE
        )
        shapely.prepare(self._geometries)

    @property
    def nbytes(self) -> int:
        """About how much memory these shapes take; more once distances were asked for."""
        return self._size + (self._outlines.nbytes if self._outlines else 0)

    def wkb(self, which: Ints) -> pa.Array:
        """The geometries of some features (int64[m], their numbers) as WKB."""
        return pa.array(shapely.to_wkb(self._geometries[which]), pa.binary())

    def intersect(self, which: Ints, x: Floats, y: Floats) -> Bools:
        """For each pair of a feature and a point, whether the point lies in or on the feature.

        Args:
            which: int64[m], numbers of features.
            x: float64[m], of the points; NaN lies nowhere.
            y: likewise.
        """
        return self._ask(
            which,
            lambda shapes, pairs: shapely.intersects_xy(shapes, x[pairs], y[pairs]),
        )

    def contain(self, which: Ints, x: Floats, y: Floats) -> Bools:
        """For each pair of a feature and a point, whether the point is within it: on an area's border it is not."""
        return self._ask(
            which, lambda shapes, pairs: shapely.contains_xy(shapes, x[pairs], y[pairs])
        )

    def meet(self, which: Ints, boxes: Floats, *, within: bool = False) -> Bools:
        """For each pair of a feature and a box, whether they have a point in common.

        Args:
            which: int64[m], numbers of features.
            boxes: float64[m, 4] of minx, miny, maxx, maxy.
            within: whether the box must lie within the feature instead.
        """
        test = shapely.contains if within else shapely.intersects
        return self._ask(
            which, lambda shapes, pairs: test(shapes, shapely.box(*boxes[pairs].T))
        )

    def cut(self, which: Ints, lines: npt.NDArray[np.object_]) -> Bools:
        """For each pair of a feature and a line (object[m], Shapely), whether they have a point in common."""
        return self._ask(
            which, lambda shapes, pairs: shapely.intersects(shapes, lines[pairs])
        )

    def near(
        self, which: Ints, x: Floats, y: Floats, distance_m: float, *, space: Space
    ) -> Bools:
        """For each pair of a feature and a point, whether their distance is at most `distance_m`; 0 inside an area.

        Args:
            which: int64[m], numbers of features.
            x: float64[m], of the points.
            y: likewise.
            distance_m: the limit, included; in metres on the globe, in the unit of the coordinates on a plane.
            space: says which of the two it is.
        """
        areas = np.flatnonzero(self._areas[which])
        result = np.zeros(len(which), np.bool_)
        result[areas] = self.intersect(which[areas], x[areas], y[areas])
        left = np.flatnonzero(~result)
        result[left] = near(
            self._lines(), which[left], x[left], y[left], distance_m, space=space
        )
        return result

    def to_borders(self, which: Ints, x: Floats, y: Floats, *, space: Space) -> Floats:
        """As `distances`, how far each point is from the outline of its feature, from inside of an area too."""
        far_of = partial(distances, self._lines(), space=space)
        return _either_way(far_of, which, x, y, space)

    def distances(self, which: Ints, x: Floats, y: Floats, *, space: Space) -> Floats:
        """How far each point is from its feature, over 180 degrees too; 0 inside an area, NaN from an empty feature.

        Args:
            which: int64[m], numbers of features.
            x: float64[m], of the points.
            y: likewise.
            space: what the coordinates mean; in metres on the globe, in their unit on a plane.
        """
        far_of = partial(self._distances, space=space)
        return _either_way(far_of, which, x, y, space)

    def _distances(self, which: Ints, x: Floats, y: Floats, space: Space) -> Floats:
        result = np.zeros(len(which))
        left = np.flatnonzero(~(self._areas[which] & self.intersect(which, x, y)))
        result[left] = distances(
            self._lines(), which[left], x[left], y[left], space=space
        )
        return result

    def nearest(
        self, which: Ints, x: Floats, y: Floats, *, space: Space
    ) -> tuple[Floats, Floats]:
        """The place of each feature that is nearest to the point beside it, over 180 degrees too.

        Args:
            which: as for `distances`; so are all others.
            x: float64[m].
            y: float64[m].
            space: what the coordinates mean.

        Returns:
            x and y, float64[m] each: the point itself inside an area, NaN of an empty feature.
        """
        far, place_x, place_y = self._nearest(which, x, y, space)
        beyond = space.reaching_across(x, space.reach(y, far)[0])
        there = which[beyond], turned(x[beyond]), y[beyond]
        other, other_x, other_y = self._nearest(*there, space)
        is_nearer = other < far[beyond]
        # Inside an area the place is the point, by the number that it has.
        other_x = np.where(other == 0, x[beyond], other_x)
        nearer = beyond[is_nearer]
        place_x[nearer], place_y[nearer] = other_x[is_nearer], other_y[is_nearer]
        return place_x, place_y

    def _nearest(
        self, which: Ints, x: Floats, y: Floats, space: Space
    ) -> tuple[Floats, Floats, Floats]:
        far, place_x, place_y = np.zeros(len(which)), x.copy(), y.copy()
        left = np.flatnonzero(~(self._areas[which] & self.intersect(which, x, y)))
        far[left], place_x[left], place_y[left] = nearest_of(
            self._lines(), which[left], x[left], y[left], space=space
        )
        return far, place_x, place_y

    def passed(
        self,
        which: Ints,
        lines: npt.NDArray[np.object_],
        distance_m: float,
        *,
        space: Space,
    ) -> Bools:
        """For each pair of a feature and a straight line, whether their distance is at most `distance_m`.

        Args:
            which: int64[m], numbers of features.
            lines: object[m], Shapely lines of two places each.
            distance_m: as for `near`.
            space: as for `near`.
        """
        result = self.cut(which, lines)
        left = np.flatnonzero(~result)
        ways = shapely.get_coordinates(lines[left]).reshape(-1, 4).T
        result[left] = passing(
            self._lines(), which[left], ways, distance_m, space=space
        )
        return result

    def _lines(self) -> Outlines:
        """The outlines of all features; made when distances are first asked for."""
        if self._outlines is None:
            self._outlines = outlines(self._geometries)
        return self._outlines

    def _ask(
        self, which: Ints, test: Callable[[npt.NDArray[np.object_], Ints], Bools]
    ) -> Bools:
        """Goes feature by feature, so that a prepared geometry is met while it is still in the processor's cache."""
        result = np.zeros(len(which), np.bool_)
        pairs = np.argsort(which, kind="stable")
        result[pairs] = test(self._geometries[which[pairs]], pairs)
        return result


class ShapeCache:
    """The shapes of regions, read when first asked for; those asked for longest ago go when the limit is passed.

    One region stays, however large: it is being used.

    Args:
        read: gives the WKB of the features that are home in a region.
        limit_bytes: about how much memory all shapes may take.
    """

    __slots__ = ("_limit_bytes", "_read", "_shapes")

    def __init__(
        self, read: Callable[[str], pa.ChunkedArray], *, limit_bytes: int
    ) -> None:
        self._read = read
        self._limit_bytes = limit_bytes
        self._shapes: OrderedDict[str, RegionShapes] = OrderedDict()

    def get(self, region_id: str) -> RegionShapes:
        """The shapes of a region, by its id; from memory where they are held."""
        shapes = self._shapes.pop(region_id, None) or RegionShapes(
            self._read(region_id)
        )
        self._shapes[region_id] = shapes
        while len(self._shapes) > 1 and self.nbytes > self._limit_bytes:
            self._shapes.popitem(last=False)
        return shapes

    @property
    def nbytes(self) -> int:
        """About how much memory all held shapes take."""
        return sum(shapes.nbytes for shapes in self._shapes.values())

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions whose shapes are held, the one used last at the end."""
        return tuple(self._shapes)
