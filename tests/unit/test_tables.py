"""Tables: created, put to and looked up by commands, in Python and by HTTP; what is wrong is said in one line."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import shapely
from typer.testing import CliRunner

import fairway
from st_common import tables
from st_common.answers.sql import sql
from st_common.cli import app
from st_common.config.home import Home
from st_common.errors import FairwayError, LayerError
from st_common.layers.announce import announce
from st_common.layers.find import in_rectangle
from st_common.layers.rows import layer_rows
from st_common.layers.table import append_rows, read_rows, replace_rows, table_path
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.stored_log import StoredLog
from st_common.maintenance.layer_retention import fold_layer
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.store import store
from st_common.server.installation import Installation
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Feature
from tests.kit.server_http import served

pytestmark = pytest.mark.spec("B15")

CONF = """
[streams.cars]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { plate = "string" }
"""
CREATE = """
CREATE TABLE favourites (plate TEXT PRIMARY KEY, owner) WITH (versions = 2);
CREATE TABLE spots (name PRIMARY KEY, note);
REGISTER QUERY mine AS SELECT * FROM cars c JOIN favourites f ON c.plate = f.plate;
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/streams.toml").write_text(CONF)
    return Installation(home=Home(tmp_path / "home"), conf=tmp_path / "conf")


@pytest.fixture
def command(place):
    where = ["--home", str(place.home.root), "--conf", str(place.conf)]

    def run(*words):
        return CliRunner().invoke(app, [*where, *words])

    assert run("query", "register", "--text", CREATE).exit_code == 0
    return run


@pytest.fixture
def clients(command, place, monkeypatch):
    monkeypatch.setenv("FAIRWAY_CONF", str(place.conf))
    with (
        served(place) as http,
        fairway.connect(str(http.base_url)) as remote,
        fairway.connect(place.home.root) as local,
    ):
        yield {"http": remote, "home": local}, http


def lines(done):
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(name, shape=None, **more):
    geometry = None if shape is None else json.loads(shapely.to_geojson(shape))
    return {
        "type": "Feature",
        "geometry": geometry,
        "properties": {"name": name, **more},
    }


