"""Rounds of 5 s: objects on the roads of Oldenburg, moving and stationary queries; from landed segments to commit.

usage: python -m bench.rounds --kind squares --objects 100000 --queries 100000 --share 1 --rounds 20 --engine spark

Speeds: with `--divisor 2500` objects move about a ninth of a square's side in a round, as in the workload W3; with 250
they go 40 km/h where a unit is a metre, further than a side, and most members change in each round.

A round is timed from the moment at which the last of its segments stands in the log to the moment at which the table
of changes holds everything that it changed. Afterwards the changes of every round are counted against those between
the exact answers before and after it, and the changes folded over all rounds against the exact answer at the end
(`bench.expected`, which shares nothing with the engines); a run that differs fails with exit code 3
and leaves its home folder in bench/work.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench import oldenburg
from bench.answers import Rows, folded_keys, signs_by_round
from bench.drive import OnLocal, OnSpark, Timing
from bench.expected import changes_between
from bench.percentiles import percentiles
from bench.queries import KINDS, Asked, ask
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.position import position_of
from st_common.query.control import payloads


@dataclass
class Run:
    """What was landed and what it took."""

    space: oldenburg.World
    asked: Asked
    home: Home
    log: Log
    share: float
    parts: int
    firsts: list[int] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)

    def land(self, unit: int, segments: list[bytes]) -> None:
        """Lays a unit's segments and its clock row into the log."""
        self.log.append_all(segments, arrival_us=time.time_ns() // 1000)
        self.log.append(
            oldenburg.clock_row(self.space, unit),
            arrival_us=time.time_ns() // 1000,
            control=True,
        )

    def register(self) -> None:
        """Lays all registrations into the log."""
        for part in payloads(oldenburg.registrations(self.asked.plans)):
            self.log.append(part, arrival_us=time.time_ns() // 1000, control=True)

    def first(self, driver: OnLocal | OnSpark) -> None:
        """The objects' first places, then the registrations."""
        self.one(driver, 0)
        self.firsts.append(self.log.end())
        self.timings.append(driver.round(self.register))

    def one(self, driver: OnLocal | OnSpark, unit: int) -> None:
        """The round of a unit; its rows were made before it is timed."""
        who = oldenburg.reporters(self.space.x.shape[1], unit, self.share)
        segments = oldenburg.data_segments(self.space, unit, who, parts=self.parts)
        self.firsts.append(self.log.end())
        self.timings.append(driver.round(lambda: self.land(unit, segments)))

    def drive(self, driver: OnLocal | OnSpark, every_s: float) -> None:
        """All rounds."""
        self.first(driver)
        for unit in range(1, len(self.space.x)):
            started_s = time.perf_counter()
            self.one(driver, unit)
            time.sleep(max(0.0, every_s - (time.perf_counter() - started_s)))
        self.firsts.append(self.log.end())


def checked(run: Run) -> dict[str, Any]:
    """The counts of all rounds against the exact ones.

    A key that may be in an answer or not (a distance within a tenth of a metre of the border, by another formula) lets
    a count differ by one.
    """
    rows = Rows(run.home, [position_of(first, 0) for first in run.firsts])
    plus, minus = signs_by_round(rows)
    x, y = oldenburg.seen(run.space, run.share)
    before, open_before, wrong, bare_s = np.empty(0, np.int64), 0, [], []
    expected = []
    for unit in range(len(x)):
        started_s = time.perf_counter()
        after, doubtful = run.asked.exact(x[unit], y[unit])
        bare_s.append(time.perf_counter() - started_s)
        wanted, room = changes_between(before, after), open_before + len(doubtful)
        at = unit + 1  # round 0 has no query yet, round 1 registers
        if max(abs(int(plus[at]) - wanted[0]), abs(int(minus[at]) - wanted[1])) > room:
            wrong.append(
                {
                    "round": unit,
                    "found": [int(plus[at]), int(minus[at])],
                    "expected": list(wanted),
                }
            )
        expected.append(wanted)
        before, open_before = after, len(doubtful)
    found = folded_keys(rows, pairs=run.asked.pairs)
    off = np.setdiff1d(np.setxor1d(found, after), doubtful)
    return {
        "wrong_rounds": wrong,
        "pairs": len(after),
        "folded": len(found),
        "pairs_wrong": len(off),
        "doubtful": len(doubtful),
        "exact": not wrong and not len(off),
        "plus_per_round": int(statistics.median(w[0] for w in expected[1:])),
        "minus_per_round": int(statistics.median(w[1] for w in expected[1:])),
        "bare_s": round(min(bare_s), 3),
    }


def figures(run: Run, warm: int) -> dict[str, Any]:
    """Seconds of the rounds after the warm ones, and medians of their phases and counters."""
    measured = run.timings[
        2 + warm :
    ]  # the first places and the registrations stand before
    seconds = np.array([one.commit_s for one in measured])
    result: dict[str, Any] = {
        "rounds": len(measured),
        **percentiles(seconds, "s"),
        "cpu_p50_s": round(statistics.median(one.cpu_s for one in measured), 3),
        "registering_s": round(run.timings[1].commit_s, 3),
    }
    if measured[0].journal_s is not None:
        result["journal_p50_s"] = round(
            statistics.median(one.journal_s or 0.0 for one in measured), 3
        )
    for what, digits in (("phases", 3), ("worker", 3), ("counters", 0)):
        result[what] = _medians([getattr(one, what) for one in measured], digits)
    return result


def _medians(found: list[dict[str, float]], digits: int) -> dict[str, float]:
    names = dict.fromkeys(name for one in found for name in one)
    values = {
        name: statistics.median(one.get(name, 0) for one in found) for name in names
    }
    return {
        name: round(value, digits) if digits else int(value)
        for name, value in values.items()
    }


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=list(_DRIVERS), default="local")
    parser.add_argument("--kind", choices=list(KINDS), default="squares")
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the objects that report in a round"
    )
    parser.add_argument(
        "--members",
        type=float,
        default=11.0,
        help="of an answer, on average (squares, circles)",
    )
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--distance-m", type=float, default=1000.0)
    parser.add_argument(
        "--cache-share", type=float, help="GPAC's share, see bench.oldenburg"
    )
    parser.add_argument(
        "--divisor",
        type=int,
        default=2500,
        help="of the generator's speeds; 250 is city traffic",
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--warm", type=int, default=3, help="rounds that are not counted"
    )
    parser.add_argument(
        "--every-s", type=float, default=0.0, help="start a round at most so often"
    )
    parser.add_argument("--parts", type=int, default=2, help="segments of a round")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--work", type=Path, default=oldenburg.ROOT / "bench" / "work")
    return parser.parse_args()


