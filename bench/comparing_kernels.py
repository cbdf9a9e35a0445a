"""How fast boxes of fixes are enlarged and compared on one core: 1,000 queries at once, beside plain ranges.

usage: python bench/comparing_kernels.py [--fixes 100000] [--queries 1000] [--repeat 5]
                                         [--out bench/results/comparing-kernels.json]

Fixes lie at random over 20 x 20 km around Porto, in degrees; the boxes that queries look at have sides of 1.2 km, those
that they compare with lie in their middle and have sides of 400 m. A case is one batch of fixes against all queries, as
the engine matches them; the bare kernel is the index of boxes alone. One JSON object: for each case pairs (answers),
seconds of processor time (median and best of the repeats), and how that compares with the plain range. Answers are
compared with a look at every fix for some of the queries; one that differs ends with exit code 1.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from pyproj import Geod

from st_common.geometry.grid import BoxIndex
from st_common.geometry.space import GLOBE
from st_common.operators.expressions import readings
from st_common.operators.matching.match import match
from st_common.operators.matching.query_set import compile_queries
from st_common.operators.state.fixes import ALIVE, NEVER, LastFixes
from st_common.operators.state.intern import Interner, hashes_of
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Registered
from st_common.operators.state.targets import Targets
from st_common.operators.turn.points import points_of
from st_common.query.comparing import Compare, Transform
from st_common.query.plan import Plan
from st_common.regions.registry import Box

ROOT = Path(__file__).resolve().parents[1]
WEST, SOUTH, EAST, NORTH = -8.73, 41.06, -8.49, 41.24  # about 20 km each way
OUTER, INNER = (
    (0.0072, 0.0054),
    (0.0024, 0.0018),
)  # half of the sides of boxes, in degrees
METRES = 300.0
CHECKED = 10  # queries whose answers are looked for among all fixes
_GEOD = Geod(ellps="WGS84")


def main() -> int:
    """Measures all cases, writes and prints them as JSON, gives back the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fixes", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "bench" / "results" / "comparing-kernels.json",
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(2_026)
    fixes = _fixes(
        random.uniform(WEST, EAST, arguments.fixes),
        random.uniform(SOUTH, NORTH, arguments.fixes),
    )
    centres = np.stack(
        [
            random.uniform(WEST, EAST, arguments.queries),
            random.uniform(SOUTH, NORTH, arguments.queries),
        ]
    )
    cases = [_bare(fixes, centres, arguments.repeat)]
    cases += [
        _matched(name, plans, fixes, arguments.repeat)
        for name, plans in _plans(centres).items()
    ]
    plain = cases[1]["seconds"]
    cases = [{**case, "to_plain": round(case["seconds"] / plain, 2)} for case in cases]
    versions = {
        name: importlib.import_module(name).__version__
        for name in ("numpy", "shapely", "pyarrow")
    }
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        **versions,
    }
    found = {
        "bench": "comparing kernels",
        "fixes": arguments.fixes,
        "queries": arguments.queries,
        "machine": machine,
    }
    text = json.dumps({**found, "cases": cases}, indent=1)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if all(case["exact"] for case in cases) else 1


def _fixes(x: np.ndarray, y: np.ndarray) -> LastFixes:
    count = len(x)
    return LastFixes(
        ts=np.arange(count),
        x=x,
        y=y,
        status=np.full(count, ALIVE, np.int8),
        before_ts=np.full(count, NEVER),
        before_x=np.full(count, np.nan),
        before_y=np.full(count, np.nan),
        earlier_ts=np.full(count, np.iinfo(np.int64).min),
        earlier_x=np.full(count, np.nan),
        earlier_y=np.full(count, np.nan),
    )


def _boxes(centres: np.ndarray, half: tuple[float, float]) -> list[Box]:
    (x, y), (wide, high) = centres, half
    edges = np.stack([x - wide, y - high, x + wide, y + high], axis=1).tolist()
    return [Box(minx=a, miny=b, maxx=c, maxy=d) for a, b, c, d in edges]


