"""Rounds of a minute with spatial windows: the average speed of every object over its last 50 km, every 10 km (CQL-S).

usage: python -m bench.windows --objects 100000 --rounds 10 --engine local

Objects drive straight on, at 30 to 60 km/h each, a tenth of them park with 3 m of jitter; all report each minute. So
windows are full after a hundred rounds of the slowest; `--warm` rounds go before those that count. The same rounds are
run with one range query (`--ask range`, a quarter of the space) to compare with. Afterwards the values folded from the
table of changes are compared with those found from the arrays alone; a run that differs fails with exit code 3.
"""

import argparse
import json
import shutil
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import oldenburg
from bench.drive import OnLocal, OnSpark
from bench.queries import Asked
from bench.rounds import Run, about, figures
from demo.simulation.traffic import ALL_REPORT
from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.geometry.space import PLANE
from st_common.log.record_settings import log_for
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Aggregate, Plan
from st_common.reference.metric import Metric
from st_common.reference.sliding import in_windows
from st_common.reference.travelled import Ways, speeds, ways_um
from st_common.regions.registry import Box
from tests.kit.road_traffic import DECIMALS

RANGE_M, SLIDE_M, UNIT_S = 50_000.0, 10_000.0, 60.0
PARKED, JITTER_M, SPREAD_M = 0.1, 3.0, 100_000.0
KMH = (30.0, 60.0)
AT_ONCE = 10_000
"""So many objects at once are asked of the reference, which bounds its memory."""


def world(objects: int, units: int) -> oldenburg.World:
    """Straight ways at constant speeds, and jitter where objects park."""
    rng = np.random.default_rng(5)
    speed = rng.uniform(*KMH, objects) / 3.6
    angle = rng.uniform(0, 2 * np.pi, objects)
    parked = np.arange(objects) % round(1 / PARKED) == 0
    reach = np.arange(units + 1)[:, None] * UNIT_S * np.where(parked, 0.0, speed)
    start, jitter = (
        rng.uniform(0, SPREAD_M, (2, objects)),
        rng.normal(0, JITTER_M, (2, units + 1, objects)) * parked,
    )
    x, y = (
        np.round(start[n] + reach * turn(angle) + jitter[n], DECIMALS)
        for n, turn in enumerate((np.cos, np.sin))
    )
    traffic = replace(ALL_REPORT, at_start=objects, units=units, unit_s=UNIT_S)
    return oldenburg.World(
        traffic=traffic, space=PLANE, x=x, y=y, kind=np.zeros(objects, np.int64)
    )


def plan_of(ask: str, min_step_m: float) -> Plan:
    """The query."""
    if ask == "range":
        return Plan(
            stream=oldenburg.STREAM,
            inside=Box(minx=0.0, miny=0.0, maxx=SPREAD_M / 2, maxy=SPREAD_M / 2),
        )
    window = Sliding(
        range=Extent(by="space", amount=RANGE_M),
        slide=Extent(by="space", amount=SLIDE_M),
    )
    frame = Frame(sliding=(window,), min_step_m=min_step_m)
    return Plan(
        stream=oldenburg.STREAM, frame=frame, aggregate=Aggregate(function="avgspd")
    )


def expected(space: oldenburg.World, min_step_m: float) -> dict[str, float | None]:
    """Each object's value after the last round by the reference; its way begins with the report of unit 1."""
    frame = plan_of("windows", min_step_m).frame
    assert frame is not None  # noqa: S101 - for the type: this query has windows
    values: dict[str, float | None] = {}
    for start in range(0, space.x.shape[1], AT_ONCE):
        ways = ways_of(space, range(start, start + AT_ONCE), min_step_m)
        held = in_windows(frame, ways, ways.tick[:0], doubts=False).maybe
        values |= speeds(frame, ways.take(np.flatnonzero(held)))
    return values


