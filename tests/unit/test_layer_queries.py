"""FROM a layer, as users meet it: in commands, in Python and over HTTP, at restarts, and what is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.answers.sql import sql
from st_common.cli import app
from st_common.client import HomeClient
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.contracts import load_contract
from st_common.engine.layer_feed import LayerFeed
from st_common.engine.run import run
from st_common.engine.topology import begin
from st_common.errors import ConfigError, QueryError
from st_common.layers.rows import layer_rows
from st_common.operators.state.state import State
from st_common.partitioning.regions import Regions
from st_common.query.builder import query
from st_common.query.created_streams import known_streams
from st_common.query.lookup import find
from st_common.query.plan import Plan
from st_common.query.text import to_text
from st_common.server.installation import Installation
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Feature
from tests.kit.server_http import served

pytestmark = pytest.mark.spec("P3", "P13")

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
max_ahead_s = "off"
engine = "local"
"""
NEAR = "SELECT fid, brand FROM stations INTERSECTS (0, 0, 5, 5)"


def station(fid, x, y, kind="fuel", **tags):
    return Feature(fid=fid, kind=kind, geometry=shapely.Point(x, y), tags=tags)


FIRST = [
    station("a", 1, 1, brand="north"),
    station("b", 5, 5, brand="south"),
    station("c", 9, 9, brand="north"),
    Feature(fid="lake", kind="water", geometry=shapely.box(4, 4, 7, 7), tags={}),
]


@pytest.fixture
def home(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    home = Home(tmp_path)
    load(home, FIRST)
    return home


@pytest.fixture
def client(home):
    return HomeClient(home, streams=load_streams(home.root / "conf"), owner="me")


def load(home, features):
    """Loads the layer as people do."""
    file = home.root / "stations.geojson"
    listed = [
        {
            "type": "Feature",
            "id": one.fid,
            "properties": {"kind": one.kind, **one.tags},
            "geometry": shapely.geometry.mapping(one.geometry),
        }
        for one in features
    ]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    fairway(home, "layer", "load", "stations", str(file), "--crs", "planar")


def fairway(home, *words, code=0):
    done = CliRunner().invoke(app, ["--home", str(home.root), *words])
    assert done.exit_code == code, done.output
    return done.output


def layer_stream(home):
    return known_streams(home, home.root / "conf")["stations"]


def keep(home):
    return run(home, layer_stream(home), until_idle=True)


def members(home, query):
    return answer(home, query)["object"].to_pylist()


def told(home, query):
    rows = stream_changes(home, "stations", query).to_pylist()
    return [(row["object"], row["sign"], row["cause"]) for row in rows]


def test_commands_ask_once_and_keep_an_answer_over_loads(home):
    once = fairway(home, "query", "run", "--text", NEAR, "--json")
    rows = [json.loads(line) for line in once.splitlines()]
    assert [(row["object"], json.loads(row["fields"])) for row in rows] == [
        ("a", {"fid": "a", "brand": "north"}),
        ("b", {"fid": "b", "brand": "south"}),
        ("lake", {"fid": "lake", "brand": None}),
    ]
    fairway(home, "query", "register", "--text", f"REGISTER QUERY near AS {NEAR}")
    fairway(home, "run", "stations", "--until-idle")
    assert members(home, "near") == ["a", "b", "lake"]
    load(home, [station("a", 6, 6, brand="north"), *FIRST[2:], station("d", 2, 2)])
    fairway(home, "run", "stations", "--until-idle")
    assert sorted(told(home, "near")[3:]) == [
        ("a", -1, "leave"),
        ("b", -1, "gone"),
        ("d", 1, "enter"),
    ]
    assert "holds" in fairway(home, "verify", "near")
    assert "satisfies version 1 of near" in fairway(home, "why", "near", "d")
    fairway(home, "query", "drop", "near")
    fairway(home, "run", "stations", "--until-idle")
    assert told(home, "near")[-2:] == [("d", -1, "dropped"), ("lake", -1, "dropped")]


def test_a_version_that_changes_nothing_of_the_answer_tells_nothing(home, client):
    client.register(f"REGISTER QUERY near AS {NEAR}")
    keep(home)
    load(home, [*FIRST[:2], *FIRST[3:]])  # c, which is not in it, has gone
    assert keep(home).fixes == 1
    load(home, [*FIRST[:2], *FIRST[3:]])
    assert keep(home).fixes == 0
    assert len(told(home, "near")) == 3


def test_what_a_dead_engine_fed_is_not_fed_again(home, client):
    client.register(f"REGISTER QUERY near AS {NEAR}")
    stream = begin(home, layer_stream(home), engine="local", shards=1)
    assert LayerFeed(home, stream).look(State(), at_once=True)
    done = keep(home)
    assert (done.fixes, done.double, done.late) == (len(FIRST), 0, 0)
    assert keep(home).fixes == 0


def test_a_tag_that_a_later_query_names_is_known_of_all_features(home, client):
    client.register(f"REGISTER QUERY near AS {NEAR}")
    keep(home)
    load(home, [*FIRST[:3], station("d", 2, 2, pumps="4")])
    client.register("REGISTER QUERY large AS SELECT * FROM stations WHERE pumps = '4'")
    client.register("REGISTER QUERY none AS SELECT * FROM stations WHERE pumps IS NULL")
    keep(home)
    assert members(home, "large") == ["d"]
    assert members(home, "none") == ["a", "b", "c"]
    assert members(home, "near") == ["a", "b", "d"]
    assert "no feature" not in fairway(home, "objects", "stations")


def test_only_files_of_regions_that_meet_the_box_are_read(home, client):
    inf = float("inf")
    halves = Regions(
        group="default",
        version=1,
        region_id=["here", "there"],
        bounds=np.array([[-inf, -inf, 4.5, inf], [4.5, -inf, inf, inf]]),
    )
    rows = layer_rows(features_of([FIRST[0], FIRST[2]]), halves)
    path = home.table("layers", "stations")
    tables.replace(path, rows, load_contract("layers"))
    (there,) = path.glob("region_id=there/*.parquet")
    there.unlink()
    asked = "SELECT * FROM stations {}".format
    here = client.ask(asked("WHERE kind = 'fuel' INSIDE (0, 0, 4, 4)"))
    assert here["object"].to_pylist() == ["a"]
    with pytest.raises(Exception, match="there"):
        client.ask(asked(""))


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("WILL ENTER (0, 0, 1, 1) WITHIN 5 min", "WILL ENTER is of objects that move"),
        ("INSIDE (0, 0, 1, 1) DETECT ENTER", "DETECT is of objects that move"),
        ("WHERE kind = 'fuel' FOR 5 min", "FOR is of objects that move"),
        ("INSIDE (0, 0, 1, 1) WINDOW 1 hour", "WINDOW is of objects that move"),
        ("[RANGE 1 hour]", "a window in brackets is of objects that move"),
        ("WHERE speed_mps > 3", "speed_mps is of objects that move"),
        ("INSIDE ('M', 'a', 5, 5)", "INSIDE a region that goes with an object looks"),
        ("KNN ('M', 2, 'a')", "KNN looks at places"),
        ("REVERSE KNN (1, 1)", "REVERSE KNN looks at places"),
        ("WHERE brnd = 'north'", "unknown column 'brnd' (did you mean brand?)"),
        ("WHERE ST_DWithin(cars, ST_Point(1, 1), 5 m)", "expected stations"),
        (
            "WHERE ST_DWithin(stations, ST_Point(1, 1), 5 m) INSIDE (0, 0, 1, 1)",
            "ST_DWithin of a point and a region exclude each other",
        ),
        ("AS OF '2024-01-01'", "a layer has versions and no times"),
    ],
)
def test_what_needs_motion_or_time_is_refused_by_name(client, clause, said):
    with pytest.raises(QueryError) as error:
        client.ask(f"SELECT * FROM stations {clause}")
    assert said in str(error.value)


