"""Arrival in the log to committed change, fixes arriving steadily: percentiles per engine.

usage: python -m bench.latency --engine spark --rate 2000 --seconds 60 [--queries 1000] [--archive]

A paced writer lays segments of 200 ms into the log with their arrival stamps. A change counts as committed when the
journal has it, and its cause is durable. The figure of a segment is the time from its arrival to the commit of the
batch that holds it; one that was not committed fails the run. The bare figure beside it is the step alone on one such
segment.
"""

import argparse
import json
import statistics
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.csv

from bench.percentiles import latencies
from bench.throughput import ROOT, register_rows, stream_settings, workload
from st_common.config.home import Home
from st_common.engine.archive import Archive
from st_common.engine.archive_queue import ArchiveQueue
from st_common.engine.archiver import archiving
from st_common.engine.owner import owned
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State

SEGMENT_S = 0.2


def payloads(points: Path, rate: int, seconds: float) -> list[bytes]:
    """Segments of 200 ms each; event times rise with the arrival so that every fix is used."""
    table = pyarrow.csv.read_csv(points).slice(0, int(rate * seconds))
    per_segment = max(1, int(rate * SEGMENT_S))
    times = (np.arange(len(table)) * 1000 // rate).tolist()
    names, xs, ys = (table[name].to_pylist() for name in ("object_id", "x", "y"))
    lines = [
        f"{n},{t},{x},{y}" for n, t, x, y in zip(names, times, xs, ys, strict=True)
    ]
    header = "object_id,event_ts,x,y\n"
    return [
        (header + "\n".join(lines[a : a + per_segment]) + "\n").encode()
        for a in range(0, len(lines), per_segment)
    ]


def write_paced(log: Log, segments: list[bytes], arrivals: dict[int, float]) -> None:
    """One segment every 200 ms; `arrivals` gets the time at which each stood in the log."""
    start_s = time.monotonic()
    for number, payload in enumerate(segments):
        time.sleep(max(0.0, start_s + number * SEGMENT_S - time.monotonic()))
        segment = log.append(payload, arrival_us=time.time_ns() // 1000)
        arrivals[segment.number] = time.monotonic()


def local_commits(
    home: Home,
    stream,  # noqa: ANN001
    total: int,
    commits: dict[int, float],
    sink: ArchiveQueue | None = None,
) -> None:
    """Runs the local engine until it has seen `total` segments."""
    from st_common.engine.local import LocalEngine

    engine = LocalEngine(home, stream, sink=sink)
    while engine.state.next_segment < total:
        before = engine.state.next_segment
        if not engine.batch():
            time.sleep(0.005)
        now_s = time.monotonic()
        commits |= dict.fromkeys(range(before, engine.state.next_segment), now_s)
        engine.commit_if_due()
    engine.close()


def spark_commits(
    home: Home,
    stream,  # noqa: ANN001
    total: int,
    commits: dict[int, float],
    ready: threading.Event,
    sink: ArchiveQueue | None = None,
) -> None:
    """Runs tasks that stay until they have told `total` segments; a change counts when the journal holds it."""
    from st_common.spark.resident import engine_on
    from st_common.spark.session import session
    from st_common.spark.task_settings import TaskSettings

    with owned(home, stream.name, engine="spark") as owner:
        spark = session("bench", log_file=home.root / "spark.log", extended=False)
        feed = TaskSettings.of(home, stream)
        with engine_on(spark, home, feed, owner, sink=sink) as engine:
            while engine.next_segment < total:
                before = engine.next_segment
                if not engine.batch():
                    time.sleep(0.005)
                now_s = time.monotonic()
                commits |= dict.fromkeys(range(before, engine.next_segment), now_s)
                engine.commit_if_due()
                ready.set()
            engine.close()
        spark.stop()


def step_alone_ms(log: Log, stream) -> float:  # noqa: ANN001
    """The median of the pure step on one segment of the log, in milliseconds."""
    from st_common.engine.packets import packets, step_settings

    segments = log.segments(0)
    state, took = State(), []
    for segment in segments[:120]:
        read = packets(log, segment, stream, shards=1)[:1]
        started_s = time.perf_counter()
        state = step(state, read, step_settings(stream), lambda *_: None).state
        took.append((time.perf_counter() - started_s) * 1000)
    return statistics.median(took)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm-s", type=float, default=20)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument(
        "--archive", action="store_true", help="with the archive job, every 20 s"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    return parser.parse_args()


def main() -> None:
    """Runs one figure and prints it as JSON."""
    args = arguments()
    files, home = workload(args.work, 10), Home(args.work / f"home-{time.time_ns()}")
    stream = stream_settings(2)
    log = log_for(home, stream)
    rects = pyarrow.csv.read_csv(files / "w1_rects.csv").slice(0, args.queries)
    log.append(register_rows(rects), arrival_us=0, control=True)
    segments = payloads(files / "w1_points.csv", args.rate, args.warm_s + args.seconds)
    arrivals: dict[int, float] = {}
    commits: dict[int, float] = {}
    ready = threading.Event()
    writer = threading.Thread(
        target=lambda: (ready.wait(), write_paced(log, segments, arrivals))
    )
    writer.start()
    if args.engine == "local":
        ready.set()
    sink = ArchiveQueue()
    archive = Archive(home, stream, sink)
    with archiving(archive, every_s=20 if args.archive else 1e9):
        if args.engine == "local":
            local_commits(home, stream, len(segments) + 1, commits, sink)
        else:
            spark_commits(home, stream, len(segments) + 1, commits, ready, sink)
    writer.join()
    told = {number: at for number, at in commits.items() if number > 0}  # 0 registers
    asked = f"{args.queries} queries{', archive' if args.archive else ''}"
    print(
        json.dumps(
            {
                "what": f"{args.engine} latency at {args.rate}/s, {asked}",
                **latencies(arrivals, told, warm_s=args.warm_s),
                "step_alone_ms": round(step_alone_ms(log, stream), 2),
            }
        )
    )


if __name__ == "__main__":
    main()