def ways_of(space: oldenburg.World, among: range, min_step_m: float) -> Ways:
    """The ways of some objects, as the reference reads them."""
    numbers = np.arange(space.x.shape[1])[among.start : among.stop]
    reports = len(space.x) - 1
    x, y = (np.ravel(one[1:, numbers].T) for one in (space.x, space.y))
    ids = np.repeat(np.array([f"o{number}" for number in numbers], object), reports)
    event_us = np.tile(round(UNIT_S * 1e6) * np.arange(1, reports + 1), len(numbers))
    begins = np.tile(np.arange(reports) == 0, len(numbers))
    metric = Metric(is_flat=True)
    return Ways(
        ids=ids,
        event_us=event_us,
        tick=event_us,
        begins=begins,
        number=np.tile(np.arange(1, reports + 1), len(numbers)),
        way_um=ways_um(ids, x, y, begins, min_step_m=min_step_m, by=metric),
    )


def bare_s(space: oldenburg.World) -> float:
    """Seconds of the arrays alone: all ways, the bounds of each object's window, path over time."""
    started_s = time.perf_counter()
    way = np.cumsum(
        np.hypot(np.diff(space.x[1:], axis=0), np.diff(space.y[1:], axis=0)), axis=0
    )
    high = way[-1] // SLIDE_M * SLIDE_M
    inside = (way >= np.maximum(high - RANGE_M, 0.0)) & (way <= high)
    first, count = inside.argmax(axis=0), inside.sum(axis=0)
    who = np.arange(way.shape[1])
    path = way[first + np.maximum(count, 1) - 1, who] - way[first, who]
    _ = path / np.maximum((count - 1) * UNIT_S, UNIT_S)
    return time.perf_counter() - started_s


def wrong(home: Home, space: oldenburg.World, min_step_m: float) -> dict[str, Any]:
    """How many objects have another value in the folded changes than they should."""
    held: dict[str, float | None] = {}
    for row in (
        stream_changes(home, oldenburg.STREAM)
        .select(["object", "sign", "value"])
        .to_pylist()
    ):
        if row["sign"] > 0:
            held[row["object"]] = row["value"]
        elif row["sign"] < 0:
            held.pop(row["object"], None)
    wanted = expected(space, min_step_m)
    off = [
        name
        for name in held.keys() | wanted.keys()
        if not np.isclose(
            held.get(name) or np.nan,
            wanted.get(name) or np.nan,
            rtol=1e-6,
            equal_nan=True,
        )
        or (name in held) != (name in wanted)
    ]
    # A way that is a rounding error from a multiple of the slide may be on either side of it.
    return {
        "answers": len(wanted),
        "answers_wrong": len(off),
        "exact": len(off) <= len(wanted) // 10_000,
    }


def main() -> None:
    """Runs one figure, prints it as JSON, and fails when a value is wrong."""
    args = arguments()
    space = world(args.objects, args.warm + args.rounds)
    stream = oldenburg.settings(space, shards=args.shards)
    home = Home(args.work / f"home-{time.time_ns()}")
    run = Run(
        space=space,
        asked=asked_by(args),
        home=home,
        log=log_for(home, stream),
        share=1.0,
        parts=args.parts,
    )
    driver = OnSpark(home, stream) if args.engine == "spark" else OnLocal(home, stream)
    run.drive(driver, 0.0)
    peak = about()
    told = {**figures(run, args.warm), **driver.close()}
    counts: dict[str, Any] = {"exact": True}
    if args.ask == "windows":
        counts = wrong(home, space, args.min_step_m)
    bare = statistics.median(bare_s(space) for _ in range(3))
    shown = {
        "what": f"{args.engine}: {args.objects:,} objects, one query ({args.ask}), all report each minute",
        "engine": args.engine,
        "kind": args.ask,
        "objects": args.objects,
        "queries": 1,
        **told,
        **counts,
        "bare_s": round(bare, 3),
        "bare_to_full": round(told["p50_s"] / bare, 1),
        **peak,
    }
    print(json.dumps(shown))
    if not counts["exact"]:
        raise SystemExit(3)
    shutil.rmtree(home.root)


def arguments() -> argparse.Namespace:
    """What is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["spark", "local"], default="local")
    parser.add_argument("--ask", choices=["windows", "range"], default="windows")
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--min-step-m", type=float, default=20.0)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--work", type=Path, default=oldenburg.ROOT / "bench" / "work")
    return parser.parse_args()


def asked_by(args: argparse.Namespace) -> Asked:
    """The one query; its values are checked apart, not its members."""
    plans = [plan_of(args.ask, args.min_step_m)]
    return Asked(what=args.ask, plans=plans, exact=lambda x, _y: (x, x))


if __name__ == "__main__":
    main()
