"""What an hour of a stream leaves in the table `positions`, open and closed: files, bytes, files that a query reads.

    python -m bench.open_day --rate 2000 --minutes 60

Objects walk at random over a square of as many regions as are asked for; each 30 s of them is a segment, and is
archived as beside an engine. Prints one line of JSON.
"""

import argparse
import json
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.archive import Archive
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from st_common.tables.pruning import keep
from tests.kit.log_writer import bare_log

WAKE_S = 30
SIDE_M = 10_000.0
T0 = datetime(2024, 5, 1, tzinfo=UTC)
STREAM = StreamSettings(
    name="walk",
    format="csv",
    crs="planar",
    time_unit="ms",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)


def main() -> None:
    """Writes the hour, closes it, prints what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=2000, help="fixes a second")
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--regions", type=int, default=64, help="a square number")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        regions = grid(int(arguments.regions**0.5))
        store(home, regions, np.zeros(len(regions.region_id), np.int64), "grid")
        print(json.dumps(measured(home, arguments.rate, arguments.minutes, regions)))


def grid(side: int) -> Regions:
    """Square cells that tile the plane, named by row and column."""
    edges = np.linspace(0, SIDE_M, side + 1)
    edges[0], edges[-1] = -np.inf, np.inf
    cells = [(i, j) for i in range(side) for j in range(side)]
    return Regions(
        group="default",
        version=0,
        region_id=[f"{i:02}{j:02}" for i, j in cells],
        bounds=np.array(
            [(edges[i], edges[j], edges[i + 1], edges[j + 1]) for i, j in cells]
        ),
    )


def measured(
    home: Home, rate: int, minutes: int, regions: Regions
) -> dict[str, object]:
    """What the hour left, before and after the day was closed."""
    most, wake_s = archived(home, rate, minutes * 60 // WAKE_S)
    path, contract = home.table("positions", "walk"), load_contract("positions")
    open_files, open_bytes = tables.stored(path)
    asked = regions.region_id[len(regions.region_id) // 2]
    read_open = files_read(path, asked)
    begun = time.monotonic()
    tables.compact(
        path,
        before=(T0 + timedelta(days=1)).date(),
        zorder=contract.zorder_by,
        cluster=contract.cluster_by,
    )
    compact_s = time.monotonic() - begun
    closed_files, closed_bytes = tables.stored(path)
    return {
        "fixes": rate * minutes * 60,
        "most_files_open": most,
        "files_open": open_files,
        "bytes_open": open_bytes,
        "files_read_open": read_open,
        "longest_wake_s": round(wake_s, 2),
        "files_closed": closed_files,
        "bytes_closed": closed_bytes,
        "files_read_closed": files_read(path, asked),
        "compact_s": round(compact_s, 1),
        "log_bytes": sum(
            file.stat().st_size for file in home.log("walk").rglob("*.seg")
        ),
    }


def archived(home: Home, rate: int, wakes: int) -> tuple[int, float]:
    """Archives the stream wake by wake; gives the most files that there were, and the longest wake in seconds."""
    rng, archive = np.random.default_rng(1), Archive(home, STREAM)
    log, path = bare_log(home.log("walk")), home.table("positions", "walk")
    at = rng.uniform(0, SIDE_M, (rate, 2))
    most, longest_s = 0, 0.0
    for wake in range(wakes):
        log.append(segment(at, wake, rng), arrival_us=0)
        begun = time.monotonic()
        while archive.batch():
            pass
        longest_s = max(longest_s, time.monotonic() - begun)
        most = max(most, tables.stored(path)[0])
    return most, longest_s


def segment(at: np.ndarray, wake: int, rng: np.random.Generator) -> bytes:
    """The fixes of one wake: every object each second, a step further."""
    start_ms = round(T0.timestamp() * 1000) + wake * WAKE_S * 1000
    lines = ["id,t,x,y"]
    for second in range(WAKE_S):
        at += rng.normal(0, 5, at.shape)
        lines += [
            f"o{number},{start_ms + second * 1000 + number % 1000},{x:.2f},{y:.2f}"
            for number, (x, y) in enumerate(at.tolist())
        ]
    return "\n".join(lines).encode()


def files_read(path: Path, region: str) -> int:
    """How many files a query for one region reads, by the statistics in the table's log."""
    actions = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True))
    return len(keep(actions, [("region_id", "=", region)]))


if __name__ == "__main__":
    main()
