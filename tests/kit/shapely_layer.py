"""A layer that asks shapely about one pair at a time, for laws that are not about the kernel."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import shapely
from shapely.geometry.base import BaseGeometry

from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import POINT, Growth
from st_common.operators.matching.layer import Tags
from tests.kit.oracle import Feature


class ShapelyLayer:
    """A layer matched by shapely alone, one pair at a time, for laws that are not about the kernel."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = sorted(features, key=lambda feature: feature.fid)
        self.fids = np.array([feature.fid for feature in self.features], object)

    def changed_since(self, _version: int) -> Sequence["ShapelyLayer"] | None:
        """None: anything may differ from another version."""
        return None

    def match(
        self,
        x: np.ndarray,
        y: np.ndarray,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
        within: bool = False,
        growth: Growth = POINT,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point, or of the box around it, and a feature within the distance; planar."""
        half = (growth.value + growth.metres) / 2
        pairs = [
            (i, j)
            for i, (a, b) in enumerate(zip(x, y, strict=True))
            for j, feature in enumerate(self.features)
            if self._is_meant(feature, kinds, tags)
            and _holds(
                shapely.box(a - half, b - half, a + half, b + half)
                if half
                else shapely.Point(a, b),
                feature,
                distance_m,
                within=within,
            )
        ]
        found_pairs = np.array(pairs, np.int64).reshape(-1, 2)
        return found_pairs[:, 0], found_pairs[:, 1]

    def keyed(
        self,
        keys: pa.Array,
        right: str,
        *,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point and a feature whose `right` (fid, kind or a tag) is the point's key, as text."""
        pairs = [
            (i, j)
            for i, key in enumerate(keys.to_pylist())
            for j, feature in enumerate(self.features)
            if self._is_meant(feature, kinds, tags)
            and key is not None
            and key == self._value(feature, right)
        ]
        found_pairs = np.array(pairs, np.int64).reshape(-1, 2)
        return found_pairs[:, 0], found_pairs[:, 1]

    def crossed(
        self,
        ways: Segments,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a straight way and a feature that it meets, or comes so near to; planar."""
        pairs = [
            (i, j)
            for i, (a, b, c, d) in enumerate(
                zip(ways.ax, ways.ay, ways.bx, ways.by, strict=True)
            )
            for j, feature in enumerate(self.features)
            if self._is_meant(feature, kinds, tags)
            and _holds(
                shapely.LineString([(a, b), (c, d)]), feature, distance_m, within=False
            )
        ]
        found_pairs = np.array(pairs, np.int64).reshape(-1, 2)
        return found_pairs[:, 0], found_pairs[:, 1]

    def k_nearest(
        self,
        x: np.ndarray,
        y: np.ndarray,
        k: int,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of each point and its k nearest features with a shape, of equally far ones the first by fid; planar."""
        most = np.inf if distance_m is None else distance_m
        pairs = []
        for i, (a, b) in enumerate(zip(x, y, strict=True)):
            far = [
                (round(shapely.Point(a, b).distance(feature.geometry), 9), j)
                for j, feature in enumerate(self.features)
                if self._is_meant(feature, kinds, tags)
                and not feature.geometry.is_empty
            ]
            near = sorted(pair for pair in far if pair[0] <= most)[:k]
            pairs += sorted((i, j) for _, j in near)
        found_pairs = np.array(pairs, np.int64).reshape(-1, 2)
        return found_pairs[:, 0], found_pairs[:, 1]

    def distances(
        self,
        x: np.ndarray,
        y: np.ndarray,
        feature: np.ndarray,
        *,
        to_border: bool = False,
    ) -> np.ndarray:
        """How far points are from features, or from the outlines of areas, pair by pair; planar."""
        shapes = [self.features[place].geometry for place in feature.tolist()]
        if to_border:
            shapes = [one.boundary if one.area > 0 else one for one in shapes]
        points = shapely.points(x, y)
        return np.asarray(shapely.distance(points, np.array(shapes, object)))

    def nearest(self, x: np.ndarray, y: np.ndarray, feature: np.ndarray) -> np.ndarray:
        """The places of features that are nearest to points, pair by pair; planar."""
        points = shapely.points(x, y)
        shapes = [self.features[place].geometry for place in feature.tolist()]
        lines = shapely.shortest_line(points, np.array(shapes, object))
        return shapely.get_coordinates(shapely.get_point(lines, 1)).T

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag of every feature."""
        return pa.array(
            [self._value(feature, column) for feature in self.features], pa.string()
        )

    def rows(self, feature: np.ndarray) -> pa.Table:
        """Whole features, by their places."""
        them = [self.features[place] for place in feature.tolist()]
        tags = [list(one.tags.items()) for one in them]
        return pa.table(
            {
                "fid": [one.fid for one in them],
                "kind": pa.array([one.kind for one in them], pa.string()),
                "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
                "geometry": [shapely.to_wkb(one.geometry) for one in them],
            }
        )

    def _is_meant(self, feature: Feature, kinds: tuple[str, ...], tags: Tags) -> bool:
        return (not kinds or feature.kind in kinds) and all(
            self._value(feature, n) == value for n, value in tags
        )

    def _value(self, feature: Feature, right: str) -> str | None:
        return {**feature.tags, "fid": feature.fid, "kind": feature.kind}.get(right)


class PatchedLayer(ShapelyLayer):
    """A version of a layer that knows the features of older ones, and so which of them changed.

    Args:
        features: those of this version.
        older: those of older versions, by version.
    """

    def __init__(
        self, features: Sequence[Feature], older: Mapping[int, Sequence[Feature]]
    ) -> None:
        super().__init__(features)
        self._older = older

    def changed_since(self, version: int) -> Sequence[ShapelyLayer] | None:
        """The features that are not the same in an older version: as they were, and as they are."""
        if version not in self._older:
            return None
        was, now = self._older[version], self.features
        return [
            ShapelyLayer([one for one in some if one not in others])
            for some, others in ((was, now), (now, was))
        ]


def _holds(
    shape: BaseGeometry, feature: Feature, distance_m: float | None, *, within: bool
) -> bool:
    if within:
        return shape.within(feature.geometry)
    return shape.distance(feature.geometry) <= (distance_m or 0.0)
