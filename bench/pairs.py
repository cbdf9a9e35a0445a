"""Figures of this checkout beside those of another one, in turn: A B A B ..; what differs is the code, not the hour.

usage: python -m bench.pairs OTHER_CHECKOUT NAME [NAME ...] [--pairs 3]

NAME is a figure of `bench/run.py`. The other checkout has an environment of its own (`make setup` there). On cores
that others use as well single times are worth little: CPU seconds of the whole process are compared, pair by pair.

    figure                      this s   other s  ratio of each pair, median
    ticks-replay                  5.37     12.93  0.42 0.41, 0.42
"""

import argparse
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.run import FIGURES, ROOT


@dataclass(frozen=True, slots=True)
class Pairs:
    """CPU seconds of a figure's runs, in this checkout and in the other one; the n-th of each stand side by side."""

    here_s: list[float]
    there_s: list[float]

    def ratios(self) -> list[float]:
        """This checkout by the other one, for each pair."""
        return [
            here / there for here, there in zip(self.here_s, self.there_s, strict=True)
        ]


def main() -> int:
    """Prints a line for each figure; 1 when a run fails, 2 for a figure that is not known."""
    asked = _arguments()
    if unknown := [name for name in asked.names if name not in FIGURES]:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(FIGURES)}")
        return 2
    print(f"{'figure':24}{'this s':>10}{'other s':>10}  ratio of each pair, median")
    for name in asked.names:
        print(
            f"{name:24}{_shown(_measure(name, asked.other, asked.pairs))}", flush=True
        )
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="figures of two checkouts, in turn")
    parser.add_argument("other", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--pairs", type=int, default=3)
    return parser.parse_args()


def _measure(name: str, other: Path, pairs: int) -> Pairs:
    """Runs a figure in both checkouts, each once before: files are in memory then, and the bytecode is there."""
    for checkout in (ROOT, other):
        _run_s(name, checkout)
    runs = [(_run_s(name, ROOT), _run_s(name, other)) for _ in range(pairs)]
    return Pairs([here for here, _ in runs], [there for _, there in runs])


def _run_s(name: str, checkout: Path) -> float:
    """CPU seconds, of a program and of all that it started."""
    module, *arguments = FIGURES[name]
    python = checkout / ".venv" / "bin" / "python"
    before_s = _children_s()
    command = [str(python), "-m", f"bench.{module}", *arguments]
    done = subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{name} failed in {checkout}: {done.stderr[-2000:]}")
    return _children_s() - before_s


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(pairs: Pairs) -> str:
    ratios = pairs.ratios()
    each = " ".join(f"{ratio:.2f}" for ratio in ratios)
    here_s, there_s = map(statistics.median, (pairs.here_s, pairs.there_s))
    return f"{here_s:10.2f}{there_s:10.2f}  {each}, {statistics.median(ratios):.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
