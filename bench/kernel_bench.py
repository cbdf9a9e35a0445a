"""How fast the geometry kernels are on one core, with exact counts: points in boxes (W1, W3) and in layers (W2).

usage: python bench/kernel_bench.py [--shared ../shared] [--repeat 5]

One JSON object on stdout: for each case the points, pairs, seconds of processor time (the best of the repeats) and
points per second. A count that differs from the known one ends with exit code 1.
"""

import argparse
import csv
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from st_common.geometry.grid import BoxIndex
from st_common.layers.index import LayerIndex
from st_common.layers.kinds import load_kinds
from st_common.layers.reading import Wanted, read_features
from st_common.layers.rows import layer_rows
from st_common.partitioning.regions import whole

ROOT = Path(__file__).resolve().parents[1]
Match = Callable[[], tuple[np.ndarray, np.ndarray]]
RANGES = {
    ("W1", 1_000): 40_870,
    ("W1", 10_000): 456_150,
    ("W3", 1_000): 98_858,
    ("W3", 10_000): 999_536,
}
# kind, metres -> pairs; the roads' count is that of planar buffers, within 0.5 % of geodesic ones
LAYERS = {("park", None): 1_060, ("building", None): 15_100, ("road", 5.0): 171_700}
TOLERANCE = 0.005


def main() -> int:
    """Measures all cases, prints them as JSON, gives back the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    cases = _range_cases(arguments) + _layer_cases(arguments)
    versions = {
        name: importlib.import_module(name).__version__
        for name in ("numpy", "shapely", "pyarrow")
    }
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        **versions,
    }
    print(
        json.dumps({"bench": "kernels", "machine": machine, "cases": cases}, indent=1)
    )
    return 0 if all(case["exact"] for case in cases) else 1


def _range_cases(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    workloads = _workloads(arguments.shared)
    _, _, x1, y1 = workloads.w1_fixes(arguments.shared / "data", 10)
    rounds, squares = workloads.w3()
    inputs = {
        "W1": (x1, y1, workloads.w1_rects(x1, y1)),
        "W3": (*rounds.reshape(-1, 2).T, squares),
    }
    cases = []
    for (name, count), known in RANGES.items():
        x, y, boxes = inputs[name]
        x, y = np.round(x, 7).copy(), np.round(y, 7).copy()
        index = BoxIndex(boxes[:count])
        case = _measured(
            lambda index=index, x=x, y=y: index.probe(x, y), len(x), arguments.repeat
        )  # type: ignore[misc]
        cases.append(
            {
                "case": f"{name}, {count:,} rectangles",
                **case,
                "known": known,
                "exact": case["pairs"] == known,
            }
        )
    return cases


def _layer_cases(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    x, y = _taxis(arguments.shared / "data")
    index = _index(
        arguments.shared / "data" / "osm-porto" / "porto-centre-2020-07-20.osm.pbf"
    )
    cases = []
    for (kind, distance_m), known in LAYERS.items():

        def match(
            kind: str = kind, distance_m: float | None = distance_m
        ) -> tuple[np.ndarray, np.ndarray]:
            return index.match(x, y, kinds=[kind], distance_m=distance_m)

        case = _measured(match, len(x), arguments.repeat)
        off = abs(case["pairs"] / known - 1)
        name = f"W2, {kind}" + (f" within {distance_m:g} m" if distance_m else "")
        cases.append(
            {
                "case": name,
                **case,
                "known": known,
                "exact": off <= (TOLERANCE if distance_m else 0),
            }
        )
    return cases


def _measured(match: Match, points: int, repeat: int) -> dict[str, Any]:
    """Processor time, not the clock's: other programs on the machine count less."""
    pairs, best = len(match()[0]), float("inf")
    for _ in range(repeat):
        start = time.process_time()
        match()
        best = min(best, time.process_time() - start)
    return {
        "points": points,
        "pairs": pairs,
        "seconds": round(best, 4),
        "points_per_second": round(points / best),
    }


def _workloads(shared: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "workloads", shared / "bench" / "workloads.py"
    )
    if spec is None or spec.loader is None:
        sys.exit(f"no workloads in {shared}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _taxis(data: Path) -> tuple[np.ndarray, np.ndarray]:
    places: list[list[float]] = []
    with (data / "taxi-porto" / "train-1000.csv").open() as source:
        for record in csv.DictReader(source):
            places += json.loads(record["POLYLINE"])
    x, y = np.tile(np.array(places).T, 10)
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def _index(file: Path) -> LayerIndex:
    rows = layer_rows(
        read_features(file, Wanted(load_kinds(ROOT / "conf"))), whole("bench")
    )
    wkb = rows.filter(rows["home"]).sort_by("fid")["geometry"]
    return LayerIndex(rows, lambda _region: wkb)


if __name__ == "__main__":
    sys.exit(main())
