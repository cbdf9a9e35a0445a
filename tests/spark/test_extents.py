"""Elements with an extent on Spark: what one process tells of them (SPEC B1, B8)."""

from pathlib import Path

import numpy as np
import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.config.streams import stream_of_table
from st_common.engine.run import run
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log
from tests.kit.on_spark import follow_on

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("B1", "B8")]

SIDES = ["lo1", "hi1", "lo2", "hi2", "lo3", "hi3"]
TEXT = """
REGISTER QUERY meets AS SELECT * FROM walks INTERSECTS (20, 20, 60, 60);
REGISTER QUERY lies AS SELECT object FROM walks INSIDE CIRCLE (50, 50, 40);
REGISTER QUERY visits AS SELECT * FROM walks INTERSECTS 'POLYGON ((0 0, 90 20, 30 80, 0 0))' DETECT ENTER, EXIT;
REGISTER QUERY many AS SELECT COUNT(*) FROM walks INTERSECTS (20, 20, 60, 60);
"""
TOLD = ("position", "seq", "query", "object", "sign", "cause", "value", "x", "y")


def settings(element):
    columns = {"shape": "way"} if element == "shapes" else {"box": SIDES}
    table = {
        "format": "csv",
        "delimiter": ";",
        "columns": {"object": "id", "event_ts": "t", **columns},
        "crs": "planar",
        "time_unit": "s",
        "max_ahead_s": "off",
        "shards": 2,
    }
    return stream_of_table("walks", table, Path("streams.toml"))


def record(element, corners):
    if element == "shapes":
        return f"LINESTRING ({', '.join(f'{x} {y}' for x, y in corners)})"
    low, high = corners.min(axis=0), corners.max(axis=0)
    return ";".join(str(side) for axis in (0, 1, 0) for side in (low[axis], high[axis]))


def home_of(root, element):
    """A home with a registered stream whose log has elements of ten objects in ten segments."""
    home, rng = Home(root), np.random.default_rng(7)
    register(home, {"walks": settings(element)}, parse(TEXT), owner="t")
    log = bare_log(home.log("walks"))
    head = "way" if element == "shapes" else ";".join(SIDES)
    for segment in range(10):
        rows = [f"id;t;{head}"]
        for name in range(10):
            corners = rng.integers(0, 80, 2) + rng.integers(0, 30, (3, 2))
            rows.append(f"o{name};{segment * 10 + name};{record(element, corners)}")
        log.append("\n".join(rows).encode(), arrival_us=0)
    return home


def rows_of(changes):
    return sorted(
        zip(*(changes[name].to_pylist() for name in TOLD), strict=True), key=repr
    )


@pytest.mark.parametrize("element", ["shapes", "boxes"])
@pytest.mark.parametrize("shards", [1, 2])
def test_spark_tells_of_extents_what_one_process_tells(
    spark, tmp_path, shards, element
):
    stream, here = settings(element), home_of(tmp_path / "here", element)
    run(here, stream, until_idle=True)
    expected = rows_of(tables.read(here.table("changes", "walks")))
    assert len({(row[2], row[4]) for row in expected}) == 8  # + and - of each query
    there = home_of(tmp_path / "there", element)
    follow_on(spark, there, stream, shards=shards)
    changes = tables.read(there.table("changes", "walks"))
    assert rows_of(changes) == expected
