"""What a selection costs beside a region, in both orders: tuples and time (GPAC Fig. 9, SPEC G10).

usage: python -m bench.placing [--queries 100] [--objects 5000] [--rounds 9]

A selection keeps 5 % of the cars; regions hold 2 to 64 % of them. Each pair of a selection and a region runs in both
orders, by one query over many cars, and by many queries with the same selection over fewer. Tuples that `flow` predicts
stand beside those that the engine counted, and three costs are fitted to the times of all runs of a pair:

    a round = what it costs anyway + evaluated * an evaluation + probed * a probe + pairs * a hit

Regions that go with an object always look at selected objects alone, so there is no order to choose for them. It fails
with exit code 3 when a count is not the one that shapely finds in the same cars, or when the two orders tell different
changes.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from scipy.optimize import nnls

from bench.forms import SPREAD_M, cars
from bench.oldenburg import STREAM
from bench.ticks import Work, hash_of, run
from st_common.operators.state.settings import Settings
from st_common.query.order import Flow, flow
from st_common.query.plan import Plan
from st_common.regions.area import Area
from st_common.regions.registry import Box, Circle, Region

SHARES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
ORDERS = ("space_first", "select_first")
_WHERE_SHARE = 0.05
_CORNERS = 24
_WARM = 3
_MANY = 10  # times as many cars where there is one query
_MIDDLE_M = SPREAD_M / 2
CONDITIONS = {"constant": "load < 1", "expression": "load * 3 + 1 < 4"}


def _box(share: float) -> Region:
    """A square in the middle."""
    half_m = SPREAD_M * float(np.sqrt(share)) / 2
    low_m, high_m = _MIDDLE_M - half_m, _MIDDLE_M + half_m
    return Box.of_corners(low_m, low_m, high_m, high_m)


def _circle(share: float) -> Region:
    """A circle around the middle."""
    radius_m = SPREAD_M * float(np.sqrt(share / np.pi))
    return Circle(x=_MIDDLE_M, y=_MIDDLE_M, radius_m=radius_m)


def _area(share: float) -> Region:
    """A regular polygon of many corners around the middle."""
    return Area.of_wkt(_ring(share).wkt)


def _ring(share: float) -> shapely.Polygon:
    turn = 2 * np.pi / _CORNERS
    radius_m = SPREAD_M * np.sqrt(2 * share / (_CORNERS * np.sin(turn)))
    angles = np.arange(_CORNERS) * turn
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return shapely.Polygon(np.round(_MIDDLE_M + radius_m * corners, 3))


REGIONS: dict[str, Callable[[float], Region]] = {
    "box": _box,
    "circle": _circle,
    "area": _area,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One order of one pair of a condition and a region: what was predicted for a round, counted, and what it took."""

    predicted: Flow
    counted: Flow
    cpu_s: float
    told: str


def ran(fixes: list[pa.Table], plan: Plan, queries: int, share: float) -> Ran:
    """Runs so many queries of one plan; counts and times are of a round."""
    work = Work(plans=[plan] * queries, batches=fixes, settings=Settings())
    took, changes, counters = run(work)
    rounds, objects = len(fixes), len(fixes[0])
    pairs = counters.matched / rounds
    above = plan.order == "space_first"
    return Ran(
        predicted=flow(objects, plan.order, _WHERE_SHARE, share, alike=queries),
        counted=Flow(
            evaluated=pairs if above else float(objects),
            probed=counters.probed / rounds,
            pairs=pairs,
            out=(counters.enters + counters.stays) / rounds,
        ),
        cpu_s=statistics.median(one.cpu_s for one in took[-rounds - 1 + _WARM : -1]),
        told=hash_of(changes),
    )


def members(fixes: list[pa.Table], region: str, share: float) -> float:
    """How many cars are members in a round, on average: by shapely, and by the column itself."""
    x, y, load = (
        np.concatenate([one[name].to_numpy() for one in fixes])
        for name in ("x", "y", "load")
    )
    half_m = SPREAD_M * np.sqrt(share) / 2
    far_m = np.maximum(abs(x - _MIDDLE_M), abs(y - _MIDDLE_M))
    radius_m = SPREAD_M * np.sqrt(share / np.pi)
    inside = {
        "box": lambda: far_m <= half_m,
        "circle": lambda: np.hypot(x - _MIDDLE_M, y - _MIDDLE_M) <= radius_m,
        "area": lambda: shapely.intersects_xy(_ring(share), x, y),
    }[region]()
    return float((inside & (load < 1)).sum()) / len(fixes)


def pair(
    fixes: list[pa.Table], condition: str, region: str, queries: int
) -> tuple[list[dict[str, Any]], bool]:
    """Both orders at all shares, and whether every count is right."""
    lines, right = [], True
    for share in SHARES:
        plan = Plan(
            stream=STREAM,
            inside=REGIONS[region](share),
            where=CONDITIONS[condition],
        )
        wanted = members(fixes, region, share) * queries
        told = set()
        for order in ORDERS:
            one = ran(fixes, replace(plan, order=order), queries, share)
            lines.append(_line(share, order, queries, one))
            told.add(one.told)
            right &= one.counted.out == wanted
        right &= len(told) == 1
    return lines, right


def _line(share: float, order: str, queries: int, one: Ran) -> dict[str, Any]:
    """What is predicted and what is counted, side by side."""
    sides = (one.predicted, one.counted)
    counts = {
        name: [round(getattr(side, name)) for side in sides]
        for name in ("evaluated", "probed", "pairs", "out")
    }
    about = {"queries": queries, "share": share, "order": order}
    return {**about, **counts, "cpu_ms": round(one.cpu_s * 1e3, 2)}


def fitted(lines: list[dict[str, Any]]) -> dict[str, float]:
    """Costs by least squares: in nanoseconds of an evaluation, a probe and a hit; never below 0."""
    anyway = [[one["queries"] == 1, one["queries"] > 1] for one in lines]
    counts = [
        [one[name][1] for name in ("evaluated", "probed", "pairs")] for one in lines
    ]
    tuples = np.hstack([np.array(anyway, float), np.array(counts)])
    cpu_ms = np.array([one["cpu_ms"] for one in lines])
    costs, _ = nnls(tuples, cpu_ms)
    off_ms = np.abs(tuples @ costs - cpu_ms)
    names = ("evaluation_ns", "probe_ns", "hit_ns")
    return {
        "anyway_ms": [round(float(one), 2) for one in costs[:2]],
        **{
            name: round(float(c) * 1e6)
            for name, c in zip(names, costs[2:], strict=True)
        },
        "off_by_ms": [
            round(float(np.median(off_ms)), 2),
            round(float(off_ms.max()), 2),
        ],
    }


def main() -> None:
    """Prints a line of JSON with all pairs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--objects", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    sizes = {1: _MANY * args.objects, args.queries: args.objects}
    rounds = {q: list(cars(count, args.rounds)) for q, count in sizes.items()}
    told, all_right = {}, True
    for condition in CONDITIONS:
        for region in REGIONS:
            lines = []
            for queries, fixes in rounds.items():
                more, right = pair(fixes, condition, region, queries)
                lines += more
                all_right &= right
            told[f"{condition}, {region}"] = {**fitted(lines), "runs": lines}
    print(json.dumps({"objects": args.objects, "pairs": told}))
    if not all_right:
        raise SystemExit(3)


if __name__ == "__main__":
    main()
