"""Spark reads what is written without a JVM: appended, replaced, compacted tables, with filters."""

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from st_common import tables
from st_common.contracts import load_contract

STAMP = pa.timestamp("us", tz="UTC")
DAY_US = 86_400_000_000


def changes(start, count):
    """Rows of `changes` over two days."""
    n = np.arange(start, start + count)
    ts = pa.array(1_700_000_000_000_000 + n * (DAY_US // 100)).cast(STAMP)
    return pa.table(
        {
            "position": n,
            "seq": np.zeros(count, np.int32),
            "event_ts": ts,
            "fix_ts": ts,
            "query_version": np.ones(count, np.int32),
            "layer_version": pa.nulls(count, pa.int64()),
            "sign": np.where(n % 2, 1, -1).astype(np.int8),
            "value": pa.nulls(count, pa.float64()),
            "query": ["q"] * count,
            "object": [f"o{i % 7}" for i in n],
            "partner": pa.nulls(count, pa.string()),
            "cause": ["enter" if i % 2 else "leave" for i in n],
        }
    )


@pytest.mark.spec("C7")
def test_spark_and_the_reader_without_a_jvm_see_the_same_rows(spark, tmp_path):
    path, contract = tmp_path / "changes" / "s", load_contract("changes")
    for batch in range(6):
        tables.append(
            path, changes(batch * 40, 40), contract, app="engine", version=batch
        )
    assert tables.compact(path, before=date(2100, 1, 1))["files_after"] < 6 * 2
    frame = spark.read.format("delta").load(str(path))
    assert frame.count() == 240
    assert frame.where("sign = 1 and object = 'o3'").count() == len(
        tables.read(path, filters=[("sign", "=", 1), ("object", "=", "o3")])
    )
    after = datetime(2023, 11, 15, 12, tzinfo=UTC)
    assert frame.where("event_ts >= '2023-11-15 12:00:00'").count() == len(
        tables.read(path, filters=[("event_ts", ">=", after)])
    )
    assert [field.name for field in frame.schema] == contract.arrow_schema().names


@pytest.mark.spec("C7", "B3")
def test_spark_sees_the_open_outer_edges_of_regions(spark, tmp_path):
    path, contract = tmp_path / "regions", load_contract("regions")
    inf = float("inf")
    rows = pa.table(
        {
            "group": ["g"] * 2,
            "version": pa.array([1, 1], pa.int32()),
            "minx": [-inf, 3.0],
            "miny": [-inf, -inf],
            "maxx": [3.0, inf],
            "maxy": [inf, inf],
            "rows": [5, 6],
            "region_id": ["0", "1"],
            "strategy": ["sample"] * 2,
            "std_deviation": [0.5, 0.5],
        }
    )
    tables.append(path, rows, contract)
    frame = spark.read.format("delta").load(str(path))
    assert [r["region_id"] for r in frame.where("maxx > 1000").collect()] == ["1"]
