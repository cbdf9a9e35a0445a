"""Routes on a road network: where objects want to go, and along which road they leave each node on the way."""

from typing import Literal

import numpy as np
from scipy.sparse.csgraph import dijkstra

from st_common.simulation.road_network import (
    CLASSES,
    Graph,
    Limits,
    RoadNetwork,
    graph_of,
)

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
