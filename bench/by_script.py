"""W1 by `fairway run --until-idle`, and as a data scientist does it: a script of pandas and a shapely tree, on a file.

usage: python -m bench.by_script [--queries 1000] [--replays 60] [--pairs 3]

The script gets as a file what the command gets as a log, and counts who enters and leaves which rectangle. It keeps
no state and writes no table. A count that is not the known one fails. The two take turns, each in a process of its own,
and the wall clock goes from its start to its end.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.command_line import measure
from bench.throughput import ROOT, W1, workload

SCRIPT = """
import sys, numpy, pandas, shapely
points = pandas.read_csv(sys.argv[1])
rects = pandas.read_csv(sys.argv[2]).head(int(sys.argv[3]))
points = points.sort_values(["object_id", "event_ts"], kind="stable", ignore_index=True)
tree = shapely.STRtree(shapely.box(rects.x1, rects.y1, rects.x2, rects.y2))
fix, rect = tree.query(shapely.points(points.x, points.y), predicate="intersects")
named = points.object_id.factorize()[0]
inside = pandas.DataFrame({"object": named[fix], "rect": rect, "fix": fix}).sort_values(["object", "rect", "fix"])
goes_on = (inside.diff().iloc[1:] == [0, 0, 1]).all(axis=1).to_numpy()
last = numpy.append(named[1:] != named[:-1], True)
still_in = last[inside.fix.to_numpy()].sum()
stays = len(inside) - goes_on.sum()
print(stays + stays - still_in)
"""


def by_script(files: Path, arguments: argparse.Namespace) -> float:
    """Seconds of the script, from its start to its end; fails when it counts other changes than are known."""
    words = [files / "w1_points.csv", files / "w1_rects.csv", arguments.queries]
    begun_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, words)],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - begun_s
    known = W1[arguments.queries]
    if int(done.stdout) != arguments.replays * (known[1] + known[2]):
        raise SystemExit(f"a script counts {done.stdout.strip()} changes")
    return seconds


def main() -> None:
    """Runs both in turn, and prints the fixes a second of each run, and the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    arguments = parser.parse_args()
    arguments.workload = "w1"
    files = workload(arguments.work, arguments.replays)
    rates: dict[str, list[int]] = {"fairway": [], "script": []}
    for _ in range(arguments.pairs):
        told = measure(arguments)
        rates["fairway"].append(int(told["fixes_per_s"]))
        rates["script"].append(round(int(told["fixes"]) / by_script(files, arguments)))
    medians = {name: statistics.median(some) for name, some in rates.items()}
    print(json.dumps({"fixes_per_s": rates, "median": medians}))


if __name__ == "__main__":
    main()
