"""From segments of a log to committed changes: fixes per second on either engine, beside the bare kernel's.

usage: python -m bench.throughput --engine spark --workload w1 --queries 1000 [--replays 160] [--batches 20]

The workloads and their exact counts are those of `../shared/bench/workloads.py`; a run whose counts differ fails.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import shapely

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Register
from st_common.controls.writing import payload_of, to_bytes
from st_common.layers.kinds import load_kinds
from st_common.layers.load import load
from st_common.layers.reading import Wanted, read_features
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.query.plan import Box, LayerJoin, Plan

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
# per replay of W1, and for the whole of W3: inside, enter, exit
W1 = {
    1000: (4087, 2170, 2150),
    10000: (45615, 23621, 23321),
    100: (287, 194, 192),
    10: (109, 46, 45),
    1: (5, 3, 3),
}
W2 = (1510, 1082, 1077)  # per replay: fixes in the 11,404 buildings of central Porto
W3 = {1000: (98858, 23520, 13602), 10000: (999536, 237446, 137215)}


def workload(work: Path, replays: int) -> Path:
    """The workload files, made once."""
    folder = work / f"workloads-{replays}"
    if not (folder / "w3_rects.csv").exists():
        command = [
            sys.executable,
            SHARED / "bench" / "workloads.py",
            folder,
            "--replays",
            str(replays),
        ]
        subprocess.run([*map(str, command), "--data", str(SHARED / "data")], check=True)
    return folder


def stream_settings(shards: int) -> StreamSettings:
    """The stream of both workloads."""
    columns = Columns(object="object_id", event_ts="event_ts", x="x", y="y")
    return StreamSettings(
        name="load",
        format="csv",
        columns=columns,
        crs="EPSG:4326",
        time_unit="s",
        max_ahead_s=None,
        shards=shards,
    )


def register_rows(rects: pa.Table) -> bytes:
    """The registrations of rectangles as rows of a control segment."""
    return payload_of(
        Register(
            query=r["query_id"],
            version=1,
            text="",
            owner="bench",
            plan=Plan(
                stream="load",
                inside=Box(minx=r["x1"], miny=r["y1"], maxx=r["x2"], maxy=r["y2"]),
            ).to_json(),
        )
        for r in rects.to_pylist()
    )


def load_buildings(home: Home) -> bytes:
    """Loads the buildings of central Porto as a layer; the registration of the query that joins them."""
    file = SHARED / "data" / "osm-porto" / "porto-centre-2020-07-20.osm.pbf"
    version = load(
        home, "porto", file, group="default", kinds=["building"], conf=ROOT / "conf"
    ).version
    plan = Plan(
        stream="load",
        join=LayerJoin(layer="porto", predicate="intersects", kinds=("building",)),
    ).to_json()
    return to_bytes(
        Register(
            query="in_building",
            version=1,
            text="",
            owner="bench",
            plan=plan,
            layer_version=version,
        )
    )


def fill(
    log: Log, points: Path, registrations: bytes, segment_bytes: int, copies: int
) -> int:
    """The registrations as one control segment, then the points in segments; the number of segments.

    Each copy of the points has objects of its own.
    """
    log.append(registrations, arrival_us=0, control=True)
    for copy in range(copies):
        with points.open("rb") as source:
            header = source.readline()
            while chunk := source.read(segment_bytes):
                rows = (b"\n" + chunk + source.readline()).replace(
                    b"\n", b"\n%d" % copy
                )
                log.append(header + rows[1:].removesuffix(b"%d" % copy), arrival_us=0)
    return log.end()


def bare_kernel(points: Path, rects: pa.Table) -> dict[str, float]:
    """The same pairs by NumPy alone on one core: sorted by x, a range per rectangle, a comparison of y."""
    table = pa.csv.read_csv(points)
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    started_s, inside = time.perf_counter(), 0
    order = np.argsort(x)
    x, y = x[order], y[order]
    for r in rects.to_pylist():
        a, b = np.searchsorted(x, r["x1"]), np.searchsorted(x, r["x2"], side="right")
        inside += int(np.count_nonzero((y[a:b] >= r["y1"]) & (y[a:b] <= r["y2"])))
    return {"inside": inside, "fixes_per_s": len(x) / (time.perf_counter() - started_s)}


def on_local(
    home: Home, stream: StreamSettings, max_bytes: int
) -> tuple[list[tuple[int, float]], dict[str, int]]:
    """Per batch: fixes and seconds, commit included."""
    from st_common.engine import local

    local.BATCH_BYTES = max_bytes
    engine, batches, before = local.LocalEngine(home, stream), [], 0
    started_s = time.perf_counter()
    while engine.batch():
        engine.commit()
        now_s = time.perf_counter()
        batches.append((engine.totals.counters.fixes - before, now_s - started_s))
        before, started_s = engine.totals.counters.fixes, now_s
    engine.close()
    return batches, vars_of(engine.totals.counters)


def vars_of(counters: object) -> dict[str, int]:
    """Counters as a dict."""
    return {name: getattr(counters, name) for name in counters.__dataclass_fields__}


def on_spark(
    home: Home, stream: StreamSettings, max_bytes: int
) -> tuple[list[tuple[int, float]], dict[str, int]]:
    """Per batch: fixes and seconds, commit included, by tasks that stay."""
    from st_common.engine.owner import owned
    from st_common.spark import resident_engine
    from st_common.spark.resident import engine_on
    from st_common.spark.session import session
    from st_common.spark.task_settings import TaskSettings

    resident_engine.BATCH_BYTES = max_bytes
    batches, before = list[tuple[int, float]](), 0
    with owned(home, stream.name, engine="spark") as owner:
        spark = session("bench", log_file=home.root / "spark.log", extended=False)
        with engine_on(spark, home, TaskSettings.of(home, stream), owner) as engine:
            started_s = time.perf_counter()
            while engine.batch():
                engine.commit_if_due()
                now_s = time.perf_counter()
                fixes = engine.totals.counters.fixes
                batches.append((fixes - before, now_s - started_s))
                before, started_s = fixes, now_s
            engine.close()
        spark.stop()
    return batches, vars_of(engine.totals.counters)


def main() -> None:
    """Runs one figure and prints it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--workload", choices=["w1", "w2", "w3"], default="w1")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=160)
    parser.add_argument(
        "--copies",
        type=int,
        default=1,
        help="the points so many times, each with other objects",
    )
    parser.add_argument("--batch-mb", type=int, default=16)
    parser.add_argument("--segment-mb", type=float, default=4)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument(
        "--warm", type=int, default=3, help="batches that are not counted"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    report(parser.parse_args())


def report(args: argparse.Namespace) -> None:
    """Measures, prints, and fails when the counts are not those that are known."""
    home = Home(args.work / f"home-{time.time_ns()}")
    stream = stream_settings(args.shards)
    asked = _asked(args, home)
    segments = fill(
        log_for(home, stream),
        asked.points,
        asked.registrations,
        int(args.segment_mb * (1 << 20)),
        args.copies,
    )
    run = {"spark": on_spark, "local": on_local}[args.engine]
    batches, counters = run(home, stream, args.batch_mb << 20)
    rates = [fixes / seconds for fixes, seconds in batches[args.warm : -1] if fixes]
    stays, enters, leaves = (counters[name] for name in ("stays", "enters", "leaves"))
    counts = (stays + enters, enters, leaves)
    figures = {
        "what": f"{args.engine} {args.workload} {asked.what}",
        "fixes": counters["fixes"],
        "segments": segments,
        **_rates_shown(rates, asked.bare_fixes_per_s),
        "counts": counts,
        "counts_expected": asked.counts,
        "peak_mb": peak_mb(),
        **_machine(),
    }
    print(json.dumps(figures))
    if counts != asked.counts:
        raise SystemExit(3)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a workload asks: its points and queries, the counts that are known, what the bare kernel makes of it."""

    what: str
    points: Path
    registrations: bytes
    bare_fixes_per_s: float
    counts: tuple[int, ...]


def _asked(args: argparse.Namespace, home: Home) -> _Asked:
    files = workload(args.work, args.replays)
    times = args.copies * (1 if args.workload == "w3" else args.replays)
    if args.workload == "w2":
        points = files / "w1_points.csv"
        what, known = "11,404 buildings", W2
        registrations, bare = load_buildings(home), bare_join(points)
    else:
        points = files / f"{args.workload}_points.csv"
        rects = pa.csv.read_csv(files / f"{args.workload}_rects.csv")
        rects = rects.slice(0, args.queries)
        known = (W3 if args.workload == "w3" else W1)[args.queries]
        what = f"{args.queries} queries"
        registrations, bare = register_rows(rects), bare_kernel(points, rects)
    counts = tuple(n * times for n in known)
    return _Asked(what, points, registrations, bare["fixes_per_s"], counts)


def _rates_shown(rates: list[float], bare_fixes_per_s: float) -> dict[str, Any]:
    median = statistics.median(rates)
    return {
        "batches": len(rates),
        "fixes_per_s_median": round(median),
        "fixes_per_s_min": round(min(rates)),
        "fixes_per_s_max": round(max(rates)),
        "bare_kernel_fixes_per_s": round(bare_fixes_per_s),
        "bare_to_full": round(bare_fixes_per_s / median, 1),
    }


def _machine() -> dict[str, Any]:
    packages = ("pyspark", "pyarrow", "numpy", "deltalake")
    return {
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }


def bare_join(points: Path) -> dict[str, float]:
    """Points in buildings by shapely alone: a tree of points asked with every polygon, then the exact test."""
    table = pa.csv.read_csv(points)
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    conf = load_kinds(ROOT / "conf")
    file = SHARED / "data" / "osm-porto" / "porto-centre-2020-07-20.osm.pbf"
    shapes = read_features(file, Wanted(conf, kinds=["building"])).geometries
    shapely.prepare(shapes)
    started_s = time.perf_counter()
    polygon, point = shapely.STRtree(shapely.points(x, y)).query(shapes)
    inside = int(shapely.intersects_xy(shapes[polygon], x[point], y[point]).sum())
    return {"inside": inside, "fixes_per_s": len(x) / (time.perf_counter() - started_s)}


def peak_mb() -> dict[str, int]:
    """The largest memory of this process, and of any of its children that have ended (workers, the JVM)."""
    return {
        who: resource.getrusage(of).ru_maxrss // 1024
        for who, of in (
            ("driver", resource.RUSAGE_SELF),
            ("largest_child", resource.RUSAGE_CHILDREN),
        )
    }


if __name__ == "__main__":
    main()
