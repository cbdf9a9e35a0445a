"""How fast the kernels of moving queries are on one core: boxes, circles, k nearest, reverse and group neighbours.

usage: python bench/moving_kernels.py [--objects 100000] [--repeat 5] [--out bench/results/moving-kernels.json]

Objects lie at random over 20 x 20 km around Porto, in degrees, and so do the objects that queries go with. A case is
one round of a kind of queries: criteria, candidates, members, in which every query is judged anew. One JSON object:
for each case the queries, pairs (members), seconds of processor time (median and best of the repeats). The members of
some queries are compared with a look at every object; one that differs ends with exit code 1.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.spatial import cKDTree

from st_common.geometry.circles import CircleIndex
from st_common.geometry.distance import metres_between
from st_common.geometry.grid import BoxIndex
from st_common.geometry.join import points_in_boxes
from st_common.geometry.space import GLOBE
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.world import Table, World
from tests.kit.masks import Masks

ROOT = Path(__file__).resolve().parents[1]
WEST, SOUTH, EAST, NORTH = -8.73, 41.06, -8.49, 41.24  # about 20 km each way
PER_BOX = 10.9  # objects in a square, as in the experiment with 100K squares over 100K objects
CIRCLE_M = 1_000.0
CHECKED = 20  # queries whose members are looked for among all objects
KS = (1, 4, 16, 64, 256)
Pairs = tuple[np.ndarray, np.ndarray]


def main() -> int:
    """Measures all cases, writes and prints them as JSON, gives back the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "bench" / "results" / "moving-kernels.json"
    )
    arguments = parser.parse_args()
    world, few = _world(arguments.objects), _world(arguments.objects // 10)
    cases = [
        *_joins(world, arguments.repeat),
        *_circles(few, arguments.repeat),
        *_neighbours(world, arguments.repeat),
    ]
    versions = {
        name: importlib.import_module(name).__version__
        for name in ("numpy", "scipy", "pyarrow")
    }
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        **versions,
    }
    found = json.dumps(
        {"bench": "moving kernels", "machine": machine, "cases": cases}, indent=1
    )
    arguments.out.write_text(found + "\n", encoding="utf-8")
    print(found)
    return 0 if all(case["exact"] for case in cases) else 1


def _world(count: int) -> World:
    random = np.random.default_rng(2_020)
    return World(
        x=random.uniform(WEST, EAST, count),
        y=random.uniform(SOUTH, NORTH, count),
        alive=np.ones(count, np.bool_),
        ids=pa.array([f"o{n}" for n in range(count)]),
        space=GLOBE,
        selection=Masks([np.ones(count, np.bool_), random.random(count) < 0.1]),
    )


def _table(count: int, **columns: Any) -> Table:
    """Queries that go with the first objects."""
    nowhere = np.full(count, np.nan)
    return Table(
        **{
            "focal": np.arange(count),
            "x": nowhere,
            "y": nowhere,
            "eligible": np.zeros(count, np.int64),
            **columns,
        }
    )


def _joins(world: World, repeat: int) -> list[dict[str, Any]]:
    """A square for each object: the bare join, an index of boxes made anew instead, and the kind."""
    count = len(world.x)
    side = np.sqrt(PER_BOX / count)
    width, height = (
        np.full(count, (EAST - WEST) * side),
        np.full(count, (NORTH - SOUTH) * side),
    )
    boxes = np.stack(
        [
            world.x - width / 2,
            world.y - height / 2,
            world.x + width / 2,
            world.y + height / 2,
        ]
    )
    known = len(BoxIndex(boxes.T).probe(world.x, world.y)[0])
    table = _table(count, width=width, height=height, metres=np.zeros(count, np.bool_))
    cases = [
        _measured(
            "join of squares and objects",
            count,
            lambda: points_in_boxes(boxes, world.x, world.y),
            repeat,
        ),
        _measured(
            "the same by BoxIndex, built anew",
            count,
            lambda: BoxIndex(boxes.T).probe(world.x, world.y),
            repeat,
        ),
    ]
    for case in cases:
        case["exact"] = case["pairs"] == known
    return [*cases, _kind("moving_box", world, table, repeat)]


def _circles(world: World, repeat: int) -> list[dict[str, Any]]:
    """Fences of 1 km around every object, geodesic; and the same circles where they stand still."""
    count = len(world.x)
    radius = np.full(count, CIRCLE_M)
    moving = _kind("moving_circle", world, _table(count, radius=radius), repeat)
    index = CircleIndex(world.x, world.y, radius, space=GLOBE)
    still = _measured(
        "circles that stand still", count, lambda: index.probe(world.x, world.y), repeat
    )
    return [
        moving,
        {**still, "exact": still["pairs"] == moving["pairs"] + count},
    ]  # there the object itself is in


