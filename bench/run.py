"""All figures, one after the other, each in a process of its own; results as JSON in bench/results.

usage: python bench/run.py [NAME ...]     (names as below; all when none is given)
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = {
    "w1-1000-spark-backlog-3gb": ["throughput", "--queries", "1000", "--copies", "11", "--batch-mb", "128",
                                  "--segment-mb", "8", "--warm", "2"],
    "w1-1000-spark": ["throughput", "--queries", "1000", "--batch-mb", "16"],
    "w1-10000-spark": ["throughput", "--queries", "10000", "--copies", "3", "--batch-mb", "64"],
    "w3-10000-spark": ["throughput", "--workload", "w3", "--queries", "10000", "--copies", "12", "--batch-mb", "32"],
    "w2-buildings-spark": ["throughput", "--workload", "w2", "--copies", "3", "--batch-mb", "64"],
    "w2-buildings-local": ["throughput", "--engine", "local", "--workload", "w2", "--replays", "40", "--batch-mb", "3",
                           "--segment-mb", "1"],
    "w1-1000-local": ["throughput", "--engine", "local", "--queries", "1000", "--replays", "40", "--batch-mb", "3",
                      "--segment-mb", "1"],
    "w1-10000-local": ["throughput", "--engine", "local", "--queries", "10000", "--replays", "40", "--batch-mb", "3",
                       "--segment-mb", "1"],
    "w3-10000-local": ["throughput", "--engine", "local", "--workload", "w3", "--queries", "10000", "--batch-mb", "2",
                       "--segment-mb", "1"],
    **{f"w1-{q}-local": ["throughput", "--engine", "local", "--queries", str(q), "--replays", "40", "--batch-mb", "3",
                         "--segment-mb", "1"] for q in (1, 10, 100)},
    "latency-local": ["latency", "--engine", "local"],
    "latency-spark": ["latency", "--engine", "spark", "--seconds", "30", "--warm-s", "15"],
    "latency-spark-archive": ["latency", "--engine", "spark", "--seconds", "25", "--warm-s", "12", "--archive"],
}  # fmt: skip


def main() -> int:
    """Runs the figures that are named and stores what each prints."""
    results = ROOT / "bench" / "results"
    results.mkdir(exist_ok=True)
    failed = 0
    for name in sys.argv[1:] or list(FIGURES):
        module, *arguments = FIGURES[name]
        done = subprocess.run([sys.executable, "-m", f"bench.{module}", *arguments], cwd=ROOT, capture_output=True,
                              text=True, check=False)  # fmt: skip
        last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "{}"
        if done.returncode or last == "{}":
            failed += 1
            print(f"{name}: failed\n{done.stderr[-2000:]}")
            continue
        result = json.loads(last)
        (results / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(f"{name}: {last}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
