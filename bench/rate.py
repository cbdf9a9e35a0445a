"""G11's rate: fixes that arrive one by one at exponential intervals; from arrival to committed change, in percentiles.

usage: python -m bench.rate --engine spark --rate 2000 --kind stationary --seconds 40

A writer cuts what arrived into segments every 50 to 200 ms, as capture does, and lays them into the log. Two delays
are told: of a segment, from its arrival in the log to the commit of the batch that holds it, and of a fix, from its
own arrival to the commit of what it changed: for moving queries that is the batch in which its tick became due. At the
end the changes are folded and compared with the exact answer.
"""

import argparse
import json
import shutil
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench import oldenburg
from bench.answers import Rows, folded_keys
from bench.latency import local_commits, spark_commits, step_alone_ms
from bench.queries import Asked, ask
from bench.rounds import about
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.position import position_of
from st_common.query.control import payloads
from tests.kit.road_traffic import COLUMNS, START_MS

OBJECTS = 10_000
PERCENTILES = (50, 95, 99)


def arrivals_s(rate: int, seconds: float) -> np.ndarray:
    """The arrivals of fixes, in seconds from the start: exponential intervals."""
    gaps = np.random.default_rng(5).exponential(
        1 / rate, int(rate * seconds * 1.2) + 100
    )
    at: np.ndarray = np.cumsum(gaps)
    return at[at < seconds]


