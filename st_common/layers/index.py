"""Which features of a layer points lie in, or are near to: boxes at once, geometries region by region on demand."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from st_common.geometry.borders import Segments, each_once
from st_common.geometry.enlarged import (
    POINT,
    Growth,
    boxes_reached,
    grown,
    points_reaching,
)
from st_common.geometry.grid import BoxIndex
from st_common.geometry.space import GLOBE, Space
from st_common.layers.grouped import groups_of, rank_in_group
from st_common.layers.labels import Chosen, FeatureRows, Labels, Tags, chosen_by
from st_common.layers.nearby import Nearby
from st_common.layers.readable import readable
from st_common.layers.shapes import RegionShapes, ShapeCache

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CACHE_BYTES = 512 << 20
_GRIDS_HELD = 16  # sets of kinds and distances a layer keeps grids for
EDGES = ("minx", "miny", "maxx", "maxy")
SMALL_COLUMNS = ("region_id", *EDGES, "home", "fid", "kind")
"""Of the rows of a layer those that an index holds."""


class LayerIndex:
    """One version of a layer, for joins with points.

    Args:
        rows: the layer's rows without their geometries; those that are not at home are passed over.
        read_region: gives the WKB of the features that are home in a region, in the order of their fids.
        space: what the coordinates of the layer and of the points mean.
        read_tag: gives the values of a tag of the features that are home, in the order of their fids; null for none.
        read_rows: gives the rows of the features that are home in a region, see `FeatureRows`; None: nobody asks.
        cache_bytes: how much memory the geometries may take; the boxes of all features are held anyway.
    """

    __slots__ = (
        "_boxes",
        "_cache",
        "_grids",
        "_labels",
        "_local",
        "_nearby",
        "_region",
        "_region_ids",
        "_rows",
        "_space",
        "_trees",
        "fids",
    )

    def __init__(
        self,
        rows: pa.Table,
        read_region: Callable[[str], pa.ChunkedArray],
        *,
        space: Space = GLOBE,
        read_tag: Callable[[str], pa.Array] | None = None,
        read_rows: Callable[[str], pa.Table] | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        rows = rows.filter(rows["home"]).sort_by("fid")
        self._labels = Labels(rows, read_tag)
        self.fids = self._labels.fids
        """The fids, sorted; `feature_idx` of `match` counts in them."""
        self._boxes = np.stack([rows[edge].to_numpy() for edge in EDGES], axis=1)
        ids, self._region = np.unique(
            rows["region_id"].to_numpy(zero_copy_only=False).astype(str),
            return_inverse=True,
        )
        self._region_ids: list[str] = ids.tolist()
        self._local = rank_in_group(self._region)
        self._space = space
        self._grids: OrderedDict[
            tuple[Chosen, float | None, Growth], tuple[BoxIndex, Ints]
        ] = OrderedDict()
        self._trees: OrderedDict[
            tuple[Chosen, float | None], tuple[shapely.STRtree, Ints]
        ] = OrderedDict()
        self._nearby: OrderedDict[Chosen, Nearby] = OrderedDict()
        self._cache = ShapeCache(read_region, limit_bytes=cache_bytes)
        self._rows = read_rows and FeatureRows(
            self._region, self._region_ids, read_rows
        )

    @property
    def space(self) -> Space:
        """What the coordinates of the layer and of the points mean."""
        return self._space

    @property
    def steps(self) -> tuple[()]:
        """How it came to be from older versions: not known of what was read as a whole."""
        return ()

    def changed_since(self, _version: int) -> None:
        """What differs from an older version: not known of what was read as a whole."""

    def parts(self, features: Ints) -> list["LayerIndex"]:
        """Some of the features (their numbers, ascending) as an index of their own; none for none."""
        if not len(features):
            return []
        region, local = self._region[features], self._local[features]
        boxes = self._boxes[features]
        rows = pa.table(
            {
                "region_id": np.array(self._region_ids, object)[region],
                **{edge: boxes[:, column] for column, edge in enumerate(EDGES)},
                "home": np.ones(len(features), np.bool_),
                "fid": pa.array(self.fids[features], pa.string()),
                "kind": self.values("kind").take(pa.array(features)),
            }
        )

        def read_region(region_id: str) -> pa.Array:
            at = self._region_ids.index(region_id)
            return self._shapes_of(at).wkb(local[region == at])

        def read_tag(name: str) -> pa.Array:
            return self.values(name).take(pa.array(features))

        return [LayerIndex(rows, read_region, space=self._space, read_tag=read_tag)]

    def match(
        self,
        x: Floats,
        y: Floats,
        *,
        distance_m: float | None = None,
        kinds: Sequence[str] = (),
        tags: Tags = (),
        within: bool = False,
        growth: Growth = POINT,
    ) -> tuple[Ints, Ints]:
        """All pairs of a point and a feature that it lies in or on, or that is at most `distance_m` away.

        Args:
            x: float64[n]; NaN matches nothing.
            y: float64[n].
            distance_m: None for intersection; else metres, the limit included (geodesic, or planar in the unit of the
                coordinates; `st_common.geometry.near` says how exact). Inside an area the distance is 0.
            kinds: features of these kinds only; none given means of every kind.
            tags: features with all of these names and values only.
            within: leaves out what lies on the border alone: points must be within features as OGC means it.
            growth: how the boxes around the points are enlarged, which then must meet features, or lie within them.

        Returns:
            `(point_idx, feature_idx)`, int64, sorted by point, then feature; each pair once, also when the feature
            stands in several regions or beyond the border of the point's region.

        Raises:
            LayerError: the geometries of a region cannot be read.
            TransientError: they cannot be read now, which may pass.
        """
        total, chosen = len(x), chosen_by(kinds, tags)
        x, y, owner = points_reaching(x, y, distance_m, growth, space=self._space)
        # Boxes first, all at once; then geometries, one region after the other.
        grid, features = self._grid(chosen, distance_m, growth.rounded())
        points, feature = grid.probe(x, y)
        feature = features[feature]
        half = None if growth.is_point else growth.half_sides(y, space=self._space)
        keep = np.zeros(len(points), np.bool_)
        for region, pairs in groups_of(self._region[feature]):
            shapes = self._shapes_of(region)
            which, at = self._local[feature[pairs]], points[pairs]
            if distance_m is not None:
                keep[pairs] = shapes.near(
                    which, x[at], y[at], distance_m, space=self._space
                )
            elif half is None:
                holds = shapes.contain if within else shapes.intersect
                keep[pairs] = holds(which, x[at], y[at])
            else:
                px, py, dx, dy = (one[at] for one in (x, y, *half))
                boxes = np.stack([px - dx, py - dy, px + dx, py + dy], axis=1)
                keep[pairs] = shapes.meet(which, boxes, within=within)
        points, feature = owner[points[keep]], feature[keep]
        return (points, feature) if len(owner) == total else each_once(points, feature)

    def k_nearest(
        self,
        x: Floats,
        y: Floats,
        k: int,
        *,
        distance_m: Floats | float | None = None,
        kinds: Sequence[str] = (),
        tags: Tags = (),
    ) -> tuple[Ints, Ints]:
        """Pairs of each point and the k features that are nearest to it, as `distances` measures them.

        Args:
            x: float64[n]; NaN is near to nothing.
            y: float64[n].
            k: how many, at least 1; where fewer are meant, all that have a shape.
            distance_m: how far features may be, the limit included, one for all points or float64[n]; None: any.
            kinds: features of these kinds only; none given means of every kind.
            tags: features with all of these names and values only.

        Returns:
            `(point_idx, feature_idx)`, int64, sorted by point, then feature. Of features that are equally far, to the
            last digit that counts in the space (a millimetre on the globe), those whose fid comes first are nearer.

        Raises:
            LayerError: the geometries of a region cannot be read.
            TransientError: they cannot be read now, which may pass.
        """
        limit = np.broadcast_to(np.inf if distance_m is None else distance_m, len(x))
        nearby = self._near_to(chosen_by(kinds, tags))
        return nearby.k_nearest(x, y, k, limit, self.distances)

    def _near_to(self, chosen: Chosen) -> Nearby:
        """What finds the nearest of these kinds and tags; made once."""
        nearby = self._nearby.pop(chosen, None)
        if nearby is None:
            tree, features = self._tree(chosen, None)
            nearby = Nearby(tree, features, self._boxes[features], space=self._space)
        self._nearby[chosen] = nearby
        if len(self._nearby) > _GRIDS_HELD:
            self._nearby.popitem(last=False)
        return nearby

    def distances(
        self, x: Floats, y: Floats, feature: Ints, *, to_border: bool = False
    ) -> Floats:
        """How far each point is from the feature beside it: the least `distance_m` by which `match` finds the pair.

        Metres, or the unit of planar coordinates; 0 inside an area, or `to_border` how far its outline is. NaN where x
        or y is, and from a feature without a shape. Errors are those of `match`.
        """
        far = np.full(len(feature), np.nan)
        for region, pairs in groups_of(self._region[feature]):
            shapes = self._shapes_of(region)
            which = self._local[feature[pairs]]
            asked = shapes.to_borders if to_border else shapes.distances
            far[pairs] = asked(which, x[pairs], y[pairs], space=self._space)
        return far

    def nearest(self, x: Floats, y: Floats, feature: Ints) -> Floats:
        """The place of the feature beside each point that is nearest to it; float64[2, n], NaN without a shape.

        Inside an area that is the point itself. Errors are those of `match`.
        """
        places = np.full((2, len(feature)), np.nan)
        for region, pairs in groups_of(self._region[feature]):
            which = self._local[feature[pairs]]
            places[:, pairs] = self._shapes_of(region).nearest(
                which, x[pairs], y[pairs], space=self._space
            )
        return places

    def crossed(
        self,
        ways: Segments,
        *,
        distance_m: float | None = None,
        kinds: Sequence[str] = (),
        tags: Tags = (),
    ) -> tuple[Ints, Ints]:
        """All pairs of a straight way and a feature that meet, or come as near to each other as `distance_m`.

        Args:
            ways: float64[n] each; NaN meets nothing.
            distance_m: None for a point in common; else as of `match`.
            kinds: features of these kinds only; none given means of every kind.
            tags: features with all of these names and values only.

        Returns:
            `(way_idx, feature_idx)`, int64, sorted by way, then feature; each pair once.
        """
        chosen = chosen_by(kinds, tags)
        # The grid answers for points alone; ways are looked up in a tree of boxes.
        tree, features = self._tree(chosen, distance_m)
        owner, lines = ways.lines(self._space, distance_m or 0.0)
        at, feature = tree.query(lines, predicate="intersects")
        feature = features[feature]
        keep = np.zeros(len(feature), np.bool_)
        for region, pairs in groups_of(self._region[feature]):
            shapes = self._shapes_of(region)
            which, mine = self._local[feature[pairs]], lines[at[pairs]]
            keep[pairs] = (
                shapes.cut(which, mine)
                if distance_m is None
                else shapes.passed(which, mine, distance_m, space=self._space)
            )
        return each_once(owner[at[keep]], feature[keep])

    def _tree(
        self, chosen: Chosen, distance_m: float | None
    ) -> tuple[shapely.STRtree, Ints]:
        """The boxes around features of these kinds and tags as a tree, and which they are; made once."""
        key = chosen, distance_m
        if key not in self._trees:
            features = self._placed(chosen)
            corners = grown(self._boxes[features], distance_m or 0.0, space=self._space)
            boxes: npt.NDArray[np.object_] = np.array(shapely.box(*corners.T), object)
            self._trees[key] = shapely.STRtree(boxes), features
            if len(self._trees) > _GRIDS_HELD:
                self._trees.popitem(last=False)
        return self._trees[key]

    def _placed(self, chosen: Chosen) -> Ints:
        """The features of these kinds and tags that have a place: of a table some may have none."""
        is_placed = np.isfinite(self._boxes).all(axis=1)
        return np.flatnonzero(self._labels.meant(chosen) & is_placed)

    def keyed(
        self,
        values: pa.Array,
        column: str,
        *,
        kinds: Sequence[str] = (),
        tags: Tags = (),
    ) -> tuple[Ints, Ints]:
        """All pairs of a value and a feature whose `column` is equal to it, as text.

        Args:
            values: n values; null matches nothing.
            column: "fid", "kind" or the name of a tag.
            kinds: features of these kinds only; none given means of every kind.
            tags: features with all of these names and values only.

        Returns:
            `(value_idx, feature_idx)`, int64, sorted by value, then feature.
        """
        return self._labels.keyed(values, column, chosen=chosen_by(kinds, tags))

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, string[n]; null for none.

        In the order of `fids`; read once and kept.
        """
        return self._labels.values(column)

    def rows(self, feature: Ints) -> pa.Table:
        """The whole features of some places: see `FeatureRows.of`. Errors are those of `match`."""
        assert self._rows is not None  # noqa: S101 - whoever joins has a layer that can be read
        return self._rows.of(feature)

    def _shapes_of(self, region: int) -> RegionShapes:
        with readable():
            return self._cache.get(self._region_ids[region])

    @property
    def cached_regions(self) -> tuple[str, ...]:
        """The regions whose geometries are in memory."""
        return self._cache.regions

    @property
    def nbytes(self) -> int:
        """About how much memory the geometries take now."""
        return self._cache.nbytes

    def _grid(
        self, chosen: Chosen, distance_m: float | None, growth: Growth
    ) -> tuple[BoxIndex, Ints]:
        key = (chosen, distance_m, growth)
        grid = self._grids.pop(key, None)
        if grid is None:
            features = self._placed(chosen)
            boxes = boxes_reached(
                self._boxes[features], distance_m, growth, space=self._space
            )
            grid = BoxIndex(boxes), features
        self._grids[key] = grid
        if len(self._grids) > _GRIDS_HELD:
            self._grids.popitem(last=False)
        return grid
