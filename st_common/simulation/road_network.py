"""The road network of Brinkhoff's generator: nodes, straight roads of eight classes, and how fast who drives there.

Source: T. Brinkhoff, A Framework for Generating Network-Based Moving Objects, GeoInformatica 6(2), 2002, and the source
of its program. Coordinates are local units without a place on Earth; times are in the generator's time units.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.csv
from scipy.sparse import csr_matrix

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