def _plans(centres: np.ndarray) -> dict[str, list[Plan]]:
    """The queries of each case."""
    outer, inner = _boxes(centres, OUTER), _boxes(centres, INNER)
    plain = [Plan(stream="s", inside=alpha) for alpha in outer]

    def compared(
        amount: Transform | None, *, negative: bool = False, region: bool = True
    ) -> list[Plan]:
        steps = () if amount is None else (amount,)
        return [
            replace(
                plan,
                inside=plan.inside if region else None,
                transforms=steps,
                compare=Compare(box=tau, negative=negative),
            )
            for plan, tau in zip(plain, inner, strict=True)
        ]

    by_value, by_metres = (
        Transform(kind="value", amount=0.002),
        Transform(kind="metres", amount=METRES),
    )
    where = {
        "type": "Polygon",
        "coordinates": [[[WEST, SOUTH], [EAST, SOUTH], [EAST, NORTH], [WEST, SOUTH]]],
    }
    only = Transform(kind="filter", name="geojson", text=json.dumps(where))
    return {
        "range, plain": plain,
        "range, enlarged by a value, positive": compared(by_value),
        "range, enlarged by metres, positive": compared(by_metres),
        "metres alone, positive": compared(by_metres, region=False),
        "range, negative": compared(None, negative=True),
        "range, enlarged by metres, negative": compared(by_metres, negative=True),
        "range, enlarged by metres, negative, geojson": [
            replace(plan, transforms=(*plan.transforms, only))
            for plan in compared(by_metres, negative=True)
        ],
        "key alone": [
            Plan(stream="s", transforms=(Transform(kind="key", text=f"o{n}"),))
            for n in range(len(plain))
        ],
    }


def _bare(fixes: LastFixes, centres: np.ndarray, repeat: int) -> dict[str, Any]:
    """The index of boxes alone, on the ranges of the plain queries."""
    boxes = np.array([(b.minx, b.miny, b.maxx, b.maxy) for b in _boxes(centres, OUTER)])
    index = BoxIndex(boxes)
    case = _measured(
        "bare kernel: index of boxes", lambda: index.probe(fixes.x, fixes.y), repeat
    )
    return {**case, "exact": True}


def _matched(
    name: str, plans: list[Plan], fixes: LastFixes, repeat: int
) -> dict[str, Any]:
    """One batch through what the engine does with it, and a look at every fix for some queries."""
    names = pa.array([f"o{n}" for n in range(len(fixes))])
    objects = Interner.empty().with_new(hashes_of(names), names)
    queries = [
        Registered(name=f"q{n}", version=1, plan=plan) for n, plan in enumerate(plans)
    ]
    known = compile_queries(queries, range(len(queries)), space=GLOBE)
    batch = readings.of_objects(fixes, np.arange(len(fixes)))

    def matched() -> tuple[np.ndarray, np.ndarray]:
        points = points_of(known, batch, objects, space=GLOBE)
        numbering = Numbering(Interner.empty(), Targets.empty())
        hits = match(known, points, layer_of=_no_layer, numbering=numbering)
        return numbering.targets.query[hits.target], hits.point

    case = _measured(name, matched, repeat)
    query, point = matched()
    some = np.linspace(0, len(plans) - 1, CHECKED).astype(np.int64).tolist()
    exact = all(
        set(point[query == n].tolist()) == _looked_for(plans[n], fixes) for n in some
    )
    return {**case, "exact": exact}


def _no_layer(layer: str, version: int) -> Any:
    raise LookupError(layer, version)


def _looked_for(plan: Plan, fixes: LastFixes) -> set[int]:
    """What a query matches, by looking at every fix; metres are geodesic."""
    x, y = fixes.x, fixes.y
    keep, wide, high = np.ones(len(x), np.bool_), np.zeros(len(x)), np.zeros(len(x))
    if isinstance(alpha := plan.inside, Box):
        keep &= (
            (x >= alpha.minx)
            & (x <= alpha.maxx)
            & (y >= alpha.miny)
            & (y <= alpha.maxy)
        )
    for step in plan.transforms:
        if step.kind == "value":
            wide, high = wide + step.amount, high + step.amount
        elif step.kind == "metres":
            wide = wide + step.amount / (_GEOD.inv(x - 0.005, y, x + 0.005, y)[2] * 100)
            high = high + step.amount / (_GEOD.inv(x, y - 0.005, x, y + 0.005)[2] * 100)
        elif step.kind == "filter":
            keep &= shapely.intersects(
                shapely.from_geojson(step.text), shapely.box(*_around(x, y, wide, high))
            )
        else:
            keep &= np.arange(len(x)) == int(str(step.text)[1:])
    if plan.compare is not None:
        (minx, miny, maxx, maxy), tau = _around(x, y, wide, high), plan.compare.box
        meets = (
            (minx <= tau.maxx)
            & (maxx >= tau.minx)
            & (miny <= tau.maxy)
            & (maxy >= tau.miny)
        )
        keep &= meets != plan.compare.negative
    return set(np.flatnonzero(keep).tolist())


def _around(
    x: np.ndarray, y: np.ndarray, wide: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


def _measured(
    name: str, judge: Callable[[], tuple[np.ndarray, np.ndarray]], repeat: int
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
    return {"case": name, "pairs": pairs, **figures}


if __name__ == "__main__":
    sys.exit(main())
