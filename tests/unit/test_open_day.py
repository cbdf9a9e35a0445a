"""The open day of a stream that runs: few files, each with its regions lying together, and the rows of the log."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import TIDY_EVERY, Archive
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from tests.kit.log_writer import bare_log

STREAM = StreamSettings(
    name="grid",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
INFINITE = np.inf
QUARTERS = Regions(
    group="default",
    version=0,
    region_id=["00", "01", "10", "11"],
    bounds=np.array(
        [
            [-INFINITE, -INFINITE, 5, 5],
            [-INFINITE, 5, 5, INFINITE],
            [5, -INFINITE, INFINITE, 5],
            [5, 5, INFINITE, INFINITE],
        ]
    ),
)


def wake(
    home: Home, archive: Archive, number: int
) -> list[tuple[str, int, float, float]]:
    """What comes between two wakes of the archive, one object in each region, and the wake."""
    fixes = [
        (f"o{corner}", number, float(x), float(y))
        for corner, (x, y) in enumerate([(9, 9), (1, 1), (9, 1), (1, 9)])
    ]
    lines = [",".join(map(str, fix)) for fix in fixes]
    bare_log(home.log("grid")).append(
        "\n".join(["id,t,x,y", *lines]).encode(), arrival_us=0
    )
    assert archive.batch()
    return fixes


@pytest.mark.spec("C5", "S4")
def test_each_wake_of_the_archive_adds_one_file_and_now_and_then_they_become_one(
    tmp_path,
):
    home = Home(tmp_path)
    store(home, QUARTERS, np.zeros(4, np.int64), "test")
    path, archive = home.table("positions", "grid"), Archive(home, STREAM)
    sent, counts = [], []
    for number in range(2 * TIDY_EVERY + 3):
        sent += wake(home, archive, number)
        counts.append(len(DeltaTable(str(path)).file_uris()))
    assert counts[: TIDY_EVERY - 1] == list(range(1, TIDY_EVERY)), "one file a wake"
    assert max(counts) <= TIDY_EVERY + 1
    assert counts[-1] <= 5
    rows = tables.read(path)
    epoch = rows["event_ts"].cast(pa.int64()).to_numpy() // 1_000_000
    stored = zip(
        rows["object"].to_pylist(),
        epoch.tolist(),
        rows["x"].to_pylist(),
        rows["y"].to_pylist(),
        strict=True,
    )
    assert sorted(stored) == sorted(sent), "the rows of the log, each once"
    assert set(rows["region_version"].to_pylist()) == {1}
    for name in pa.table(DeltaTable(str(path)).get_add_actions())["path"].to_pylist():
        regions = pq.read_table(path / name, partitioning=None)["region_id"].to_pylist()
        assert regions == sorted(regions), "regions lie together"
    assert tables.committed(path, "archive-grid") == 2 * TIDY_EVERY + 2


@pytest.mark.spec("S4")
def test_rows_say_of_which_version_their_region_is(tmp_path):
    home = Home(tmp_path)
    archive = Archive(home, STREAM)
    wake(home, archive, 0)
    store(home, QUARTERS, np.zeros(4, np.int64), "test")
    wake(home, archive, 1)
    rows = tables.read(home.table("positions", "grid")).to_pylist()
    seen = {(row["segment"], row["region_version"], row["region_id"]) for row in rows}
    assert seen == {(0, 0, "0"), *((1, 1, name) for name in QUARTERS.region_id)}
