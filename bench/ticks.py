"""What ticks cost: a replay with 52 queries of all kinds, CQL-S's Q3 a car each, many pairs and joins that move.

usage: python -m bench.ticks --what replay|days|q3|pairs|joins|FORM [--queries 100] [--objects 10000]

The step alone is timed, without log and table. `replay` has the first 1,533 fixes of a thinned day of aircraft and
ticks of a second, `days` 12,000 fixes stretched over ten days and ticks of 10 s; both are one batch. The others have
rounds in which every object reports once; FORM is one of `bench.text_forms.ALL_FORMS`. The rows of changes are counted,
and all of them hashed: the same hash means the same rows.
"""

import argparse
import gzip
import hashlib
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.aircraft_forms import aircraft_plans
from bench.forms import (
    CARS,
    cars,
    joins_plans,
    pairs_plans,
    q3_plans,
    squares_of,
)
from bench.oldenburg import SHARED, STREAM
from bench.text_forms import ALL_FORMS
from st_common.controls.rows import End
from st_common.controls.writing import to_bytes
from st_common.geometry.space import GLOBE
from st_common.layers.index import LayerIndex
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.runtime.stages import step
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.operators.turn.part import Counters
from st_common.query.control import QueryRow, encoded, payloads
from st_common.query.plan import Plan

AIRCRAFT = SHARED / "data" / "adsb-switzerland" / "switzerland.json.gz"
SECOND_US = 1_000_000
DAYS_US = 864_000 * SECOND_US
ROUNDS, WARM = 8, 3
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is run: plans, tables of fixes (a batch each), the settings of the step, and what a layer looks like."""

    plans: list[Plan]
    batches: list[pa.Table]
    settings: Settings
    layer: LayerIndex | None = None


def aircraft(count: int, *, span_us: int | None) -> pa.Table:
    """So many fixes of all aircraft, evenly thinned, in order of time; stretched over a span where one is given."""
    rows = json.loads(gzip.decompress(AIRCRAFT.read_bytes()))
    rows.sort(key=lambda row: (row["timestamp"], row["icao24"]))
    kept = rows[:: len(rows) // count][:count]
    ts = np.array([row["timestamp"] for row in kept], np.int64) * 1000
    if span_us is not None:
        ts = ts[0] + ((ts - ts[0]) * (span_us / max(int(ts[-1] - ts[0]), 1))).astype(
            np.int64
        )
    return pa.table(
        {
            "row": pa.array(range(len(kept)), pa.int32()),
            "object": pa.array([row["icao24"] for row in kept]).dictionary_encode(),
            "event_ts": ts,
            "x": pa.array([row["longitude"] for row in kept]),
            "y": pa.array([row["latitude"] for row in kept]),
            "gone": np.zeros(len(kept), bool),
            "callsign": pa.array([row["callsign"] for row in kept]),
            "altitude": pa.array([row["altitude"] for row in kept], pa.float64()),
            "groundspeed": pa.array([row["groundspeed"] for row in kept], pa.float64()),
        }
    )


def _replay(_queries: int, _objects: int) -> Work:
    fixes = aircraft(1_533, span_us=None)
    settings = Settings(space=GLOBE, silence_us=600 * SECOND_US)
    return Work(
        plans=aircraft_plans(fixes),
        batches=[fixes],
        settings=settings,
        layer=squares_of(degrees=True),
    )


def _days(_queries: int, _objects: int) -> Work:
    fixes = aircraft(12_000, span_us=DAYS_US)
    settings = Settings(
        space=GLOBE, silence_us=3600 * SECOND_US, tick_us=10 * SECOND_US
    )
    return Work(
        plans=aircraft_plans(fixes),
        batches=[fixes],
        settings=settings,
        layer=squares_of(degrees=True),
    )


def _rounds(plans: Callable[[int, int], list[Plan]]) -> Callable[[int, int], Work]:
    """Rounds of cars, three of them before those that count."""
    return lambda queries, objects: Work(
        plans=plans(queries, objects),
        batches=list(cars(objects, ROUNDS)),
        settings=Settings(),
        layer=squares_of(),
    )


WORKS: dict[str, Callable[[int, int], Work]] = {
    "replay": _replay,
    "days": _days,
    "q3": _rounds(q3_plans),
    "pairs": _rounds(pairs_plans),
    "joins": _rounds(joins_plans),
    **{name: _rounds(plans) for name, plans in ALL_FORMS.items()},
}


def packets_of(work: Work) -> Iterator[list[Packet]]:
    """The registrations, then a packet per batch, then the end mark."""
    lines = payloads(map(_registration, range(len(work.plans)), work.plans))
    yield [control_packet(number, line) for number, line in enumerate(lines)]
    for number, fixes in enumerate(work.batches, len(lines)):
        yield pack(number, fixes, rows=len(fixes), rejects=0, shards=1)
    yield [control_packet(len(lines) + len(work.batches), to_bytes(End()))]


def _registration(number: int, plan: Plan) -> bytes:
    layer_version = None if plan.join is None else 1
    return encoded(
        QueryRow(
            name=f"q{number}",
            version=1,
            op="register",
            stream=STREAM,
            position=0,
            arrival_us=0,
            plan=plan,
            text="",
            owner="bench",
            layer_version=layer_version,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a batch took: seconds by the clock and of the processor."""

    wall_s: float
    cpu_s: float