def test_the_speed_of_what_does_not_move_is_no_average(client):
    with pytest.raises(QueryError, match="speed_mps is of objects that move"):
        client.ask("SELECT AVG(speed_mps) FROM stations")


def test_a_distance_from_a_point_is_a_circle_of_streams_too(home, client):
    near = "ST_DWithin({}, ST_Point(5, 6), 1 m)"
    asked = f"SELECT * FROM stations s WHERE {near.format('s')} AND s.kind = 'water'"
    assert client.ask(asked)["object"].to_pylist() == ["lake"]
    client.register(
        f"REGISTER QUERY cars_near AS SELECT * FROM cars WHERE {near.format('cars')}"
    )
    assert "FROM cars INSIDE CIRCLE (5, 6, 1 m)" in fairway(
        home, "query", "show", "cars_near"
    )


def test_a_stream_of_the_same_name_is_what_is_meant(home):
    settings = CONF.replace("streams.cars", "streams.stations")
    (home.root / "conf" / "streams.toml").write_text(settings)
    client = HomeClient(home, streams=load_streams(home.root / "conf"))
    with pytest.raises(ConfigError, match="stream 'stations' never ran"):
        client.ask("SELECT * FROM stations INSIDE (0, 0, 5, 5)")


def test_a_query_on_a_lease_may_be_the_first_about_a_layer(home, client):
    with client.register(NEAR, "shortly", ephemeral=10):
        keep(home)
        assert members(home, "shortly") == ["a", "b", "lake"]


