"""Figures of this checkout beside those of another one, in turn: A B A B ..; what differs is the code, not the hour.

usage: python -m bench.pairs OTHER_CHECKOUT NAME [NAME ...] [--pairs 3]

NAME is a figure of `bench/run.py`. The other checkout has an environment of its own (`make setup` there). On cores
that others use as well single times are worth little: CPU seconds of the whole process are compared, pair by pair, and
below them what the figure says of itself, which leaves its start out. A ratio below one is better.

    figure                      this s   other s  ratio of each pair, median
    ticks-replay                  5.37     12.93  0.42 0.41, 0.42
      cpu_s                       4.21     11.90  0.35 0.36, 0.35
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.run import FIGURES, ROOT

# What a figure says of its own cost, the first of these that it has: less is better.
OWN = ("cpu_s", "cpu_p50_s", "step_alone_ms", "bare_to_full")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a figure: CPU seconds of all its processes, and its own words, `None` where it has none of `OWN`."""

    cpu_s: float
    own: tuple[str, float] | None


@dataclass(frozen=True, slots=True)
class Pairs:
    """What a measure gave in this checkout and in the other one; the n-th of each stand side by side."""

    here: list[float]
    there: list[float]

    def ratios(self) -> list[float]:
        """This checkout by the other one, for each pair."""
        return [here / there for here, there in zip(self.here, self.there, strict=True)]


def main() -> int:
    """Prints a line or two for each figure; 1 when a run fails, 2 for a figure that is not known."""
    asked = _arguments()
    if unknown := [name for name in asked.names if name not in FIGURES]:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(FIGURES)}")
        return 2
    print(f"{'figure':24}{'this s':>10}{'other s':>10}  ratio of each pair, median")
    for name in asked.names:
        for measure, pairs in _measure(name, asked.other, asked.pairs).items():
            print(f"{measure:24}{_shown(pairs)}", flush=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="figures of two checkouts, in turn")
    parser.add_argument("other", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--pairs", type=int, default=3)
    return parser.parse_args()


def _measure(name: str, other: Path, pairs: int) -> dict[str, Pairs]:
    """Runs a figure in both checkouts, each once before: files are in memory then, and the bytecode is there."""
    for checkout in (ROOT, other):
        _run(name, checkout)
    runs = [(_run(name, ROOT), _run(name, other)) for _ in range(pairs)]
    here, there = zip(*runs, strict=True)
    measured = {name: Pairs([run.cpu_s for run in here], [run.cpu_s for run in there])}
    owns = [[run.own[1] for run in side if run.own] for side in (here, there)]
    if here[0].own and all(map(len, owns)):
        measured[f"  {here[0].own[0]}"] = Pairs(*owns)
    return measured


def _run(name: str, checkout: Path) -> Run:
    """CPU seconds, of a program and of all that it started, and what it printed last."""
    module, *arguments = FIGURES[name]
    python = checkout / ".venv" / "bin" / "python"
    before_s = _children_s()
    command = [str(python), "-m", f"bench.{module}", *arguments]
    done = subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{name} failed in {checkout}: {done.stderr[-2000:]}")
    return Run(_children_s() - before_s, _own(done.stdout))


def _own(said: str) -> tuple[str, float] | None:
    """The first of `OWN` in the JSON that a figure prints in its last line."""
    last = said.strip().splitlines()[-1:]
    told = json.loads(last[0]) if last and last[0].startswith("{") else {}
    return next(((key, float(told[key])) for key in OWN if told.get(key)), None)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(pairs: Pairs) -> str:
    ratios = pairs.ratios()
    each = " ".join(f"{ratio:.2f}" for ratio in ratios)
    here, there = map(statistics.median, (pairs.here, pairs.there))
    return f"{here:10.2f}{there:10.2f}  {each}, {statistics.median(ratios):.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
