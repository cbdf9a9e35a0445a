"""From segments of a log to committed changes: fixes per second on either engine, beside the bare kernel's.

usage: python -m bench.throughput --engine spark --workload w1 --queries 1000 [--replays 160] [--batches 20]

The workloads and their exact counts are those of `../shared/bench/workloads.py`; a run whose counts differ fails.
"""

import argparse
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from st_common.capture.log import Log
from st_common.home import Home
from st_common.query.plan import Box, Plan
from st_common.settings import Columns, StreamSettings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
# per replay of W1, and for the whole of W3: inside, enter, exit
W1 = {1000: (4087, 2170, 2150), 10000: (45615, 23621, 23321), 100: (287, 194, 192), 10: (109, 46, 45), 1: (5, 3, 3)}
W3 = {1000: (98858, 23520, 13602), 10000: (999536, 237446, 137215)}


def workload(work: Path, replays: int) -> Path:
    """The workload files, made once."""
    folder = work / f"workloads-{replays}"
    if not (folder / "w3_rects.csv").exists():
        command = [sys.executable, SHARED / "bench" / "workloads.py", folder, "--replays", str(replays)]
        subprocess.run([*map(str, command), "--data", str(SHARED / "data")], check=True)
    return folder


def stream_settings(shards: int) -> StreamSettings:
    """The stream of both workloads."""
    columns = Columns(object="object_id", event_ts="event_ts", x="x", y="y")
    return StreamSettings(name="load", format="csv", columns=columns, crs="EPSG:4326", time_unit="s", max_ahead_s=None,
                          shards=shards)  # fmt: skip


def register_rows(rects: pa.Table) -> bytes:
    """The registrations of rectangles as rows of a control segment."""
    rows = [
        json.dumps({"op": "register", "query": r["query_id"], "version": 1, "text": "", "owner": "bench", "plan": Plan(
            stream="load", inside=Box(minx=r["x1"], miny=r["y1"], maxx=r["x2"], maxy=r["y2"])).to_json()})
        for r in rects.to_pylist()
    ]  # fmt: skip
    return "\n".join(rows).encode()


def fill(log: Log, points: Path, rects: pa.Table, segment_bytes: int) -> int:
    """The registrations as one control segment, then the points in segments; the number of segments."""
    log.append(register_rows(rects), arrival_us=0, control=True)
    with points.open("rb") as source:
        header = source.readline()
        while chunk := source.read(segment_bytes):
            log.append(header + chunk + source.readline(), arrival_us=0)
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


def on_local(home: Home, stream: StreamSettings, max_bytes: int) -> tuple[list[tuple[int, float]], dict[str, int]]:
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


def on_spark(home: Home, stream: StreamSettings, max_bytes: int) -> tuple[list[tuple[int, float]], dict[str, int]]:
    """Per batch: fixes and seconds from the commit before to its own."""
    from st_common.engine.owner import owned
    from st_common.spark import stream as streaming
    from st_common.spark.session import session
    from st_common.spark.shard import read_result

    totals: dict[str, int] = {}
    batches: list[tuple[int, float]] = []
    streaming.SHARD_BYTES = max_bytes // stream.shards

    class Timed(streaming.Sink):
        def __call__(self, batch, batch_id):  # noqa: ANN001, ANN204
            rows = batch.collect()
            fixes = 0
            for row in rows:
                counters = read_result(bytes(row["blob"]))[1]["counters"]
                fixes += counters["fixes"]
                for name, value in counters.items():
                    totals[name] = totals.get(name, 0) + value
            super().__call__(_Collected(rows), batch_id)
            now_s = time.perf_counter()
            batches.append((fixes, now_s - marks[-1]))
            marks.append(now_s)

    marks = [time.perf_counter()]
    with owned(home, stream.name, engine="spark") as owner:
        spark = session("bench", log_file=home.root / "spark.log")
        try:
            streaming.follow(spark, Timed(home=home, stream=stream, owner=owner), until_idle=True)
        finally:
            spark.stop()
    return batches, totals


class _Collected:
    """A batch whose rows are here already."""

    def __init__(self, rows: list) -> None:
        self._rows = rows

    def collect(self) -> list:
        return self._rows


def main() -> None:
    """Runs one figure and prints it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--workload", choices=["w1", "w3"], default="w1")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=160)
    parser.add_argument("--batch-mb", type=int, default=16)
    parser.add_argument("--segment-mb", type=float, default=4)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--warm", type=int, default=3, help="batches that are not counted")
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    args = parser.parse_args()
    files = workload(args.work, args.replays)
    rects = pa.csv.read_csv(files / f"{args.workload}_rects.csv").slice(0, args.queries)
    points = files / f"{args.workload}_points.csv"
    home = Home(args.work / f"home-{time.time_ns()}")
    stream = stream_settings(args.shards)
    segments = fill(Log(home.log("load")), points, rects, int(args.segment_mb * (1 << 20)))
    batches, counters = (on_spark if args.engine == "spark" else on_local)(home, stream, args.batch_mb << 20)
    counted = [fixes / seconds for fixes, seconds in batches[args.warm : -1] if fixes]
    bare = bare_kernel(points, rects)
    found = (counters["stays"] + counters["enters"], counters["enters"], counters["leaves"])
    expected = tuple(n * args.replays for n in W1[args.queries]) if args.workload == "w1" else W3[args.queries]
    median = statistics.median(counted)
    print(json.dumps({
        "what": f"{args.engine} {args.workload} {args.queries} queries", "fixes": counters["fixes"],
        "segments": segments,
        "batches": len(counted), "fixes_per_s_median": round(median), "fixes_per_s_min": round(min(counted)),
        "fixes_per_s_max": round(max(counted)), "bare_kernel_fixes_per_s": round(bare["fixes_per_s"]),
        "bare_to_full": round(bare["fixes_per_s"] / median, 1), "counts": found, "counts_expected": expected,
        "machine": f"{platform.machine()}, {len(__import__('os').sched_getaffinity(0))} cores",
        "versions": {name: importlib.metadata.version(name) for name in ("pyspark", "pyarrow", "numpy", "deltalake")},
    }))  # fmt: skip
    if tuple(found) != tuple(expected):
        raise SystemExit(3)


if __name__ == "__main__":
    main()
