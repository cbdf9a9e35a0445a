"""The road network of Brinkhoff's generator: nodes, roads of eight classes, how fast who drives there, and routes.

Source: T. Brinkhoff, A Framework for Generating Network-Based Moving Objects, GeoInformatica 6(2), 2002, and the source
of its program. Coordinates are local units without a place on Earth; times are in the generator's time units.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.csv
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from st_common.geometry.space import PLANE, Space

CLASSES = ("car", "taxi", "bus", "truck", "cyclist", "pedestrian")
"""The classes of objects, the fastest first; each has half the speed and half the share of the one before."""

CLASS_SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 32)
_ROAD_CLASSES = 8


@dataclass(frozen=True, kw_only=True)
class RoadNetwork:
    """Nodes `x`, `y` (f64) and directed roads `start`, `end` (int64 nodes), `length` (f64), `road_class` (int64, 0..7).

    Every road is there in both directions. Roads are sorted by (start, end); two of them may join the same nodes.
    """

    x: np.ndarray
    y: np.ndarray
    start: np.ndarray
    end: np.ndarray
    length: np.ndarray
    road_class: np.ndarray

    @cached_property
    def extent(self) -> tuple[float, float]:
        """Width and height of the space."""
        return float(np.ptp(self.x)), float(np.ptp(self.y))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Top speeds in units per time unit: of the classes of objects (f64[6]) and of roads (f64[8])."""

    objects: np.ndarray
    roads: np.ndarray

    def between(self, kind: np.ndarray, road_class: np.ndarray) -> np.ndarray:
        """How fast objects of these classes drive on roads of these classes: as fast as both may."""
        speeds: np.ndarray = np.minimum(self.objects[kind], self.roads[road_class])
        return speeds


def read_network(folder: Path) -> RoadNetwork:
    """The network in `*_nodes.csv` (id, x, y) and `*_edges.csv` (id, node1, node2, class) of a folder.

    Raises:
        ValueError: there is not one file of each kind, a road ends at an unknown node, or its class is none of 0..7.
    """
    nodes, edges = (
        pyarrow.csv.read_csv(_only(folder, kind)) for kind in ("nodes", "edges")
    )
    nodes = nodes.sort_by("id")
    ids, x, y = (nodes[name].to_numpy() for name in ("id", "x", "y"))
    a, b, road_class = (edges[name].to_numpy() for name in ("node1", "node2", "class"))
    if not (np.isin(a, ids).all() and np.isin(b, ids).all()):
        raise ValueError(f"{folder}: a road ends at a node that is not there")
    if not np.isin(road_class, np.arange(_ROAD_CLASSES)).all():
        raise ValueError(
            f"{folder}: a road has a class that is none of 0 to {_ROAD_CLASSES - 1}"
        )
    a, b = np.searchsorted(ids, a), np.searchsorted(ids, b)
    return network_of(x.astype(float), y.astype(float), a, b, road_class)


def network_of(
    x: np.ndarray,
    y: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    road_class: np.ndarray,
    *,
    space: Space = PLANE,
) -> RoadNetwork:
    """The network of these nodes and of roads between nodes `a` and `b`; roads without a length are left out.

    Lengths are those of `space`: on the globe metres.
    """
    start, end = np.concatenate([a, b]), np.concatenate([b, a])
    length = space.distance(x[start], y[start], x[end], y[end])
    order = np.lexsort((end, start))
    order = order[length[order] > 0]
    return RoadNetwork(
        x=x,
        y=y,
        start=start[order],
        end=end[order],
        length=length[order],
        road_class=np.tile(road_class, 2)[order].astype(np.int64),
    )