def run(work: Work) -> tuple[list[Took], list[pa.Table], Counters]:
    """What each batch took and told: registrations, batches of fixes, the end; and all counters."""
    state, took, changes, counters = State(), list[Took](), list[pa.Table](), Counters()
    for batch in packets_of(work):
        started_s, busy_s = time.perf_counter(), time.process_time()
        done = step(state, batch, work.settings, lambda *_: work.layer)  # type: ignore[arg-type,return-value]
        if done.failures:  # it would cost nothing from here on
            raise ValueError(f"cannot be judged: {done.failures[0]}")
        changes.append(settled([done.changes]))
        took.append(
            Took(
                wall_s=time.perf_counter() - started_s,
                cpu_s=time.process_time() - busy_s,
            )
        )
        state, counters = done.state, counters + done.counters
    return took, changes, counters


def hash_of(changes: list[pa.Table]) -> str:
    """A digest of all rows of changes, in their order."""
    digest = hashlib.sha256()
    for table in changes:
        digest.update(repr(table.to_pylist()).encode())
    return digest.hexdigest()[:_DIGITS]


def peak_mb() -> int:
    """The largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Runs one figure and prints it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--what", choices=list(WORKS), default="replay")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--objects", type=int, default=CARS)
    args = parser.parse_args()
    work = WORKS[args.what](args.queries, args.objects)
    before_mb = peak_mb()
    took, changes, counters = run(work)
    after_mb, batches = peak_mb(), took[1:-1]
    cpu_s = sum(one.cpu_s for one in batches)
    print(
        json.dumps(
            {
                "what": args.what,
                "engine": "local",
                "queries": len(work.plans),
                "fixes": sum(map(len, work.batches)),
                "registering_s": round(took[0].wall_s, 3),
                "seconds": round(sum(one.wall_s for one in batches), 3),
                "cpu_s": round(cpu_s, 3),
                "ticks": counters.ticks,
                "cpu_ms_per_tick": round(cpu_s / max(counters.ticks, 1) * 1e3, 3),
                "round_p50_s": round(
                    statistics.median(one.wall_s for one in batches[WARM:] or batches),
                    4,
                ),
                "round_cpu_p50_s": round(
                    statistics.median(one.cpu_s for one in batches[WARM:] or batches), 4
                ),
                "touched": counters.touched,
                "changes": sum(map(len, changes)),
                "before_mb": before_mb,
                "more_mb": after_mb - before_mb,
                "hash": hash_of(changes),
            }
        )
    )


if __name__ == "__main__":
    main()
