"""What keeping the state of many objects costs while a hundredth moves each second: bytes, gaps, the next start.

.venv/bin/python -m bench.keeping_state [OBJECTS] [SECONDS]
"""

import sys
import tempfile
import time
from pathlib import Path

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.local import LocalEngine
from st_common.log.log import Log
from st_common.log.record_settings import log_for

_STREAM = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    silence_s=1e6,
    engine="local",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
_AT_ONCE = 100_000


def fixes(numbers: range, second: int, every: int = 1) -> bytes:
    """A CSV with a fix of each of these objects."""
    rows = (f"object-{n * every},{second},{n % 1000},{n // 1000}" for n in numbers)
    return ("id,t,x,y\n" + "\n".join(rows) + "\n").encode()


def stored_bytes(home: Home, seen: dict[str, int]) -> None:
    """Takes note of the sizes of what is stored of the state; what is deleted later counts as well."""
    for path in (home.stream("cars") / "local" / "states").glob("*"):
        if not path.name.startswith("."):
            seen[path.name] = path.stat().st_size


def followed(
    engine: LocalEngine, log: Log, home: Home, *, objects: int, seconds: int
) -> tuple[list[float], int]:
    """The gaps between batches while objects move, and the bytes of state that were written meanwhile."""
    before: dict[str, int] = {}
    stored_bytes(home, before)
    seen, gaps, told_s = dict(before), [], time.monotonic()
    begun_s, moving = told_s, objects // 1000  # ten times a second
    for number in range(seconds * 10):
        log.append(
            fixes(range(number % 1000, 1000 * moving, 1000), 10 + number),
            arrival_us=2 + number,
        )
        while engine.batch():
            now_s = time.monotonic()
            gaps.append(now_s - told_s)
            told_s = now_s
        engine.commit_if_due()
        stored_bytes(home, seen)
        time.sleep(max(0.0, begun_s + number / 10 - time.monotonic()))
    return gaps, sum(size for name, size in seen.items() if name not in before)


def main() -> None:
    """Prints the figures."""
    objects, seconds = (int(text) for text in (*sys.argv[1:], "1000000", "60")[:2])
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        log = log_for(home, _STREAM)
        for start in range(0, objects, _AT_ONCE):
            log.append(
                fixes(range(start, min(objects, start + _AT_ONCE)), 1), arrival_us=1
            )
        engine = LocalEngine(home, _STREAM)
        while engine.batch():
            pass
        engine.close()
        engine = LocalEngine(home, _STREAM)
        cpu_s = time.process_time()
        gaps, written = followed(engine, log, home, objects=objects, seconds=seconds)
        cpu_s = time.process_time() - cpu_s
        gaps.sort()
        engine.close()
        begun_s, begun_cpu_s = time.monotonic(), time.process_time()
        LocalEngine(home, _STREAM).abandon()
        start_s, start_cpu_s = (
            time.monotonic() - begun_s,
            time.process_time() - begun_cpu_s,
        )
    sys.stdout.write(
        f"{objects:,} objects, {seconds} s: {written / 1e6:.1f} MB of state, CPU {cpu_s:.1f} s, gaps p50 "
        f"{gaps[len(gaps) // 2] * 1e3:.0f} ms, p99 {gaps[len(gaps) * 99 // 100] * 1e3:.0f} ms, longest "
        f"{gaps[-1] * 1e3:.0f} ms; start {start_s:.2f} s, CPU {start_cpu_s:.2f} s\n"
    )


if __name__ == "__main__":
    main()