@pytest.mark.spec("S8")
def test_the_server_asks_once_keeps_answers_and_refuses_strangers(home):
    with served(Installation(home=home, conf=home.root / "conf")) as http:
        text = "SELECT rank() AS r, distance() AS d FROM stations KNN (2, 5, 6)"
        done = http.post("/page/ask", content=text).json()
        assert [(row["object"], row["fields"]["r"]) for row in done["rows"]] == [
            ("b", 2),
            ("lake", 1),
        ]
        assert http.put("/v1/queries/near", content=NEAR).status_code == 201
        keep(home)
        rows = http.get("/v1/answers/near").json()["rows"]
        assert [row["object"] for row in rows] == ["a", "b", "lake"]
        for odd in (
            "SELECT * FROM stations KNN (0, 1, 1)",
            "SELECT * FROM statons INSIDE (0, 0, 1, 1)",
            'SELECT * FROM "../layers" INSIDE (0, 0, 1, 1)',
            "SELECT * FROM stations WHERE fid = '\u0000' OR",
            "SELECT * FROM stations WHERE ST_DWithin(stations, ST_Point(1, 1), -5 m)",
            "SELECT ST_Point(1, 1) FROM stations",
            "SELECT * FROM stations BETWEEN '2024-01-01' AND '2024-01-02'",
        ):
            assert http.post("/page/ask", content=odd).status_code == 400, odd


def test_a_plan_of_the_builder_or_as_json_is_that_of_the_text(home, client):
    built = query("stations").nearest(2, 5, 6)
    client.register(built, "two")
    keep(home)
    assert members(home, "two") == ["b", "lake"]
    plan = Plan.from_json(find(home, "two").plan.to_json())
    assert plan == find(home, "two").plan
    assert "KNN (2, 5, 6)" in to_text(plan, "two")


def test_the_nearest_station_to_each_car_is_asked_as_the_page_says(home, client):
    client.put("cars", [{"id": "k", "t": "2024-05-01T08:00:00Z", "x": 5, "y": 6}])
    run(home, load_streams(home.root / "conf")["cars"], until_idle=True)
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
    (text,) = re.findall(r'fairway sql "(SELECT c.object, s.fid, ST_D[^"]*)"', page)
    streams = load_streams(home.root / "conf")
    assert sql(home, text, lambda: streams).to_pylist() == [
        {"object": "k", "fid": "b", "metres": 1.0}
    ]


def test_sql_says_how_far_features_are_from_places(home):
    text = """
        SELECT fid, ST_Distance(geometry, ST_Point(5, 6)) AS far
        FROM layer_stations WHERE home ORDER BY far, fid
    """
    streams = load_streams(home.root / "conf")
    rows = sql(home, text, lambda: streams).to_pylist()
    assert [(row["fid"], row["far"]) for row in rows] == [
        ("lake", 0.0),
        ("b", 1.0),
        ("c", 5.0),
        ("a", 41**0.5),
    ]
    on_globe = "SELECT ST_Distance(ST_Point(0, 0), ST_Point(0, 1)) AS far"
    assert sql(home, on_globe)["far"].to_pylist() == [pytest.approx(110_574.389)]
    both = {**streams, "ships": replace(streams["cars"], crs="EPSG:4326")}
    with pytest.raises(QueryError, match="streams of both kinds"):
        sql(home, text, lambda: both)
    with pytest.raises(QueryError, match="needs a point"):
        sql(
            home,
            "SELECT ST_Distance(geometry, geometry) FROM layer_stations WHERE fid = 'lake'",
        )


def test_another_tag_of_a_member_is_told_where_columns_are(home, client):
    select = "SELECT fid, brand FROM stations INSIDE (0, 0, 5, 5)"
    client.register(f"REGISTER QUERY plain AS {select}")
    client.register(f"REGISTER QUERY each AS {select} EMIT EVERY")
    client.register(f"REGISTER QUERY rows AS SELECT * FROM ({select})")
    keep(home)
    load(home, [station("a", 1, 1, brand="west"), *FIRST[1:]])
    keep(home)
    assert len(told(home, "plain")) == 2
    assert told(home, "each")[2:] == [("a", 0, "inside")]
    assert json.loads(answer(home, "each")["fields"][0].as_py())["brand"] == "west"
    assert [sign for _, sign, _ in told(home, "rows")] == [1, 1, -1, 1]


def test_the_stream_of_a_layer_is_dropped_once_nobody_asks(home, client):
    client.register(f"REGISTER QUERY near AS {NEAR}")
    drop = ("query", "register", "--text", "DROP STREAM stations")
    assert "query 'near' is about stream 'stations'" in fairway(home, *drop, code=2)
    fairway(home, "query", "drop", "near")
    fairway(home, *drop)
    assert "stations" not in known_streams(home, home.root / "conf")
    client.register(f"REGISTER QUERY anew AS {NEAR}")
    keep(home)
    assert members(home, "anew") == ["a", "b", "lake"]


def test_a_layer_joins_another_by_key(home, client):
    text = "SELECT * FROM stations s JOIN stations t ON s.brand = t.brand"
    client.register(f"REGISTER QUERY pairs AS {text}")
    keep(home)
    rows = answer(home, "pairs").to_pylist()
    assert {(row["object"], row["partner"]) for row in rows} == {("a", "c"), ("c", "a")}
