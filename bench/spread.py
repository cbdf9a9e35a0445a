"""What a large layer costs each of some tasks when it lies spread over them, beside one index of it.

usage: python -m bench.spread [--tasks 1,2,4,8,16] [--regions 64] [--points 100000]

The roads of metropolitan Porto, and the places of its taxis, each within 5 m of a road or not. Each task asks for its
share of the points, one task after the other, in this process: its own CPU time, and what it spends on answers for the
others. All pairs must be those of one index, else it fails with exit code 3.

    efficiency = time of one index / (tasks x time of the busiest)
"""

import argparse
import json
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.scaling import ROADS
from bench.throughput import ROOT, workload
from st_common.config.home import Home
from st_common.geometry.space import GLOBE
from st_common.layers.index import LayerIndex
from st_common.layers.load import load
from st_common.layers.stored import load_index, load_outline
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from st_common.spark.exchange.layers import LAYERS, Arrays, RegionService, SpreadLayer
from st_common.spark.exchange.peers import Peers
from st_common.spark.exchange.wire import Keys

NEAR_M = 5.0
BATCH, SAMPLE = 20_000, 20_000


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What so many tasks took (seconds of CPU), and hold at most (bytes); how often a point is asked for."""

    tasks: int
    busiest_s: float
    all_s: float
    efficiency: float
    most_bytes: int
    all_bytes: int
    asked_share: float


class Timed(RegionService):
    """Notes how long its answers took."""

    seconds, rows = 0.0, 0

    def answer(
        self, asked: Mapping[str, Any], arrays: Arrays
    ) -> tuple[list[int], dict[str, np.ndarray]]:
        """As `RegionService.answer`."""
        began_s = time.thread_time()
        answer = super().answer(asked, arrays)
        self.seconds += time.thread_time() - began_s
        self.rows += sum(asked["counts"])
        return answer


def loaded(args: Namespace, x: np.ndarray, y: np.ndarray) -> tuple[Home, int]:
    """A home with the roads in regions of equally many points, and the version of the layer."""
    home = Home(args.work / f"home-{time.time_ns()}")
    points = np.stack([x, y], axis=1)[:: max(len(x) // SAMPLE, 1)]
    split = median_split(points, args.regions)
    cells = Regions(
        group="default", version=1, region_id=split.paths, bounds=split.bounds
    )
    store(home, cells, np.zeros(len(split.paths), np.int64), "sample")
    conf = ROOT / "conf"
    done = load(home, "roads", ROADS, group="default", kinds=["road"], conf=conf)
    return home, done.version


def places(args: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The places of taxis, as many as asked for."""
    from pyarrow import csv

    table = csv.read_csv(workload(args.work, 60) / "w1_points.csv")
    x, y = (table[name].to_numpy()[: args.points] for name in ("x", "y"))
    return x.copy(), y.copy()


def matched(
    layer: LayerIndex | SpreadLayer, x: np.ndarray, y: np.ndarray
) -> list[np.ndarray]:
    """The pairs of points and roads, batch by batch."""
    pairs = []
    for at in range(0, len(x), BATCH):
        point, feature = layer.match(
            x[at : at + BATCH], y[at : at + BATCH], distance_m=NEAR_M
        )
        pairs.append(np.stack([point + at, feature]))
    return pairs


class Tasks:
    """Some tasks that know each other, each with the layer as it sees it."""

    def __init__(self, home: Home, version: int, count: int) -> None:
        outline = load_outline(home, "roads", version)
        assert outline is not None  # noqa: S101 - it was just spread over regions
        self.services = [Timed(home, GLOBE) for _ in range(count)]
        keys = Keys.made()
        self.peers = [Peers("127.0.0.1", keys, {LAYERS: one}) for one in self.services]
        addresses = sorted(one.address for one in self.peers)
        self.layers = []
        for one in self.peers:
            one.meet(addresses)
            layer = SpreadLayer("roads", version, outline, one, space=GLOBE)
            self.layers.append(layer)

    def close(self) -> None:
        """Ends them."""
        for one in self.peers:
            one.close()


def measured(
    home: Home, version: int, count: int, x: np.ndarray, y: np.ndarray
) -> tuple[Measured, np.ndarray]:
    """What so many tasks took, each with its share of the points; and all pairs."""
    tasks = Tasks(home, version, count)
    shares = np.array_split(np.arange(len(x)), count)
    for layer, share in zip(tasks.layers, shares, strict=True):
        matched(layer, x[share], y[share])  # regions are read, and grids built
    for one in tasks.services:
        one.seconds, one.rows = 0.0, 0
    own_s, pairs = [], []
    for layer, share, service in zip(tasks.layers, shares, tasks.services, strict=True):
        served_s, began_s = service.seconds, time.thread_time()
        found = matched(layer, x[share], y[share])
        own_s.append(time.thread_time() - began_s - (service.seconds - served_s))
        pairs += [np.stack([share[point], feature]) for point, feature in found]
    tasks.close()
    figures = figures_of(tasks.services, own_s, points=len(x))
    return figures, np.concatenate(pairs, axis=1)


def figures_of(
    services: Sequence[Timed], own_s: Sequence[float], *, points: int
) -> Measured:
    """What tasks took for their own points and for those of others, and what they hold."""
    took_s = np.array(own_s) + [one.seconds for one in services]
    held = np.array([one.nbytes for one in services])
    return Measured(
        tasks=len(services),
        busiest_s=round(float(took_s.max()), 3),
        all_s=round(float(took_s.sum()), 3),
        efficiency=0.0,
        most_bytes=int(held.max()),
        all_bytes=int(held.sum()),
        asked_share=round(sum(one.rows for one in services) / points, 3),
    )


def of_one_index(
    home: Home, version: int, x: np.ndarray, y: np.ndarray
) -> tuple[Measured, np.ndarray]:
    """What one index of the layer takes for all points, and the pairs."""
    index = load_index(home, "roads", version, space=GLOBE)
    matched(index, x, y)
    began_s = time.thread_time()
    pairs = np.concatenate(matched(index, x, y), axis=1)
    took_s = round(time.thread_time() - began_s, 3)
    figures = Measured(
        tasks=0,
        busiest_s=took_s,
        all_s=took_s,
        efficiency=1.0,
        most_bytes=index.nbytes,
        all_bytes=index.nbytes,
        asked_share=1.0,
    )
    return figures, pairs


def main() -> None:
    """Measures each number of tasks, and prints the figures as JSON; the first row is of one index."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default="1,2,4,8,16")
    parser.add_argument("--regions", type=int, default=64)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    args = parser.parse_args()
    x, y = places(args)
    home, version = loaded(args, x, y)
    one, wanted = of_one_index(home, version, x, y)
    rows, same = [one], True
    for count in map(int, args.tasks.split(",")):
        figures, pairs = measured(home, version, count, x, y)
        share = one.busiest_s / (count * figures.busiest_s)
        rows.append(replace(figures, efficiency=round(share, 3)))
        same &= np.array_equal(pairs, wanted)
    what = f"roads within {NEAR_M:g} m, {args.regions} regions, {len(x)} points"
    told = {"what": what, "pairs": wanted.shape[1], "by_tasks": list(map(asdict, rows))}
    print(json.dumps(told))
    if not same:
        raise SystemExit(3)


if __name__ == "__main__":
    main()