def who_when(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The object and the unit of each fix: all objects once in random order, then all again a unit later."""
    rng = np.random.default_rng(6)
    cycles = -(-count // OBJECTS)
    objects = np.concatenate([rng.permutation(OBJECTS) for _ in range(cycles)])[:count]
    return objects, np.arange(count) // OBJECTS


def segments_of(
    space: oldenburg.World, at_s: np.ndarray, segment_s: float, seconds: float
) -> list[bytes]:
    """The fixes cut into segments by their arrival, which is also their event time (ms)."""
    objects, unit = who_when(len(at_s))
    x, y = space.x[unit, objects].tolist(), space.y[unit, objects].tolist()
    stamps = (START_MS + np.ceil(at_s * 1000).astype(np.int64)).tolist()
    lines = [
        f"o{o},{t},{a},{b},car,"
        for o, t, a, b in zip(objects.tolist(), stamps, x, y, strict=True)
    ]
    header = ",".join(COLUMNS)
    cuts = np.searchsorted(
        segment_of_fix(at_s, segment_s), np.arange(round(seconds / segment_s) + 1)
    )
    return ["\n".join([header, *lines[a:b], ""]).encode() for a, b in pairwise(cuts)]


def segment_of_fix(at_s: np.ndarray, segment_s: float) -> np.ndarray:
    """The segment that holds a fix, counted from 0."""
    number: np.ndarray = (at_s / segment_s).astype(int)
    return number


def delays(
    at_s: np.ndarray,
    segment_s: float,
    landed: np.ndarray,
    committed: np.ndarray,
    tick_s: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of each segment, and of each fix: from its arrival to the commit of the segment that shows its effect.

    Fixes whose tick is due after the last segment are left out.
    """
    of_segment = committed - landed
    own = segment_of_fix(at_s, segment_s)
    holds = own
    if tick_s is not None:
        stamp_s = np.ceil(at_s * 1000) / 1000
        due = np.ceil(np.round(stamp_s / tick_s, 6)) * tick_s
        first_past = np.searchsorted(stamp_s, due, side="right")
        holds = np.where(
            first_past < len(at_s), holds[np.minimum(first_past, len(at_s) - 1)], -1
        )
    arrived = (
        landed[own] - (own + 1) * segment_s + at_s
    )  # its segment landed when its interval was over
    return of_segment, np.where(holds >= 0, committed[holds] - arrived, np.nan)


def write_paced(
    log: Log, segments: list[bytes], segment_s: float, landed: dict[int, float]
) -> None:
    """One segment after each interval, and at last an end mark; `landed` gets when each stood in the log."""
    start_s = time.monotonic()
    for number, payload in enumerate(segments):
        time.sleep(max(0.0, start_s + number * segment_s - time.monotonic()))
        segment = log.append(payload, arrival_us=time.time_ns() // 1000)
        landed[segment.number] = time.monotonic()
    write_end(log, arrival_us=time.time_ns() // 1000)


def is_exact(
    home: Home, log: Log, space: oldenburg.World, asked: Asked, fixes: int
) -> bool:
    """Whether all changes fold to the exact answer over the last place of each object."""
    objects, unit = who_when(fixes)
    last = np.zeros(OBJECTS, np.int64)
    np.maximum.at(last, objects, unit)
    everybody = np.arange(OBJECTS)
    wanted, _ = asked.exact(space.x[last, everybody], space.y[last, everybody])
    found = folded_keys(Rows(home, [0, position_of(log.end(), 0)]), pairs=False)
    return bool(np.array_equal(found, wanted))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["spark", "local"], default="local")
    parser.add_argument(
        "--kind", choices=["stationary", "squares"], default="stationary"
    )
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--warm-s", type=float, default=15)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--members", type=float, default=11.0)
    parser.add_argument("--segment-s", type=float, default=0.1)
    parser.add_argument("--tick-s", type=float, default=0.2, help="for moving queries")
    parser.add_argument("--work", type=Path, default=oldenburg.ROOT / "bench" / "work")
    return parser.parse_args()


def prepared(
    home: Home, stream: StreamSettings, space: oldenburg.World, asked: Asked
) -> Log:
    """The log with the first places of all objects and all registrations."""
    log = log_for(home, stream)
    first = oldenburg.data_segments(space, 0, np.arange(OBJECTS), parts=1)[0]
    log.append(
        first.replace(str(START_MS).encode(), str(START_MS - 10_000).encode()),
        arrival_us=0,
    )
    for part in payloads(oldenburg.registrations(asked.plans)):
        log.append(part, arrival_us=0, control=True)
    return log


def main() -> None:
    """Runs one figure, prints it as JSON, and fails when the answer is wrong."""
    args = arguments()
    seconds, moving = args.warm_s + args.seconds, args.kind == "squares"
    at_s = arrivals_s(args.rate, seconds)
    space = oldenburg.world(
        args.work, objects=OBJECTS, units=1 + len(at_s) // OBJECTS, divisor=250
    )
    asked = ask(
        args.kind, space, queries=args.queries, members=args.members, k=0, distance_m=0
    )
    stream = replace(oldenburg.settings(space, shards=2), tick_s=args.tick_s)
    home = Home(args.work / f"home-{time.time_ns()}")
    log = prepared(home, stream, space, asked)
    landed, committed = run(
        args.engine,
        home,
        stream,
        log,
        segments_of(space, at_s, args.segment_s, seconds),
        args.segment_s,
    )
    by_segment, by_fix = delays(
        at_s, args.segment_s, landed, committed, args.tick_s if moving else None
    )
    by_segment, by_fix = (
        by_segment[int(args.warm_s / args.segment_s) :],
        by_fix[at_s >= args.warm_s],
    )
    exact = is_exact(home, log, space, asked, len(at_s))
    print(
        json.dumps(
            {
                "what": f"{args.engine}: {args.rate:,} fixes/s at exponential intervals, {asked.what}",
                "engine": args.engine,
                "kind": args.kind,
                "rate": args.rate,
                "queries": args.queries,
                "tick_s": args.tick_s if moving else None,
                "segment_s": args.segment_s,
                "segment": percentiles(by_segment),
                "fix": percentiles(by_fix),
                "segments": len(by_segment),
                "fixes": len(by_fix),
                "mean_fix_ms": round(float(np.nanmean(by_fix)) * 1000, 1),
                "exact": exact,
                "step_alone_ms": round(step_alone_ms(log, stream), 2),
                **about(),
            }
        )
    )
    if not exact:
        raise SystemExit(3)
    shutil.rmtree(home.root)


def run(
    engine: str,
    home: Home,
    stream: StreamSettings,
    log: Log,
    segments: list[bytes],
    segment_s: float,
) -> tuple[np.ndarray, np.ndarray]:
    """When each segment stood in the log, and when what it changed was committed; seconds of one clock."""
    landed: dict[int, float] = {}
    commits: dict[int, float] = {}
    ready, first = threading.Event(), log.end()
    numbers = range(first, first + len(segments))
    writer = threading.Thread(
        target=lambda: (ready.wait(), write_paced(log, segments, segment_s, landed))
    )
    writer.start()
    if engine == "local":
        ready.set()
        local_commits(home, stream, numbers.stop + 1, commits)
    else:
        spark_commits(home, stream, numbers.stop + 1, commits, ready)
    writer.join()
    return np.array([landed[n] for n in numbers]), np.array(
        [commits[n] for n in numbers]
    )


def percentiles(delays_s: np.ndarray) -> dict[str, float]:
    """In milliseconds."""
    return {
        f"p{p}_ms": round(float(np.nanpercentile(delays_s, p)) * 1000, 1)
        for p in PERCENTILES
    }


if __name__ == "__main__":
    main()