def limits_of(network: RoadNetwork, *, divisor: int = 50) -> Limits:
    """The generator's top speeds: (width + height) / `divisor` for the fastest of both, in whole units.

    Each class of objects has half the speed of the one before, each class of roads two thirds of it, cut to a whole
    number. 50 is the generator's own divisor; 250 is what the literature on neighbour queries calls slow.
    """
    fastest = int(sum(network.extent)) // divisor
    roads = [fastest]
    while len(roads) < _ROAD_CLASSES:
        roads.append(roads[-1] * 2 // 3)
    return Limits(
        objects=fastest / 2.0 ** np.arange(len(CLASSES)),
        roads=np.maximum(np.array(roads, float), 1.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One class's network for shortest paths: of roads that join the same nodes only the quickest is there.

    `key` (start x nodes + end, sorted) finds the directed `road` of two nodes; `matrix` has the time units of each.
    """

    key: np.ndarray
    road: np.ndarray
    matrix: csr_matrix


def graph_of(network: RoadNetwork, cost: np.ndarray) -> Graph:
    """The graph whose roads cost so much (f64 per directed road, above 0)."""
    nodes = len(network.x)
    key = network.start * nodes + network.end
    order = np.lexsort((cost, key))
    quickest = order[np.r_[True, np.diff(key[order]) > 0]] if len(order) else order
    matrix = csr_matrix(
        (cost[quickest], (network.start[quickest], network.end[quickest])),
        shape=(nodes, nodes),
    )
    return Graph(key=key[quickest], road=quickest, matrix=matrix)


def _only(folder: Path, kind: str) -> Path:
    paths = sorted(folder.glob(f"*_{kind}.csv"))
    if len(paths) != 1:
        raise ValueError(f"{folder} has {len(paths)} files *_{kind}.csv, not one")
    return paths[0]


Choice = Literal["fastest", "shortest"]

_TREES_AT_ONCE = 256
_TRIES = 50
_NEAR_ENOUGH = 0.1
_TRIVIAL_HOPS = 3  # routes of fewer roads are drawn again


class Router:
    """Fastest or shortest routes, one tree per destination and class of objects, found when first asked for and kept.

    A tree has two bytes per node. Whatever was asked before, the answers are the same.
    """

    def __init__(
        self, network: RoadNetwork, limits: Limits, *, choice: Choice = "fastest"
    ) -> None:
        if len(network.x) > np.iinfo(np.int16).max:
            raise ValueError(
                f"{len(network.x)} nodes: a tree numbers at most {np.iinfo(np.int16).max}"
            )
        self.network, self.limits = network, limits
        profiles = (
            np.arange(len(CLASSES))
            if choice == "fastest"
            else np.zeros(len(CLASSES), np.int64)
        )
        self._profile, self._graphs = profiles, _graphs(network, limits, choice)
        shape = (len(network.x), len(network.x))
        self._next = [
            np.empty(shape, np.int16) for _ in self._graphs
        ]  # a row takes memory once it is written
        self._known = np.zeros((len(self._graphs), len(network.x)), bool)

    def speed(self, kind: np.ndarray, road: np.ndarray) -> np.ndarray:
        """How fast objects of these classes drive on these roads, in units per time unit."""
        return self.limits.between(kind, self.network.road_class[road])

    def next_road(
        self, kind: np.ndarray, node: np.ndarray, destination: np.ndarray
    ) -> np.ndarray:
        """The directed road by which an object of a class leaves a node for its destination.

        int64; -1 at the destination itself, and where no road leads there.
        """
        profile = self._profile[kind]
        road = np.full(len(node), -1, np.int64)
        for number, graph in enumerate(self._graphs):
            mine = np.flatnonzero(profile == number)
            self._learn(number, np.unique(destination[mine]))
            ahead = self._next[number][destination[mine], node[mine]].astype(np.int64)
            there = ahead >= 0
            key = node[mine[there]] * len(self.network.x) + ahead[there]
            road[mine[there]] = graph.road[np.searchsorted(graph.key, key)]
        return road

    def next_door(self, node: np.ndarray) -> np.ndarray:
        """A node at the other end of some road of each node, the same each time."""
        first = np.searchsorted(self.network.start, node)
        beside: np.ndarray = self.network.end[first]
        return beside

    def is_trivial(
        self, kind: np.ndarray, node: np.ndarray, destination: np.ndarray
    ) -> np.ndarray:
        """Whether a route has fewer than three roads, or leads nowhere."""
        at = node
        for _ in range(_TRIVIAL_HOPS - 1):
            road = self.next_road(kind, at, destination)
            at = np.where(road >= 0, self.network.end[road], at)
        return self.next_road(kind, at, destination) < 0

    def _learn(self, number: int, destinations: np.ndarray) -> None:
        wanted = destinations[~self._known[number, destinations]]
        for first in range(0, len(wanted), _TREES_AT_ONCE):
            some = wanted[first : first + _TREES_AT_ONCE]
            # roads go both ways, so the road before a node on the way from the destination is the one that leads there
            _, before = dijkstra(
                self._graphs[number].matrix, indices=some, return_predecessors=True
            )
            self._next[number][some] = np.maximum(before, -1)
        self._known[number, wanted] = True


def _graphs(network: RoadNetwork, limits: Limits, choice: Choice) -> list[Graph]:
    if choice == "shortest":
        return [graph_of(network, network.length)]
    kinds = [np.full(len(network.start), kind) for kind in range(len(CLASSES))]
    return [
        graph_of(network, network.length / limits.between(kind, network.road_class))
        for kind in kinds
    ]


def destinations(
    network: RoadNetwork, origin: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A destination for each origin (nodes, int64), about |N(0, 1)| x diagonal / 5 away as the crow flies.

    Of up to 50 random nodes the one whose distance fits best; the first that fits to 10 % is taken.
    """
    wanted = (
        np.abs(rng.standard_normal(len(origin))) * float(np.hypot(*network.extent)) / 5
    )
    best = rng.integers(0, len(network.x), len(origin))
    miss = np.abs(_air(network, origin, best) - wanted)
    open_ = np.flatnonzero(miss > _NEAR_ENOUGH * wanted)
    for _ in range(_TRIES):
        drawn = rng.integers(0, len(network.x), len(open_))
        off = np.abs(_air(network, origin[open_], drawn) - wanted[open_])
        better = off < miss[open_]
        best[open_[better]], miss[open_[better]] = drawn[better], off[better]
        open_ = open_[miss[open_] > _NEAR_ENOUGH * wanted[open_]]
    return best


def _air(network: RoadNetwork, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    distance: np.ndarray = np.hypot(
        network.x[a] - network.x[b], network.y[a] - network.y[b]
    )
    return distance
