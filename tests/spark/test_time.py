"""A live stream that pauses, on Spark: its owner writes clock rows, and every replay of its log agrees."""

import dataclasses
import time

import pytest

from st_common import tables
from st_common.answers.answers import answer
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.local import LocalEngine
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log
from tests.kit.on_spark import follow_on

pytestmark = pytest.mark.timeout(600)
STATEMENTS = """
REGISTER QUERY box AS SELECT * FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY many AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM cars KNN (2, 0, 0);
"""
COLUMNS = ["position", "seq", "query", "object", "sign", "cause", "event_ts", "value"]


def clocks(log):
    return [segment for segment in log.segments(0) if segment.clock]


@pytest.mark.spec("S1", "X1")
def test_a_live_stream_that_pauses_on_spark_tells_what_time_brings(spark, tmp_path):
    home = Home(tmp_path / "spark")
    stream = StreamSettings(
        name="cars",
        format="csv",
        crs="planar",
        time_unit="us",
        silence_s=30.0,
        shards=2,
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
    )
    log, now_us = bare_log(home.log("cars")), time.time_ns() // 1000
    log.append(
        f"id,t,x,y\na,{now_us - 60_000_000},5,5\n".encode(),
        arrival_us=now_us - 60_000_000,
        live=True,
    )
    register(home, {"cars": stream}, parse(STATEMENTS), owner="me")
    follow_on(spark, home, stream)
    assert len(clocks(log)) >= 1
    assert (
        answer(home, "box")["object"].to_pylist()
        == answer(home, "near")["object"].to_pylist()
        == []
    )
    assert answer(home, "many")["value"].to_pylist() == [0.0]
    # What shards wait for is not known at a start: one row asks.
    follow_on(spark, home, stream)
    once = Home(tmp_path / "local")
    copy = bare_log(once.log("cars"))
    for segment in log.segments(0):
        marks = {
            "control": segment.control,
            "clock": segment.clock,
            "live": segment.live,
        }
        copy.append(log.read(segment), arrival_us=segment.arrival_us, **marks)
    engine = LocalEngine(once, dataclasses.replace(stream, shards=1))
    while engine.batch():
        pass
    engine.close()
    assert "expired" in tables.read(home.table("changes", "cars"))["cause"].to_pylist()
    told = [
        tables.read(of.table("changes", "cars"))
        .select(COLUMNS)
        .sort_by([("position", "ascending"), ("seq", "ascending")])
        .to_pylist()
        for of in (home, once)
    ]
    assert told[0] == told[1]
