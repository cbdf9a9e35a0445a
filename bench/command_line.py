"""What one gets by the command line: a backlog by `fairway run --until-idle`, wall clock, with the archive beside it.

usage: python -m bench.command_line [--workload w1|w2|w3|roads] [--queries 1000] [--replays 60] [--engine local]

The home is made before the clock starts; the clock stops when the process has ended, with everything in its tables:
changes, positions, the table `latest`, snapshots. A run whose counts differ from those that are known fails; of roads
none are known, and the number of changes is printed. With TILE38=path the same is done by Tile38, see bench/tile38.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from bench import tile38
from bench.scaling import load_roads
from bench.throughput import (
    ROOT,
    W1,
    W2,
    W3,
    fill,
    load_buildings,
    register_rows,
    stream_settings,
    workload,
)
from st_common import tables
from st_common.config.home import Home
from st_common.log.record_settings import log_for

SETTINGS = """
[streams.load]
format = "csv"
columns = { object = "object_id", event_ts = "event_ts", x = "x", y = "y" }
crs = "EPSG:4326"
time_unit = "s"
max_ahead_s = "off"
"""
SEGMENT_BYTES = 4 << 20


def registered(home: Home, arguments: argparse.Namespace, files: Path) -> bytes:
    """The registrations of a workload, as a control segment."""
    if arguments.workload == "w2":
        return load_buildings(home)
    if arguments.workload == "roads":
        return load_roads(home)
    rects = pa.csv.read_csv(files / f"{arguments.workload}_rects.csv")
    return register_rows(rects.slice(0, arguments.queries))


def expected(arguments: argparse.Namespace) -> int | None:
    """How many changes there are; None: nobody knows."""
    if arguments.workload == "roads":
        return None
    known = {
        "w1": W1.get(arguments.queries),
        "w2": W2,
        "w3": W3.get(arguments.queries),
    }[arguments.workload]
    if known is None:
        return None
    times = 1 if arguments.workload == "w3" else arguments.replays
    return times * (known[1] + known[2])


def run(home: Home, engine: str) -> float:
    """Seconds of the command, from its start to its end."""
    command = [sys.executable, "-m", "st_common.cli", "--home", str(home.root), "run"]
    begun_s = time.perf_counter()
    subprocess.run(
        [*command, "load", "--engine", engine, "--until-idle"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
    )
    return time.perf_counter() - begun_s


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures; fails when the counts are not those that are known."""
    home = Home(arguments.work / f"home-{time.time_ns()}")
    conf = home.root / "conf"
    conf.mkdir(parents=True)
    (conf / "streams.toml").write_text(SETTINGS)
    files = workload(arguments.work, arguments.replays)
    points = files / f"{'w3' if arguments.workload == 'w3' else 'w1'}_points.csv"
    registrations = registered(home, arguments, files)
    log = log_for(home, stream_settings(2))
    fill(log, points, registrations, SEGMENT_BYTES, 1)
    seconds = run(home, arguments.engine)
    fixes = len(tables.read(home.table("positions", "load"), columns=["segment"]))
    changes = len(tables.read(home.table("changes", "load"), columns=["position"]))
    known = expected(arguments)
    if known is not None and changes != known:
        raise SystemExit(f"{changes:,} changes, and {known:,} are known")
    return {
        "what": f"{arguments.engine} {arguments.workload} {arguments.queries}",
        "fixes": fixes,
        "changes": changes,
        "seconds": round(seconds, 2),
        "fixes_per_s": round(fixes / seconds),
    }


def main() -> None:
    """Runs it, and prints what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=("w1", "w2", "w3", "roads"), default="w1")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=60)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments)))
    if "TILE38" in os.environ and arguments.workload in ("w1", "w3"):
        print(json.dumps(by_tile38(arguments, os.environ["TILE38"])))


def by_tile38(arguments: argparse.Namespace, program: str) -> dict[str, object]:
    """The same points against the same rectangles; counts that are not those that are known are told."""
    files = workload(arguments.work, arguments.replays)
    points = pa.csv.read_csv(files / f"{arguments.workload}_points.csv")
    rects = pa.csv.read_csv(files / f"{arguments.workload}_rects.csv")
    with tempfile.TemporaryDirectory() as folder:
        told = tile38.backlog(
            points, rects.slice(0, arguments.queries), program, Path(folder)
        )
    return {**told, "known": expected(arguments)}


if __name__ == "__main__":
    main()
