"""A layer whose shapes lie with many tasks, each with those of some regions (docs/adr/0084, SPEC B2, S7).

    points of a step        o  o   o      each goes to the region that it lies in, and to those within its distance ..
    regions of the layer   [ 00 ][ 01 ]
    tasks                     A     B     .. which tasks answer for, and the pairs come back

Nothing of that decides an answer: it is that of `LayerIndex`, in the same order.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

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
from st_common.geometry.space import Space
from st_common.layers.labels import Tags, chosen_by
from st_common.layers.stored import Outline
from st_common.spark.dealing import copies_of, dealt
from st_common.spark.peers import Ask, Peers
from st_common.spark.region_service import Arrays

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_HELD = 64


class _Part(NamedTuple):
    """Rows that one member is asked for some regions, by their numbers."""

    regions: tuple[int, ...]
    rows: Ints


class SpreadLayer:
    """One version of a layer, as `operators.matching.layer.Layer` has it.

    Args:
        name: of the layer.
        version: which one.
        outline: what features are called, and where they lie.
        peers: who answers for regions.
        space: what the coordinates of the layer and of the points mean.
    """

    def __init__(
        self, name: str, version: int, outline: Outline, peers: Peers, *, space: Space
    ) -> None:
        self._named = {"layer": name, "version": version}
        self._outline, self._peers, self._space = outline, peers, space
        self.fids = outline.labels.fids
        self._weights = tuple(outline.nbytes.tolist())
        # Each is made once for all batches that ask for it.
        self._features_of = lru_cache(maxsize=_HELD)(self._features)
        self._grid_of = lru_cache(maxsize=_HELD)(self._grid)
        self._tree_of = lru_cache(maxsize=_HELD)(self._tree)

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
        """See `LayerIndex.match`."""
        grid = self._grid_of(distance_m, growth.rounded())
        px, py, owner = points_reaching(x, y, distance_m, growth, space=self._space)
        point, region = grid.probe(px, py)
        point, region = each_once(owner[point], region)
        if distance_m is None and growth.is_point:
            # What a point on a border lies in stands on both sides of it: one is asked.
            is_first = np.diff(point, prepend=-1) > 0
            point, region = point[is_first], region[is_first]
        grown_by = {"value": growth.value, "metres": growth.metres}
        options = _options(distance_m, kinds, tags)
        options |= {"within": within, "growth": grown_by}
        return self._pairs("match", options, {"x": x, "y": y}, point, region)

    def crossed(
        self,
        ways: Segments,
        *,
        distance_m: float | None = None,
        kinds: Sequence[str] = (),
        tags: Tags = (),
    ) -> tuple[Ints, Ints]:
        """See `LayerIndex.crossed`."""
        owner, lines = ways.lines(self._space, distance_m or 0.0)
        tree = self._tree_of(distance_m or 0.0)
        line, region = tree.query(lines, predicate="intersects")
        way, region = each_once(owner[line], region)
        options = _options(distance_m, kinds, tags)
        arrays = {"ax": ways.ax, "ay": ways.ay, "bx": ways.bx, "by": ways.by}
        return self._pairs("crossed", options, arrays, way, region)

    def distances(
        self, x: Floats, y: Floats, feature: Ints, *, to_border: bool = False
    ) -> Floats:
        """See `LayerIndex.distances`."""
        (far,) = self._values("distances", {"to_border": to_border}, x, y, feature)
        return far

    def nearest(self, x: Floats, y: Floats, feature: Ints) -> Floats:
        """See `LayerIndex.nearest`."""
        return np.stack(self._values("nearest", {}, x, y, feature))

    def keyed(
        self,
        values: pa.Array,
        column: str,
        *,
        kinds: Sequence[str] = (),
        tags: Tags = (),
    ) -> tuple[Ints, Ints]:
        """See `LayerIndex.keyed`: of what features are called every task knows all."""
        chosen = chosen_by(kinds, tags)
        return self._outline.labels.keyed(values, column, chosen=chosen)

    def values(self, column: str) -> pa.Array:
        """See `LayerIndex.values`."""
        return self._outline.labels.values(column)

    def _pairs(
        self,
        what: str,
        options: Mapping[str, Any],
        arrays: Arrays,
        row: Ints,
        region: Ints,
    ) -> tuple[Ints, Ints]:
        """Pairs of a row and a feature, sorted, each once, by what members answer for pairs of a row and a region.

        A feature across the border of two regions is found in both.
        """
        points, features = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for part, answer in self._asked(what, options, arrays, row, region):
            points.append(row[part.rows][answer["point"]])
            features.append(self._features_of(part.regions)[answer["feature"]])
        return each_once(np.concatenate(points), np.concatenate(features))

    def _values(
        self, what: str, options: Mapping[str, Any], x: Floats, y: Floats, feature: Ints
    ) -> list[Floats]:
        """Values of pairs of a point and a feature, by the members that have the features."""
        arrays = {"x": x, "y": y, "feature": feature}
        names = ("x", "y") if what == "nearest" else ("value",)
        values = [np.full(len(feature), np.nan) for _ in names]
        row, region = np.arange(len(feature)), self._outline.home[feature]
        for part, answer in self._asked(what, options, arrays, row, region):
            for name, one in zip(names, values, strict=True):
                one[part.rows] = answer[name]
        return values

    def _grid(self, distance_m: float | None, growth: Growth) -> BoxIndex:
        """The boxes around regions, for points: as `LayerIndex` has those around features."""
        extents = self._outline.extents
        return BoxIndex(boxes_reached(extents, distance_m, growth, space=self._space))

    def _tree(self, distance_m: float) -> shapely.STRtree:
        """The boxes around regions, for ways."""
        corners = grown(self._outline.extents, distance_m, space=self._space)
        boxes: npt.NDArray[np.object_] = np.array(shapely.box(*corners.T), object)
        return shapely.STRtree(boxes)

    def _features(self, regions: tuple[int, ...]) -> Ints:
        """The features that stand in some regions: whoever has that part numbers them so."""
        return np.unique(np.concatenate([self._outline.features[n] for n in regions]))

    def _asked(
        self,
        what: str,
        options: Mapping[str, Any],
        arrays: Arrays,
        row: Ints,
        region: Ints,
    ) -> Iterator[tuple[_Part, Arrays]]:
        """What members answer for pairs of a row of the arrays and a region, part by part.

        Pairs are numbered by their places; `rows` of a part are such.
        """
        parts = self._parts(row, region)
        asks = {
            member: self._ask(what, options, arrays, row, mine)
            for member, mine in parts.items()
        }
        for member, (counts, answer) in self._peers.ask(asks).items():
            ends = np.cumsum(counts)
            for part, start, end in zip(
                parts[member], ends - counts, ends, strict=True
            ):
                yield part, {name: one[start:end] for name, one in answer.items()}

    def _parts(self, row: Ints, region: Ints) -> dict[int, list[_Part]]:
        """Which member is asked for which pairs of a row and a region: all of its regions together, and hot ones."""
        members, parts = self._peers.count, dict[int, list[_Part]]()
        owner = np.array(dealt(self._weights, members))
        of = owner[region]
        for number, count in enumerate(np.bincount(region).tolist()):
            copies = copies_of(count, of=len(row), members=members)
            for copy in range(1, copies):  # the first share is its owner's
                member = (int(owner[number]) + copy) % members
                share = np.flatnonzero(region == number)[copy::copies]
                of[share] = -1
                parts.setdefault(member, []).append(_Part((number,), share))
        for member in range(members):
            mine = np.flatnonzero(of == member)
            if len(mine):
                regions = tuple(np.flatnonzero(owner == member).tolist())
                parts.setdefault(member, []).append(_Part(regions, mine))
        return parts

    def _ask(
        self,
        what: str,
        options: Mapping[str, Any],
        arrays: Arrays,
        row: Ints,
        parts: Sequence[_Part],
    ) -> Ask:
        """What one member is asked for its parts."""
        asked = {
            **self._named,
            "what": what,
            "options": options,
            "parts": [
                [self._outline.region_ids[number] for number in part.regions]
                for part in parts
            ],
            "counts": [len(part.rows) for part in parts],
        }
        rows = row[np.concatenate([part.rows for part in parts])]
        mine = {name: values[rows] for name, values in arrays.items()}
        if "feature" in mine:
            numbers = [
                np.searchsorted(
                    self._features_of(part.regions), arrays["feature"][row[part.rows]]
                )
                for part in parts
            ]
            mine["feature"] = np.concatenate(numbers)
        return Ask(asked, mine)


def _options(
    distance_m: float | None, kinds: Sequence[str], tags: Tags
) -> dict[str, Any]:
    chosen_kinds, chosen_tags = chosen_by(kinds, tags)
    return {"distance_m": distance_m, "kinds": chosen_kinds, "tags": chosen_tags}