def test_a_row_is_put_found_by_its_key_and_deleted(command):
    for owner in ("Ida", "Max", "Ida"):
        done = command("table", "put", "favourites", "plate=B-1", f"owner={owner}")
        assert done.exit_code == 0
        assert "told to cars" in done.stdout
    found = lines(command("table", "get", "favourites", "B-1"))
    owners = [one["properties"]["owner"] for one in found]
    assert owners == ["Ida", "Max"], "two versions of three, the newest first"
    assert found[0]["geometry"] is None
    assert command("table", "delete", "favourites", "B-1").exit_code == 0
    for words in (("get", "favourites", "B-1"), ("delete", "favourites", "B-1")):
        done = command("table", *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "has no row 'B-1'" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["put", "none", "a=1"], "there is no table 'none'"),
        (["put", "spots", "name=s", "colour=red"], "has no column 'colour' (it has"),
        (["put", "spots", "note=s"], "row 1 has no name that can be a key"),
        (["put", "spots", "name"], "'name' is no COLUMN=VALUE"),
        (["put", "spots", "name=s", "--geometry", "POINT (1"], "no well-known text"),
        (["put", "spots", "name=s", "--geometry", "POINT EMPTY"], "empty"),
        (
            ["put", "spots", "name=s", "--geometry", "POLYGON ((0 0, 1 0, 0 0))"],
            "row 's' cannot be put: nothing is left of it",
        ),
        (["put", "spots", "--row", "{"], "--row is no JSON"),
        (["put", "spots", "--row", "[]"], "row 1 is no feature of GeoJSON"),
        (["rect", "spots", "--box", "1,2,3"], "is no rectangle (four numbers"),
        (["rect", "spots", "--box", "9,0,1,1"], "9,0,1,1 is no rectangle"),
        (["create", "spots", "--key", "a"], "table 'spots' exists already"),
        (["create", "b", "--key", "fid"], "no column can be called 'fid'"),
        (["create", "b", "--key", "a", "--ttl", "soon"], "'soon': expected a time"),
        (["drop", "favourites"], "query 'mine' joins table 'favourites'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_put(
    command, place, words, said
):
    before = {name: tables.version(table_path(place.home, name)) for name in ("spots",)}
    done = command("table", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert tables.version(table_path(place.home, "spots")) == before["spots"]


def test_a_file_is_put_beside_other_rows_or_in_their_place(command, tmp_path, place):
    file = tmp_path / "spots.geojson"
    features = [row("a", shapely.Point(1, 1)), row("b", shapely.Point(2, 2), note="x")]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    assert command("table", "put", "spots", "name=z").exit_code == 0
    assert command("table", "load", "spots", str(file)).exit_code == 0
    assert {one["fid"] for one in read_rows(place.home, "spots").to_pylist()} == set(
        "abz"
    )
    assert command("table", "load", "spots", str(file), "--replace").exit_code == 0
    assert {one["fid"] for one in read_rows(place.home, "spots").to_pylist()} == set(
        "ab"
    )


@pytest.mark.parametrize("kind", ["home", "http"])
def test_clients_do_the_same_here_and_behind_a_server(clients, kind):
    client = clients[0][kind]
    spots = client.table("places")
    spots.create("name", ["note"], versions=2, ttl="7 days")
    area = shapely.box(0, 0, 4, 4)
    put = spots.put(row("a", shapely.Point(1, 1)), row("b", area), row("c"))
    assert (put["table"], put["rows"], put["streams"]) == ("places", 3, ["cars"])
    found = spots.in_rectangle((0, 0, 2, 2))
    assert [one["id"] for one in found["features"]] == ["a", "b"]
    assert shapely.from_geojson(json.dumps(found["features"][1]["geometry"])).equals(
        area
    )
    assert spots.joined("places", (0, 0, 2, 2))["pairs"] == [
        ["a", "a"],
        ["a", "b"],
        ["b", "a"],
        ["b", "b"],
    ]
    assert spots.joined("places", (3, 3, 5, 5))["pairs"] == [["b", "b"]]
    spots.put(row("c", note="new"))
    assert [one["properties"].get("note") for one in spots.get("c")] == ["new", None]
    assert spots.delete("c")["rows"] == 1
    with pytest.raises(FairwayError, match="has no row 'c'"):
        spots.delete("c")
    with pytest.raises(FairwayError, match="row 'd' stands twice in one put"):
        spots.put(row("d"), row("d"))
    with pytest.raises(FairwayError, match="exists already"):
        spots.create("name")
    spots.drop()
    with pytest.raises(FairwayError, match="there is no table"):
        spots.put(row("a"))


def test_a_stranger_gets_a_line_and_never_a_traceback(clients):
    http = clients[1]
    at = "/v1/tables/spots"
    bodies = [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"{}",
        b'{"type": "FeatureCollection", "features": {}}',
        b'{"type": "FeatureCollection", "features": [1, null]}',
        b'{"type": "Feature", "properties": []}',
        b'{"type": "Feature", "properties": {"name": ""}}',
        b'{"type": "Feature", "properties": {"name": "a\\nb"}}',
        b'{"type": "Feature", "properties": {"name": "\\ud800"}}',
        b'{"type": "Feature", "properties": {"name": "a", "x": 1}}',
        b'{"type": "Feature", "properties": {"name": "a"}, "geometry": 7}',
        b'{"type": "Feature", "properties": {"name": "a"}, "geometry": {"type": "Point"}}',
        b'{"type": "Feature", "properties": {"name": "a"}, "geometry": {"type": "Point", "coordinates": [1e999, 1]}}',
        b'{"type": "Feature", "id": [], "properties": {"name": "a"}}',
    ]
    for body in bodies:
        done = http.put(
            f"{at}/rows", content=body, headers={"content-type": "application/json"}
        )
        assert done.status_code == 400, (body, done.text)
        assert set(done.json()) <= {"error", "hint"}
    for path, status in (
        ("/v1/tables/none/rows?key=a", 404),
        ("/v1/tables/A%20b/rows?key=a", 400),
        ("/v1/tables/..%2Fchanges/rows?key=a", 404),
        (f"{at}/rows", 400),
        (f"{at}/rows?key=unknown", 404),
        (f"{at}/items", 400),
        (f"{at}/items?bbox=a", 400),
        (f"{at}/items?bbox=5,0,1,1", 400),
        (f"{at}/joined/none?bbox=0,0,1,1", 404),
    ):
        assert http.get(path).status_code == status, path


CELLS = [f"{n:02}" for n in range(16)]


def quartered(home):
    """Sixteen regions of a plane, each 10 wide."""
    edges = [-np.inf, 10, 20, 30, np.inf]
    bounds = [
        [edges[x], edges[y], edges[x + 1], edges[y + 1]]
        for x in range(4)
        for y in range(4)
    ]
    regions = Regions(
        group="default", version=0, region_id=CELLS, bounds=np.array(bounds)
    )
    return store(home, regions, np.zeros(16, np.int64), "by hand")


def test_a_rectangle_reads_the_files_of_its_regions_alone(tmp_path):
    home = Home(tmp_path)
    regions = quartered(home)
    spots = [
        Feature(f"s{x}-{y}", "spot", shapely.Point(x, y), {})
        for x in range(0, 40, 2)
        for y in range(0, 40, 2)
    ]
    path = table_path(home, "spots")
    replace_rows(path, layer_rows(features_of(spots), regions))
    found = in_rectangle(home, "spots", (1, 1, 5, 5))
    assert (found.read, found.there) == (1, 16)
    assert found.rows["fid"].to_pylist() == ["s2-2", "s2-4", "s4-2", "s4-4"]
    for file in path.rglob("*.parquet"):
        if "region_id=00" not in str(file):
            file.write_bytes(b"nobody reads this")
    tables.forget(path)
    assert in_rectangle(home, "spots", (1, 1, 5, 5)).rows.equals(found.rows)
    with pytest.raises(Exception, match=r"(?i)parquet"):
        in_rectangle(home, "spots", (1, 1, 15, 5))


def test_a_row_that_moved_to_another_region_is_found_there_alone(tmp_path):
    home = Home(tmp_path)
    regions = quartered(home)
    path = table_path(home, "spots")
    for at in (5, 15, 25):
        spot = [Feature("s", "spot", shapely.Point(at, at), {})]
        append_rows(path, layer_rows(features_of(spot), regions), now_us=at)
    for at, expected in ((5, []), (15, []), (25, ["s"])):
        box = (at - 1, at - 1, at + 1, at + 1)
        assert in_rectangle(home, "spots", box).rows["fid"].to_pylist() == expected


def test_sql_sees_the_rows_that_count(command, place):
    for words in (["name=a", "note=x"], ["name=a", "note=y"], ["name=b"], ["name=c"]):
        command("table", "put", "spots", *words)
    command("table", "delete", "spots", "c")
    rows = sql(
        place.home, "SELECT fid, tags['note'] AS note FROM layer_spots ORDER BY 1"
    )
    assert rows.to_pylist() == [{"fid": "a", "note": "y"}, {"fid": "b", "note": None}]
    counted = sql(place.home, "SELECT count(*) AS n FROM layer_spots WHERE fid <> 'b'")
    assert counted["n"].to_pylist() == [1]


def test_maintenance_drops_versions_by_count_and_rows_by_age(tmp_path):
    home, now = Home(tmp_path), datetime(2026, 1, 31, tzinfo=UTC)
    with fairway.connect(home.root) as client:
        client.table("spots").create("name", versions=2, ttl="7 days")
    path = table_path(home, "spots")
    days_ago = {"old": [20, 9], "mixed": [20, 3, 2, 1], "young": [1]}
    for key, ages in days_ago.items():
        for age in ages:
            spot = features_of([Feature(key, "spot", shapely.Point(1, 1), {})])
            at_us = int((now - timedelta(days=age)).timestamp()) * 1_000_000
            rows = layer_rows(spot, whole("default"))
            append_rows(path, rows, now_us=at_us)
    fold_layer(home, "spots", now=now)
    kept = tables.read(path).to_pylist()
    ages = sorted((one["fid"], (now - one["put_at"]).days) for one in kept)
    assert ages == [("mixed", 1), ("mixed", 2), ("young", 1)]
    assert {one["fid"] for one in read_rows(home, "spots").to_pylist()} == {
        "mixed",
        "young",
    }
    version = tables.version(path)
    assert fold_layer(home, "spots", now=now) == 0
    assert tables.version(path) == version, "a second time nothing is to be done"


def test_a_dropped_table_counts_on_where_it_is_made_again(tmp_path):
    home = Home(tmp_path)
    with fairway.connect(home.root) as client:
        spots = client.table("spots")
        spots.create("name")
        before = spots.put(row("a"))["version"]
        spots.drop()
        assert "layer_spots" not in client.sql("SHOW TABLES").table["name"].to_pylist()
        spots.create("name")
        assert spots.put(row("b"))["version"] > before
        assert [one["fid"] for one in read_rows(home, "spots").to_pylist()] == ["b"]
        assert read_rows(home, "spots", before)["fid"].to_pylist() == ["a"]


def test_a_put_that_died_before_it_was_told_is_told_by_the_next(command, place):
    """Killed between the commit and the control row: no stream knows of it yet."""

    def told():
        log = Log(place.home.log("cars"))
        return [
            (one.layer, one.version)
            for segment in log.control_segments(0)
            for one in control_rows(log, segment)
            if getattr(one, "layer", None) == "favourites"
        ]

    command("table", "put", "favourites", "plate=B-1")
    spot = features_of([Feature("B-2", "spot", shapely.Point(), {"plate": "B-2"})])
    rows = layer_rows(spot, whole("default"))
    silent = append_rows(table_path(place.home, "favourites"), rows, now_us=1)
    assert ("favourites", silent) not in told()
    command("table", "put", "spots", "name=x")
    assert told()[-1] == ("favourites", silent)
    assert announce(place.home) == []


def test_what_earlier_puts_said_is_not_read_again(command, place, monkeypatch):
    for number in range(6):
        command("table", "put", "spots", f"name={number}")
    command("table", "put", "favourites", "plate=B-1")
    log, read = Log(place.home.log("cars")), []
    assert len(log.control_segments(0)) >= 7

    def noted(self, segment):
        read.append(segment.number)
        return payload_of(self, segment)

    payload_of = StoredLog.read
    monkeypatch.setattr(StoredLog, "read", noted)
    assert announce(place.home, stream="cars") == []
    assert read == [log.end() - 1, log.end() - 2]


def test_no_row_can_be_put_to_a_layer_that_is_none(tmp_path):
    with (
        fairway.connect(tmp_path) as client,
        pytest.raises(LayerError, match="CREATE TABLE makes one"),
    ):
        client.table("none").put(row("a"))
