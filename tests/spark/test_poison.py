"""One query that cannot be judged never stops a stream on Spark either: the log says so, and every shard agrees."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.query.lookup import queries
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log
from tests.kit.on_spark import follow_on
from tests.kit.user_filters import DECLARED

pytestmark = pytest.mark.timeout(900)
FIXES = StreamSettings(
    name="fixes",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    shards=2,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    attributes={"state": "string"},
)
TEXT = """
REGISTER QUERY good AS SELECT * FROM fixes INSIDE (0, 0, 10, 10);
REGISTER QUERY cast_fails AS SELECT * FROM fixes WHERE CAST(object AS INT) IN (1, 2);
REGISTER QUERY bad AS SELECT * FROM fixes WHERE state = 'free';
"""


def told(home):
    rows = tables.read(home.table("changes", "fixes")).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )
    return [
        (r["position"], r["query"], r["object"], r["sign"], r["cause"])
        for r in rows.to_pylist()
    ]


@pytest.mark.spec("S3")
def test_a_query_that_cannot_be_judged_fails_alone_and_the_local_engine_tells_the_same_of_all_others(
    spark, tmp_path
):
    home = Home(tmp_path)
    register(home, {"fixes": FIXES}, parse(TEXT), owner="me")
    log = bare_log(home.log("fixes"))
    log.append(
        b"id,t,x,y,state\n1,1,5,5,free\n2,1,5,5,free\n3,1,5,5,busy\n",
        arrival_us=1_000_000,
    )
    follow_on(spark, home, FIXES)
    log.append(b"id,t,x,y\nabc,2,5,5\n", arrival_us=2_000_000)
    follow_on(spark, home, replace(FIXES, attributes={}))
    found = told(home)
    assert [row[1:] for row in found if row[4] == "failed"] == [
        ("bad", "1", -1, "failed"),
        ("bad", "2", -1, "failed"),
    ]
    assert {row[2] for row in found if row[1] == "good"} == {"1", "2", "3", "abc"}
    assert {row[2] for row in found if row[1] == "cast_fails"} == {"1", "2"}
    assert {row.name: row.state for row in queries(home)} == {
        "bad": "failed",
        "cast_fails": "registered",
        "good": "registered",
    }
    again = Home(tmp_path / "again")
    local = replace(FIXES, engine="local", shards=1, attributes={})
    for segment in log.segments(0):
        bare_log(again.log("fixes")).append(
            log.read(segment), arrival_us=segment.arrival_us, control=segment.control
        )
    run(again, local, until_idle=True)
    others = [
        row for row in told(again) if row[1] != "bad"
    ]  # which cannot be judged there from the first fix on
    assert others == [row for row in found if row[1] != "bad"]


FILTERED = """
REGISTER QUERY good AS SELECT * FROM fixes INSIDE (0, 0, 10, 10) USING thirds('2'), loaded('1');
REGISTER QUERY bad AS SELECT * FROM fixes USING picky('b');
REGISTER QUERY joined AS SELECT * FROM fixes f JOIN parks p ON ST_Intersects(f, p) USING thirds('0'), loaded('50');
"""
PARK = """{"type": "FeatureCollection", "features": [{"type": "Feature", "id": "p", "properties": {"kind": "park"},
"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}}]}"""


@pytest.mark.spec("B11", "S3")
def test_filters_of_users_run_in_tasks_and_one_that_raises_stops_its_query_alone(
    spark, tmp_path
):
    stream = replace(FIXES, attributes={"load": "double"}, filters=DECLARED)
    seen = {}
    for engine in ("spark", "local"):
        home = Home(tmp_path / engine)
        home.root.mkdir()
        (home.root / "parks.geojson").write_text(PARK)
        words = ("--home", str(home.root), "layer", "load", "parks")
        words += (str(home.root / "parks.geojson"), "--crs", "planar")
        assert CliRunner().invoke(app, words).exit_code == 0
        register(home, {"fixes": stream}, parse(FILTERED), owner="me")
        log = bare_log(home.log("fixes"))
        log.append(
            b"id,t,x,y,load\na,1,1,5,0\nb,1,3,5,3\nc,1,5,5,3\nd,1,6,5,0\n",
            arrival_us=1_000_000,
        )
        if engine == "spark":
            follow_on(spark, home, stream)
        else:
            run(home, replace(stream, shards=1), until_idle=True)
        seen[engine] = {row[1:] for row in told(home)}
        assert {one.name: one.state for one in queries(home)}["bad"] == "failed"
    assert seen["spark"] == seen["local"]
    assert {row[1] for row in seen["spark"] if row[0] == "good"} == {"a", "b"}
    assert {row[1] for row in seen["spark"] if row[0] == "joined"} == set("abcd")
