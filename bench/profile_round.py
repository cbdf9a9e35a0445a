"""Where a round's time goes on the local engine: the main thread's stack, looked at every millisecond or so.

usage: python -m bench.profile_round --kind squares [options as for bench.rounds]

Each look counts the time since the one before for the innermost function of the product that is on the stack; what
NumPy, Arrow and delta-rs do counts for whoever called them. Looks are rarer while a call holds the interpreter, so a
single look weighs as much as it stands for.
"""

import json
import sys
import threading
import time
from collections import Counter
from types import FrameType
from typing import Self

from bench import oldenburg
from bench.drive import OnLocal
from bench.rounds import about, arguments, figures, prepared

EVERY_S = 0.001
TOP = 25
PACKAGE = str(oldenburg.ROOT / "st_common") + "/"
AREAS = (
    ("decode", ("decode/",)),
    ("reading the log", ("log/", "replay/")),
    (
        "kernels",
        ("geometry/", "operators/skeleton/kinds/", "operators/skeleton/world.py"),
    ),
    (
        "state",
        (
            "operators/state/state.py",
            "operators/state/delta.py",
            "operators/state/intern.py",
            "operators/state/codec.py",
            "engine/base.py",
        ),
    ),
    ("changes and their order", ("operators/turn/changes.py",)),
    ("journal", ("engine/journal.py",)),
    ("table", ("tables/", "contracts/")),
    ("skeleton and the rest", ("",)),
)


class Sampler:
    """Looks at one thread until it is stopped; `seconds` by (file, function) of the product."""

    def __init__(self, thread_id: int) -> None:
        self.seconds: Counter[tuple[str, str]] = Counter()
        self._thread_id, self._stop = thread_id, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        before_s = time.perf_counter()
        while not self._stop.wait(EVERY_S):
            where = _innermost(sys._current_frames().get(self._thread_id))  # noqa: SLF001 - the only way to see a stack
            now_s = time.perf_counter()
            if where is not None:
                self.seconds[where] += now_s - before_s
            before_s = now_s


def _innermost(frame: FrameType | None) -> tuple[str, str] | None:
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            return frame.f_code.co_filename.removeprefix(
                PACKAGE
            ), frame.f_code.co_qualname
        frame = frame.f_back
    return None


def shares(
    seconds: Counter[tuple[str, str]], rounds: int
) -> dict[str, dict[str, float]]:
    """Seconds a round, by area and by function."""
    areas: Counter[str] = Counter()
    for (file, _), spent_s in seconds.items():
        areas[next(area for area, starts in AREAS if file.startswith(starts))] += (
            spent_s
        )
    functions = {
        f"{file}:{name}": spent_s for (file, name), spent_s in seconds.most_common(TOP)
    }
    return {
        what: {name: round(spent_s / rounds, 4) for name, spent_s in of}
        for what, of in (
            ("areas", areas.most_common()),
            ("functions", functions.items()),
        )
    }


def main() -> None:
    """Profiles the rounds after the warm ones and prints the seconds as JSON."""
    args = arguments()
    run, stream = prepared(args, shards=1)
    samplers: list[Sampler] = []

    def watch() -> Sampler:
        samplers.append(Sampler(threading.get_ident()))
        return samplers[-1]

    driver = OnLocal(run.home, stream, watch=watch)
    run.drive(driver, 0.0)
    driver.close()
    total = sum(
        (sampler.seconds for sampler in samplers[2 + args.warm :]),
        Counter[tuple[str, str]](),
    )
    told = figures(run, args.warm)
    shown = {
        "what": f"local: where a round goes, {args.objects:,} objects, {run.asked.what}, {args.share:.0%} moving",
        "engine": "local",
        "kind": args.kind,
        **told,
        **shares(total, told["rounds"]),
        **about(),
    }
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
