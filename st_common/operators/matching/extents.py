"""The extents of elements, as the attributes of their fixes have them, held against regions (SPEC B1, P8).

attributes of a fix                    extent        its box
geometry = LINESTRING (1 2, 3 0)       a shape       1 0, 3 2
lo1 = 1, hi1 = 3, lo2 = 0, hi2 = 2     a box         1 0, 3 2
lo1 = 1, hi1 = 3                       an interval   1 0, 3 0
none of these, or null                 its place     x y, x y
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from st_common.config.columns import GEOMETRY, sides_of
from st_common.geometry.elements import ElementIndex, Elements
from st_common.geometry.space import Space
from st_common.operators.expressions.readings import Readings
from st_common.regions.by_extent import ByExtent, Extent
from st_common.regions.region import Index
from st_common.regions.registry import index_of

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtentIndex:
    """Regions that are asked about the extents of elements.

    Attributes:
        parts: by what the elements are the places of the regions, int64, and their index.
    """

    parts: tuple[tuple[Extent, np.ndarray, ElementIndex], ...]

    def probe(self, readings: Readings) -> Pairs:
        """All pairs of a fix and a region that its extent meets, or in which it lies, as the region asks.

        Returns:
            int64 each: places of fixes and of regions, each pair once.
        """
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for extent, number, index in self.parts:
            fix, region = index.probe(elements_of(readings, extent))
            pairs.append((fix, number[region]))
        fix, region = (np.concatenate([part[i] for part in pairs]) for i in range(2))
        return fix, region


Compiled = Index | ExtentIndex
"""Many regions of one kind: asked about places, or about extents."""


def compiled_index(regions: Sequence[Any], *, space: Space) -> Compiled:
    """An index of regions of one kind that stand still.

    Args:
        regions: at least one, all of one kind.
        space: what coordinates mean.

    Raises:
        StateError: they are no regions, or go with an object.
    """
    asked = [one for one in regions if isinstance(one, ByExtent)]
    if not asked:
        return index_of(regions, space=space)
    of: dict[Extent, list[int]] = {}
    for place, region in enumerate(asked):
        of.setdefault(region.extent, []).append(place)
    return ExtentIndex(
        parts=tuple(
            (
                extent,
                np.array(places, np.int64),
                ByExtent.elements([asked[at] for at in places], space=space),
            )
            for extent, places in of.items()
        )
    )


def looked_up(
    index: Compiled,
    x: np.ndarray,
    y: np.ndarray,
    readings_of: Callable[[], Readings],
) -> Pairs:
    """All pairs of a fix and a region that contains its place, or has its extent, as the regions ask.

    Args:
        index: the regions.
        x: float64[n], places of fixes, NaN for nowhere; `y` likewise.
        y: see `x`.
        readings_of: gives the n fixes with their attributes; asked where extents count alone.

    Returns:
        int64 each: places of fixes and of regions, each pair once.
    """
    if isinstance(index, ExtentIndex):
        return index.probe(readings_of())
    return index.probe(x, y)


def elements_of(readings: Readings, extent: Extent) -> Elements:
    """The extents of fixes; one that has none is its place, and what is nowhere has NaN.

    Args:
        readings: n fixes.
        extent: what the elements of the stream are.
    """
    places = np.column_stack([readings.x, readings.y] * 2)
    if extent == "shape":
        return _of_shapes(_texts(readings), places)
    if extent == "":
        return Elements(bounds=places)
    sides = _sides(readings, 2 if extent == "box" else 1)
    known = ~np.isnan(sides).any(axis=1) & ~np.isnan(readings.x)
    return Elements(bounds=np.where(known[:, None], sides, places))


def shapes_of(readings: Readings) -> np.ndarray:
    """The geometries of fixes whose elements are shapes; object[n], its place of one that has none, None of nowhere."""
    shapes = elements_of(readings, "shape").shapes
    assert shapes is not None  # noqa: S101 - they are not boxes
    return shapes


def _of_shapes(wkt: np.ndarray, places: np.ndarray) -> Elements:
    nowhere = np.isnan(places[:, 0])
    shapes = np.asarray(shapely.from_wkt(wkt), object)
    shapes[nowhere] = None
    lacking = np.flatnonzero(~nowhere & shapely.is_missing(shapes))
    shapes[lacking] = shapely.points(places[lacking, :2])
    return Elements(bounds=shapely.bounds(shapes).reshape(-1, 4), shapes=shapes)


def _texts(readings: Readings) -> np.ndarray:
    column = readings.attributes.get(GEOMETRY)
    if column is None:
        return np.full(len(readings), None, object)
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values.astype(object, copy=False)


def _sides(readings: Readings, dimensions: int) -> np.ndarray:
    """The low and the high sides of the first two dimensions, float64[n, 4]; of one dimension y is 0."""
    columns = {}
    for name in sides_of(dimensions):
        column = readings.attributes.get(name, pa.nulls(len(readings), pa.float64()))
        columns[name] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    none = np.zeros(len(readings))
    names = ("lo1", "lo2", "hi1", "hi2")
    return np.column_stack([columns.get(name, none) for name in names])
