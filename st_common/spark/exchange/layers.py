"""A layer whose shapes lie with many tasks, each with those of some regions (docs/adr/0084, SPEC B2, S7).

    points of a step        o  o   o      each goes to the region that it lies in, and to those within its distance ..
    regions of the layer   [ 00 ][ 01 ]
    tasks                     A     B     .. which tasks answer for, and the pairs come back

Nothing of that decides an answer: it is that of `LayerIndex`, in the same order.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.geometry.borders import Segments, each_once
from st_common.geometry.enlarged import (
    POINT,
    Growth,
    boxes_reached,
    grown,
    points_reaching,
)
from st_common.geometry.grid import BoxIndex, blocks
from st_common.geometry.ranked import first_k
from st_common.geometry.space import Space
from st_common.layers.index import LayerIndex
from st_common.layers.labels import Chosen, Tags, chosen_by
from st_common.layers.nearby import reached
from st_common.layers.stored import (
    Outline,
    index_bytes,
    load_index,
    load_outline,
    load_part,
)
from st_common.operators.matching.layer import Layer, LayerOf
from st_common.runs import is_first, ranks_of
from st_common.spark.exchange.peers import Ask, Peers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Arrays = Mapping[str, np.ndarray]

_MB = 1 << 20
_MOST_BYTES = 1 << 30
_HELD, _LAYERS_HELD = 64, 16
_MOST_COMPARED = 1 << 20  # pairs of points and regions compared together
LAYERS = "layers"
"""What others are asked about."""
_PAIRS = ("point", "feature")
_ANSWERS = {
    "match": _PAIRS,
    "crossed": _PAIRS,
    "k_nearest": (*_PAIRS, "far"),
    "distances": ("value",),
    "nearest": ("x", "y"),
}
"""The arrays of an answer, by the method of `LayerIndex` that is asked for."""
_WORTH_A_COPY = 1024
"""From so many rows on a region that many lie in is asked of several tasks."""


@lru_cache(maxsize=64)
def dealt(weights: tuple[int, ...], members: int) -> tuple[int, ...]:
    """The member that has each region: the heaviest first, each to whoever has the least.

        weights 5, 3, 3 for 2 members:  0, 1, 1

    Args:
        weights: of the regions.
        members: how many there are.
    """
    loads, owner = np.zeros(members), np.zeros(len(weights), np.int64)
    for region in sorted(range(len(weights)), key=lambda one: (-weights[one], one)):
        owner[region] = loads.argmin()
        loads[owner[region]] += weights[region]
    return tuple(owner.tolist())


def copies_of(rows: int, *, of: int, members: int) -> int:
    """How many members share in the rows of one region, which then each have a copy of it.

    One, unless the rows are many, and as much as the work of two members or more.

    Args:
        rows: that ask for the region.
        of: how many rows ask for any.
        members: how many there are.
    """
    if rows < _WORTH_A_COPY:
        return 1
    return max(rows * members // of, 1)


_Key = tuple[str, int, tuple[str, ...]]


class _Held:
    """The index of a part, which one thread uses at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.index: LayerIndex | None = None


