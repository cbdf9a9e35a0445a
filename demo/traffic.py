"""Lets the demo's vehicles drive on beside the page over its home: from where they stood, until its server ends.

Event times go on behind the newest one of the stream, so nothing is late, and the page's clock is that of the demo.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from prepare import STREAM, find_extract

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.log.appending import append_records, time_of
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.replay.files import wall_clock
from tests.kit.movers import COLUMNS, START, Fleet, Tracks, lines_of, read_roads

_SEED = 1  # of `prepare`: the same vehicles, on the same ways
_SLICES = 5  # of a second at speed 1
_OBJECT = re.compile(rb"^v(\d{5}),", re.MULTILINE)


def main() -> int:
    """Lets them drive until the process that started this one ends, or for as long as was said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument(
        "--speed", type=float, default=1.0, help="how many times as fast as they drive"
    )
    parser.add_argument("--seconds", type=int, default=3600, help="of stream")
    given = parser.parse_args()
    try:
        drive_on(given.home, speed=given.speed, seconds=given.seconds)
    except FileNotFoundError as error:
        print(f"the vehicles stand still: {error}", flush=True)
    except KeyboardInterrupt:
        pass
    return 0


def drive_on(home: Path, *, speed: float, seconds: int) -> None:
    """Writes fixes into the log of the demo's stream, each when it is due, and an end mark behind the last one.

    Args:
        home: the demo's home folder.
        speed: how many times as fast as the vehicles drive.
        seconds: how long they do, of stream.

    Raises:
        FileNotFoundError: the map is not there.
    """
    parent = os.getppid()
    stream = load_streams(home / "conf")[STREAM]
    log = log_for(Home(home), stream)
    first_s = _seconds_done(log, stream)
    roads = read_roads(find_extract().path)
    fleet = Fleet(roads, vehicles=_count(home / "vehicles.csv"), seed=_SEED)
    for _ in range(first_s):
        fleet.go_on()
    print(
        f"{len(fleet.kind):,} vehicles drive on, {speed:g} x as fast as they do",
        flush=True,
    )
    begun_s = time.monotonic()
    for due_s, payload in _slices(fleet, first_s, seconds, speed):
        time.sleep(max(0.0, begun_s + due_s - time.monotonic()))
        if os.getppid() != parent:
            return
        append_records(log, stream, payload, arrival_us=wall_clock(), live=False)
    write_end(log, arrival_us=wall_clock())
    print(
        f"{seconds:,} s are over, and the vehicles stand still: make demo ARGS=page goes on",
        flush=True,
    )


def _seconds_done(log: Log, stream: StreamSettings) -> int:
    """How many seconds of the vehicles' way are in the log."""
    with log.locked():
        high_us = time_of(log, stream).high_us
    if high_us is None:
        return 0
    return (high_us - int(START.astype("datetime64[us]").astype(np.int64))) // 1_000_000 + 1  # fmt: skip


def _count(fixes: Path) -> int:
    """How many vehicles the demo has: their names are numbers, counted from 0."""
    names = _OBJECT.findall(fixes.read_bytes())
    return max(map(int, names), default=-1) + 1


def _slices(
    fleet: Fleet, first_s: int, seconds: int, speed: float
) -> Iterator[tuple[float, bytes]]:
    """Fixes in the order of time, with the header, and how many seconds after the begin they are due."""
    header = ",".join(COLUMNS).encode() + b"\n"
    parts = max(1, round(_SLICES / speed))
    for second in range(seconds):
        x, y = fleet.places()
        one = Tracks(
            x=x[None],
            y=y[None],
            speed_mps=fleet.speed_mps()[None],
            edge=fleet.edge[None],
            phase_ms=fleet.phase_ms,
            kind=fleet.kind,
            share=fleet.share,
        )
        lines = lines_of(one, first_s=first_s + second)
        for part, some in enumerate(np.array_split(lines, parts), 1):
            if len(some):
                due_s = (second + part / parts) / speed
                yield due_s, header + b"\n".join([*some.tolist(), b""])
        fleet.go_on()


if __name__ == "__main__":
    sys.exit(main())
