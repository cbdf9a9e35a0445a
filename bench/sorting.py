"""What a replay that sorts costs beside one that does not: CPU seconds of each, and memory, counts checked.

usage: python -m bench.sorting [--fixes 2000000] [--rounds 3]

The file lists one vehicle after the other, as exports do; the same fixes by time are what both must give.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.log.log import Log
from st_common.replay.files import replay

VEHICLES = 1000
BASE_S = 1_700_000_000
BUSES = StreamSettings(
    name="buses",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="lon", y="lat"),
    time_unit="s",
    engine="local",
)


def write(path: Path, fixes: int) -> None:
    """A file of so many fixes, by vehicle."""
    each = fixes // VEHICLES
    with path.open("w") as file:
        file.write("id,t,lon,lat\n")
        for bus in range(VEHICLES):
            times = BASE_S + np.arange(each) * 5 + bus % 5
            file.write(
                "".join(
                    f"bus{bus},{at},24.{bus % 100:02d}{at % 97:02d},60.{at % 89:02d}\n"
                    for at in times
                )
            )


def measured(path: Path, folder: Path, *, as_they_stand: bool) -> tuple[float, float]:
    """CPU and wall seconds of a replay, whose counts and order are checked."""
    log = Log(folder / f"log{time.monotonic_ns()}")
    begun_s, begun_wall_s = time.process_time(), time.monotonic()
    report = replay(log, path, BUSES, as_they_stand=as_they_stand)
    took = time.process_time() - begun_s, time.monotonic() - begun_wall_s
    times = np.concatenate(
        [
            decode(log.read(one), BUSES, arrival_us=one.arrival_us)
            .fixes["event_ts"]
            .to_numpy()
            for one in log.segments(0)
            if not one.control
        ]
    )
    if len(times) != report.records:
        raise SystemExit(f"{report.records} records, {len(times)} fixes")
    if not as_they_stand and (np.diff(times) < 0).any():
        raise SystemExit("they are not in order")
    return took


def main() -> None:
    """Measures both in turn, and prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixes", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "buses.csv"
        write(path, given.fixes)
        for as_they_stand in (True, False):
            took = [
                measured(path, folder, as_they_stand=as_they_stand)
                for _ in range(given.rounds)
            ]
            cpu_s, wall_s = (
                statistics.median(each) for each in zip(*took, strict=True)
            )
            how = "as they stand" if as_they_stand else "sorted"
            print(f"{how}: {cpu_s:.2f} s of CPU, {wall_s:.2f} s")


if __name__ == "__main__":
    main()