def about() -> dict[str, Any]:
    """Machine, versions, the largest memory of this process and of any ended child."""
    peak = {
        who: resource.getrusage(of).ru_maxrss // 1024
        for who, of in (
            ("driver", resource.RUSAGE_SELF),
            ("largest_child", resource.RUSAGE_CHILDREN),
        )
    }
    return {
        "peak_mb": peak,
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("pyspark", "pyarrow", "numpy", "deltalake")
        },
    }


def main() -> None:
    """Runs one figure, prints it as JSON, and fails when a count is wrong."""
    args = arguments()
    run, stream = prepared(args, shards=args.shards)
    driver = _DRIVERS[args.engine](run.home, stream)
    run.drive(driver, args.every_s)
    peak = about()
    told = {**figures(run, args.warm), **driver.close()}
    counts = checked(run)
    bare_to_full = round(told["p50_s"] / max(counts["bare_s"], 1e-9), 1)
    shown = {
        "what": f"{args.engine}: {args.objects:,} objects, {run.asked.what}, {args.share:.0%} moving",
        **{name: getattr(args, name) for name in _ARGUMENTS},
        "queries": len(run.asked.plans),
        "half_side": run.asked.reach,
        **told,
        **counts,
        "bare_to_full": bare_to_full,
        **peak,
    }
    print(json.dumps(shown))
    if not counts["exact"]:
        raise SystemExit(3)
    shutil.rmtree(run.home.root)


_DRIVERS = {"local": OnLocal, "spark": OnSpark}
_ARGUMENTS = (
    "engine",
    "kind",
    "objects",
    "share",
    "k",
    "members",
    "divisor",
    "cache_share",
    "every_s",
)
"""The arguments that a figure shows as they were given."""


def prepared(args: argparse.Namespace, *, shards: int) -> tuple[Run, StreamSettings]:
    """A run of which nothing has landed yet, in a home of its own, and the settings of its stream."""
    space = oldenburg.world(
        args.work,
        objects=args.objects,
        units=args.warm + args.rounds,
        divisor=args.divisor,
    )
    if args.kind == "fences":
        space = oldenburg.on_earth(space)
    asked = ask(
        args.kind,
        space,
        queries=args.queries,
        members=args.members,
        k=args.k,
        distance_m=args.distance_m,
    )
    stream = oldenburg.settings(
        space, shards=shards, cache_share=args.cache_share, share=args.share
    )
    home = Home(args.work / f"home-{time.time_ns()}")
    run = Run(
        space=space,
        asked=asked,
        home=home,
        log=log_for(home, stream),
        share=args.share,
        parts=args.parts,
    )
    return run, stream


if __name__ == "__main__":
    main()
