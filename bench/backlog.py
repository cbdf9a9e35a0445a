"""A backlog of small segments: how long an engine needs for it, how long it is silent meanwhile, how much memory.

.venv/bin/python -m bench.backlog [SEGMENTS]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import archiver, owner
from st_common.engine.run import run
from st_common.log.record_settings import log_for
from st_common.operations.status import StreamStatus, write_status
from st_common.query.registry import register
from st_common.query.text import parse

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
OBJECTS = 1_000
AT_ONCE = 5_000


def write_backlog(home: Home, segments: int) -> None:
    """A log of so many segments of one fix each, behind a query."""
    register(
        home,
        {"cars": CARS},
        parse("REGISTER QUERY q AS SELECT * FROM cars INSIDE (0, 0, 50, 50);"),
        owner="b",
    )
    log = log_for(home, CARS)
    fixes = [
        b"id,t,x,y\no%d,%d,%d,5\n" % (n % OBJECTS, n // OBJECTS, n * 7 % 100)
        for n in range(segments)
    ]
    for at in range(0, segments, AT_ONCE):
        log.append_all(fixes[at : at + AT_ONCE], arrival_us=1)


def main() -> None:
    """Prints seconds, the longest time between two beats, and the peak of memory."""
    segments = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    beats: list[float] = []

    def noted(folder: Path, status: StreamStatus) -> None:
        beats.append(time.monotonic())
        write_status(folder, status)

    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        write_backlog(home, segments)
        owner.write_status = archiver.write_status = noted  # type: ignore[attr-defined]
        begun_s = time.monotonic()
        done = run(home, CARS, until_idle=True)
        ended_s = time.monotonic()
    silent_s = max(
        b - a for a, b in zip([begun_s, *beats], [*beats, ended_s], strict=True)
    )
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{done.segments} segments, {done.changes} changes: {ended_s - begun_s:.1f} s, "
        f"silent for {silent_s:.1f} s at most, peak {peak_mb:.0f} MB\n"
    )


if __name__ == "__main__":
    main()