def _neighbours(world: World, repeat: int) -> list[dict[str, Any]]:
    count = len(world.x) // 20
    cases = [
        _kind("nearest", world, _table(count, k=np.full(count, k)), repeat, k=k)
        for k in KS
    ]
    picky = _table(count, k=np.full(count, 16), eligible=np.ones(count, np.int64))
    cases.append(_kind("nearest", world, picky, repeat, k=16, eligible=0.1))
    cases.append(_kind("reverse", world, _table(count), repeat))
    few = max(count // 10, 1)
    places = {
        "place_row": np.repeat(np.arange(few), 3),
        "place_focal": _trios(world, few),
    }
    nowhere = {"place_x": np.full(few * 3, np.nan), "place_y": np.full(few * 3, np.nan)}
    for number, total in enumerate(("sum", "max", "min")):
        columns = {
            "k": np.full(few, 16),
            "total": np.full(few, number, np.int8),
            **places,
            **nowhere,
        }
        cases.append(
            _kind(
                "group",
                world,
                _table(few, **columns),
                repeat,
                k=16,
                total=total,
                places=3,
            )
        )
    return cases


def _trios(world: World, count: int) -> np.ndarray:
    """Three objects each that are among the hundred next to each other."""
    places = np.stack([world.x, world.y], axis=1)
    return np.asarray(
        cKDTree(places).query(places[:count], k=[1, 50, 99])[1], np.int64
    ).ravel()


def _kind(
    kind: str, world: World, table: Table, repeat: int, **named: Any
) -> dict[str, Any]:
    """One round of all queries of a kind, and a look at every object for some of them."""
    which, objects, four = (
        np.arange(len(table.focal)),
        np.arange(len(world.x)),
        KINDS[kind],
    )

    def judged() -> Pairs:
        criteria = four.update_criteria(world, table, which)
        row, found = four.in_cache_area(world, criteria, objects, 0.0)
        keep = four.satisfy(world, criteria, row, found)
        return row[keep], found[keep]

    case = _measured(kind, len(which), judged, repeat)
    row, found = judged()
    some = np.linspace(0, len(which) - 1, CHECKED).astype(np.int64)
    exact = all(
        set(found[row == q].tolist()) == _members(kind, world, table, int(q))
        for q in some
    )
    return {**case, **named, "exact": exact}


def _members(kind: str, world: World, table: Table, q: int) -> set[int]:
    """Who belongs to the answer, by all distances."""
    focals = (
        table.place_focal[table.place_row == q] if kind == "group" else table.focal[[q]]
    )
    far = np.stack(
        [metres_between(world.x[f], world.y[f], world.x, world.y) for f in focals]
    )
    may = world.selection.rows[table.eligible[q]].copy()
    may[focals] = False
    if kind == "moving_box":
        near = np.abs(world.x - world.x[focals[0]]) <= table.width[q] / 2
        return set(
            np.flatnonzero(
                may
                & near
                & (np.abs(world.y - world.y[focals[0]]) <= table.height[q] / 2)
            ).tolist()
        )
    if kind == "moving_circle":
        return set(np.flatnonzero(may & (far[0] <= table.radius[q])).tolist())
    if kind == "reverse":
        near = np.flatnonzero(
            may & (far[0] <= np.partition(far[0], 50)[50])
        )  # each of these is nearer to some
        others = [
            np.sort(metres_between(world.x[o], world.y[o], world.x, world.y).round(3))[
                1
            ]
            for o in near
        ]
        return set(near[far[0][near].round(3) <= others].tolist())
    total = [far.sum(axis=0), far.max(axis=0), far.min(axis=0)][
        int(table.total[q]) if kind == "group" else 0
    ].round(3)
    order = sorted(np.flatnonzero(may).tolist(), key=lambda n: (total[n], f"o{n}"))
    return set(order[: int(table.k[q])])


def _measured(
    name: str, queries: int, judge: Callable[[], Pairs], repeat: int
) -> dict[str, Any]:
    """Processor time, not the clock's: other programs on the machine count less."""
    pairs, seconds = len(judge()[0]), []
    for _ in range(repeat):
        start = time.process_time()
        judge()
        seconds.append(time.process_time() - start)
    figures = {
        "seconds": round(statistics.median(seconds), 4),
        "best_seconds": round(min(seconds), 4),
    }
    return {"case": name, "queries": queries, "pairs": pairs, **figures}


if __name__ == "__main__":
    sys.exit(main())
