"""Queries that know what came before them, on Spark as on the local engine."""

import pytest

from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.engine.backfill import Backfill
from st_common.engine.run import run
from st_common.query.registry import carry_out, register
from st_common.query.text import parse
from tests.kit.grid_days import HOUR_S, segment, settings
from tests.kit.log_writer import bare_log
from tests.kit.on_spark import replayed_on

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("X10")]
BEFORE = [
    (name, hour * HOUR_S + number, hour % 6, number, False)
    for hour in range(8)
    for number, name in enumerate("abcd")
]
AFTER = [(name, t + 8 * HOUR_S, 9 - x, y, gone) for name, t, x, y, gone in BEFORE]
WITH_PAST = """
REGISTER QUERY lately AS SELECT COUNT(*) FROM grid INSIDE (0, 0, 4, 4) WINDOW 6 h FROM BEGINNING;
REGISTER QUERY pairs AS SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 2 m) FROM BEGINNING;
REGISTER QUERY stayed AS SELECT * FROM grid INSIDE (0, 0, 6, 4) DETECT ENTER, EXIT, DWELL 9 h FROM BEGINNING;
REGISTER QUERY way AS SELECT x FROM grid [RANGE BY 9 m RATTR SPACE] FROM '2024-05-01T03:00:00Z';
"""
KEY = ("position", "seq", "sign", "query", "object", "partner", "cause", "value")


def test_each_shard_takes_its_part_of_what_a_query_knew(spark, tmp_path):
    home, stream = Home(tmp_path), settings()
    streams, log = {"grid": stream}, bare_log(home.log("grid"))
    text = "REGISTER QUERY west AS SELECT * FROM grid INSIDE (0, 0, 5, 5)"
    register(home, streams, parse(text), owner="t")
    segment(log, BEFORE)
    run(home, stream, until_idle=True)
    seeding = Backfill(home, streams)
    carry_out(home, streams, parse(WITH_PAST), owner="t", seeding=seeding)
    segment(log, AFTER)
    run(home, stream, until_idle=True)
    wanted = rows(stream_changes(home, "grid"))
    assert {row[3] for row in wanted if row[6] == "backfilled"} == {
        "lately",
        "pairs",
        "stayed",
        "way",
    }
    told = replayed_on(spark, home, stream, tmp_path / "spark", shards=3)
    assert rows(told) == wanted


def rows(changes):
    order = [("position", "ascending"), ("seq", "ascending")]
    sorted_rows = changes.sort_by(order).to_pylist()
    return [tuple(row[name] for name in KEY) for row in sorted_rows]