class RegionService:
    """Answers for parts of layers, each some regions of one; from several threads.

    The index of a part is read when it is asked for the first time, and let go of when others were asked for since, and
    memory is needed.

    Args:
        home: where the tables of layers lie.
        space: what coordinates mean.
        most_bytes: how much memory indexes may take together; that of one part is always kept.
    """

    def __init__(
        self, home: Home, space: Space, *, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._home, self._space, self._most = home, space, most_bytes
        self._held: OrderedDict[_Key, _Held] = OrderedDict()
        self._lock = threading.Lock()

    def answer(
        self, asked: Mapping[str, Any], arrays: Arrays
    ) -> tuple[list[int], dict[str, np.ndarray]]:
        """What is asked of some parts of a layer, part after part.

        Args:
            asked: `method` of `LayerIndex`, with its `options`, a dict; `layer` and `version`; `parts`, the
                regions of each, and in `counts` how many rows of the arrays it has.
            arrays: the arguments of the method by name, the rows of all parts one after the other. Features are
                numbered in their part.

        Returns:
            How many rows the answer for each part has; and the arrays, part after part: `point`, `feature` of pairs,
            numbered in their part, with `far` of the nearest; or `value` (`x` and `y` of places), one for each row
            that was asked.

        Raises:
            LayerError: the layer cannot be read.
            TransientError: it cannot be read now.
        """
        ends, answers = np.cumsum(asked["counts"]), []
        for part, start, end in zip(
            asked["parts"], ends - asked["counts"], ends, strict=True
        ):
            key = asked["layer"], asked["version"], tuple(part)
            mine = {name: values[start:end] for name, values in arrays.items()}
            answers.append(self._asked(key, asked, mine))
        names = _ANSWERS[asked["method"]]
        return [len(one[0]) for one in answers], {
            name: np.concatenate([one[place] for one in answers])
            for place, name in enumerate(names)
        }

    @property
    def parts(self) -> list[_Key]:
        """Layer, version and regions of the indexes that are held."""
        with self._lock:
            return [key for key, held in self._held.items() if held.index is not None]

    @property
    def nbytes(self) -> int:
        """About how much memory the geometries of all parts take that are held."""
        with self._lock:
            held = [one.index for one in self._held.values()]
        return sum(index.nbytes for index in held if index is not None)

    def _asked(
        self, key: _Key, asked: Mapping[str, Any], arrays: Arrays
    ) -> Sequence[np.ndarray]:
        with self._lock:
            held = self._held.setdefault(key, _Held())
            self._held.move_to_end(key)
        with held.lock:
            if held.index is None:
                held.index = load_part(self._home, *key, space=self._space)
                self._make_room()
            return _answered(held.index, asked["method"], asked["options"], arrays)

    def _make_room(self) -> None:
        """Lets go of those parts that were not asked for the longest."""
        with self._lock:
            known = [(key, held.index) for key, held in self._held.items()]
            total = sum(index.nbytes for _, index in known if index is not None)
            for key, index in known[:-1]:
                if total <= self._most:
                    return
                if index is not None:
                    total -= index.nbytes
                    del self._held[key]


def _answered(
    index: LayerIndex, method: str, options: Mapping[str, Any], arrays: Arrays
) -> Sequence[np.ndarray]:
    """What an index answers, in the order of `_ANSWERS`; options that came as JSON are what they were again."""
    how = dict(options)
    if "tags" in how:
        how["kinds"], how["tags"] = tuple(how["kinds"]), tuple(map(tuple, how["tags"]))
    if "growth" in how:
        how["growth"] = Growth(**how["growth"])
    if method == "crossed":
        return index.crossed(Segments(**arrays), **how)
    if method == "match":
        return index.match(arrays["x"], arrays["y"], **how)
    if method == "k_nearest":
        x, y, limit = arrays["x"], arrays["y"], arrays["limit"]
        point, feature = index.k_nearest(x, y, distance_m=limit, **how)
        return point, feature, index.distances(x[point], y[point], feature)
    asked = arrays["x"], arrays["y"], arrays["feature"]
    if method == "distances":
        return (index.distances(*asked, **how),)
    return tuple(index.nearest(*asked, **how))


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
        self._counts_of = lru_cache(maxsize=_HELD)(self._counts)

    def changed_since(self, _version: int) -> None:
        """What differs from an older version: not known, so everybody is judged anew."""

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

    def k_nearest(
        self,
        x: Floats,
        y: Floats,
        k: int,
        *,
        distance_m: float | None = None,
        kinds: Sequence[str] = (),
        tags: Tags = (),
    ) -> tuple[Ints, Ints]:
        """See `LayerIndex.k_nearest`: regions that have k features say how far away others are asked."""
        chosen = chosen_by(kinds, tags)
        counts = self._counts_of(chosen)
        arrays = {"x": x, "y": y}
        arrays["limit"] = np.full(len(x), np.inf if distance_m is None else distance_m)
        options = {"k": k, "kinds": chosen[0], "tags": chosen[1]}
        row, region = self._nearest_regions(x, y, k, counts)
        first = self._measured(options, arrays, row, region)
        bound = np.full(len(x), -1.0)  # NaN asks for nothing more
        bound[row] = np.minimum(_kth(first, k, len(x)), arrays["limit"])[row]
        arrays["limit"] = bound * (1 + 1e-9) + self._space.rounding
        there = np.flatnonzero(bound >= 0)
        at, other = reached(
            self._tree_of(0.0),
            *(values[there] for values in arrays.values()),
            space=self._space,
        )
        at = there[at]
        is_new = counts[other] > 0
        is_new &= ~np.isin(_numbered(at, other), _numbered(row, region))
        more = self._measured(options, arrays, at[is_new], other[is_new])
        point, feature, far = (
            np.concatenate(both) for both in zip(first, more, strict=True)
        )
        # A feature across the border of two regions was measured in both.
        _, once = np.unique(_numbered(point, feature), return_index=True)
        point, feature, far = point[once], feature[once], far[once]
        nearest = first_k(point, feature, far, k, self._space.decimals)
        return each_once(point[nearest], feature[nearest])

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

    def rows(self, feature: Ints) -> pa.Table:
        """See `LayerIndex.rows`: every task reads the features that it asks for."""
        return self._outline.rows.of(feature)

    def _pairs(
        self,
        method: str,
        options: Mapping[str, Any],
        arrays: Arrays,
        row: Ints,
        region: Ints,
    ) -> tuple[Ints, Ints]:
        """Pairs of a row and a feature, sorted, each once, by what members answer for pairs of a row and a region.

        A feature across the border of two regions is found in both.
        """
        points, features = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for part, answer in self._asked(method, options, arrays, row, region):
            points.append(row[part.rows][answer["point"]])
            features.append(self._features_of(part.regions)[answer["feature"]])
        return each_once(np.concatenate(points), np.concatenate(features))

    def _measured(
        self, options: Mapping[str, Any], arrays: Arrays, row: Ints, region: Ints
    ) -> tuple[Ints, Ints, Floats]:
        """Points, features and how far they are, by what members answer for pairs of a row and a region."""
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for part, answer in self._asked("k_nearest", options, arrays, row, region):
            features = self._features_of(part.regions)[answer["feature"]]
            point = row[part.rows][answer["point"]]
            parts.append((point, features, answer["far"]))
        point, feature, far = (
            np.concatenate(each) for each in zip(*parts, strict=True)
        )
        return point, feature, far

    def _nearest_regions(
        self, x: Floats, y: Floats, k: int, counts: Ints
    ) -> tuple[Ints, Ints]:
        """Pairs of each point and the regions nearest to it that have k features together, or all that have any."""
        some = np.flatnonzero(counts)
        minx, miny, maxx, maxy = self._outline.extents[some].T
        rows, regions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        there = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        for part in blocks(np.full(len(there), len(some)), _MOST_COMPARED):
            row = there[part]
            px, py = x[row, None], y[row, None]
            far = self._space.rank_about(
                px, py, np.clip(px, minx, maxx), np.clip(py, miny, maxy)
            )
            order = np.argsort(far, axis=1, kind="stable")
            before = np.cumsum(counts[some][order], axis=1) - counts[some][order]
            at, place = np.nonzero(before < k)
            rows.append(row[at])
            regions.append(some[order[at, place]])
        return np.concatenate(rows), np.concatenate(regions)

    def _counts(self, chosen: Chosen) -> Ints:
        """How many features of these kinds and tags stand in each region."""
        meant = self._outline.labels.meant(chosen)
        return np.array([meant[each].sum() for each in self._outline.features], int)

    def _values(
        self,
        method: str,
        options: Mapping[str, Any],
        x: Floats,
        y: Floats,
        feature: Ints,
    ) -> list[Floats]:
        """Values of pairs of a point and a feature, by the members that have the features."""
        arrays = {"x": x, "y": y, "feature": feature}
        names = _ANSWERS[method]
        values = [np.full(len(feature), np.nan) for _ in names]
        row, region = np.arange(len(feature)), self._outline.home[feature]
        for part, answer in self._asked(method, options, arrays, row, region):
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
        method: str,
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
            member: self._ask(method, options, arrays, row, mine)
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
        method: str,
        options: Mapping[str, Any],
        arrays: Arrays,
        row: Ints,
        parts: Sequence[_Part],
    ) -> Ask:
        """What one member is asked for its parts."""
        asked = {
            **self._named,
            "what": LAYERS,
            "method": method,
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


def _kth(pairs: tuple[Ints, Ints, Floats], k: int, points: int) -> Floats:
    """How far the k-th feature of each of so many points is; infinite where it has fewer. A feature counts once."""
    point, feature, far = pairs
    _, once = np.unique(_numbered(point, feature), return_index=True)
    order = once[np.lexsort((far[once], point[once]))]
    nth = order[ranks_of(is_first(point[order])) == k - 1]
    kth = np.full(points, np.inf)
    kth[point[nth]] = far[nth]
    return kth


def _numbered(one: Ints, other: Ints) -> Ints:
    """A number for each pair of numbers below 2 ** 31."""
    return (one << 32) | other


def _options(
    distance_m: float | None, kinds: Sequence[str], tags: Tags
) -> dict[str, Any]:
    chosen_kinds, chosen_tags = chosen_by(kinds, tags)
    return {"distance_m": distance_m, "kinds": chosen_kinds, "tags": chosen_tags}


def shared_layers(home: Home, stream: StreamSettings, peers: Peers) -> LayerOf:
    """What gives a task the layers of a home folder, in the space of a stream.

    Args:
        home: where the tables of layers lie.
        stream: its settings say how large an index may be that each task has whole.
        peers: the tasks.

    Returns:
        `layer_of(layer, version)`, as `step` takes it.
    """
    most_bytes, space = stream.spark.spread_layers_mb * _MB, stream.space

    @lru_cache(maxsize=_LAYERS_HELD)
    def layer_of(layer: str, version: int) -> Layer:
        is_large = index_bytes(home, layer, version) > most_bytes
        outline = load_outline(home, layer, version) if is_large else None
        if outline is None:
            return load_index(home, layer, version, space=space)
        return SpreadLayer(layer, version, outline, peers, space=space)

    return layer_of
