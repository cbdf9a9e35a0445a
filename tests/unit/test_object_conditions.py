"""Objects by a condition on their last fixes, wherever these stand: in the archive, behind it, in the past."""

import contextlib
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
import shapely.geometry
from pyproj import Transformer
from typer.testing import CliRunner

import fairway
from st_common.cli import app
from st_common.config.home import Home
from st_common.server.installation import Installation
from tests.kit.server_http import Engine, served

pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { speed = "double m/s", kind = "string", "crew" = "long" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
CONDITIONS = {
    "speed > 5": lambda fix: fix["speed"] is not None and fix["speed"] > 5,
    "kind = 'ferry' AND NOT speed > 5": lambda fix: (
        fix["kind"] == "ferry" and fix["speed"] is not None and not fix["speed"] > 5
    ),
    "crew IS NULL": lambda fix: fix["crew"] is None,
    "x + y > 100 OR object LIKE 's1%'": lambda fix: (
        fix["x"] + fix["y"] > 100 or fix["id"].startswith("s1")
    ),
    "event_ts < '1970-01-01T00:00:40Z'": lambda fix: fix["t"] < 40,
}


def fixes_of(seed, first_s, count):
    """Fixes of a few ships, in the order of time; some without speed, kind or crew."""
    random = np.random.default_rng(seed)
    return [
        {
            "id": f"s{random.integers(30)}",
            "t": first_s + number,
            "x": float(random.integers(100)),
            "y": float(random.integers(100)),
            "speed": None if random.random() < 0.2 else float(random.integers(10)),
            "kind": random.choice([None, "ferry", "tug"]),
            "crew": None if random.random() < 0.3 else int(random.integers(9)),
        }
        for number in range(count)
    ]


def last_of(fixes):
    return {fix["id"]: fix for fix in fixes}


def post(client, fixes):
    text = "\n".join(map(json.dumps, fixes))
    headers = {"content-type": "application/x-ndjson"}
    done = client.post("/v1/streams/ships/fixes", content=text, headers=headers)
    assert done.status_code == 202, done.text


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(tmp_path / "home"), conf=conf)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


def asked(client, **params):
    done = client.get("/v1/objects", params={"stream": "ships", **params})
    assert done.status_code == 200, done.text
    return [row["object"] for row in done.json()["rows"]]


@pytest.fixture
def fixes(client, place):
    """Some that are archived, and some that stand behind the archive; a segment of each ten."""
    archived, behind = fixes_of(1, 0, 60), fixes_of(2, 60, 25)
    with contextlib.closing(Engine(place)) as engine:
        for start in range(0, 60, 10):
            post(client, archived[start : start + 10])
        engine.work()
    for start in range(0, 25, 5):
        post(client, behind[start : start + 5])
    return archived, behind


@pytest.mark.parametrize("condition", CONDITIONS)
def test_who_is_there_now_is_chosen_by_the_last_fix_archived_or_not(
    client, fixes, condition
):
    last = last_of([*fixes[0], *fixes[1]])
    expected = sorted(who for who, fix in last.items() if CONDITIONS[condition](fix))
    assert 0 < len(expected) < len(last)
    assert asked(client, where=condition) == expected


@pytest.mark.parametrize("condition", CONDITIONS)
def test_who_was_there_is_chosen_by_the_last_fix_of_then_in_every_way_to_ask(
    client, place, fixes, condition
):
    last = last_of([fix for fix in fixes[0] if fix["t"] <= 45])
    expected = sorted(who for who, fix in last.items() if CONDITIONS[condition](fix))
    assert asked(client, where=condition, at="1970-01-01T00:00:45Z") == expected
    places = ["--home", str(place.home.root), "--conf", str(place.conf)]
    words = ["objects", "ships", "--at", "1970-01-01T00:00:45Z", "--where", condition]
    told = CliRunner().invoke(app, [*places, *words, "--json"])
    assert [json.loads(row)["object"] for row in told.stdout.splitlines()] == expected
    then = datetime.fromtimestamp(45, UTC)
    for where in (str(client.base_url), place.home.root):
        with fairway.connect(where) as program:
            seen = program.objects("ships", then, where=condition)
            assert seen.table["object"].to_pylist() == expected


def test_the_nearest_are_those_of_whom_it_holds(client, fixes):
    last = last_of([*fixes[0], *fixes[1]])
    fast = [fix for fix in last.values() if fix["speed"] and fix["speed"] > 5]
    away = sorted((fix["x"] ** 2 + fix["y"] ** 2, fix["id"]) for fix in fast)
    assert asked(client, where="speed > 5", near="0,0,3") == [
        who for _, who in away[:3]
    ]
    boxed = sorted(fix["id"] for fix in fast if fix["x"] <= 50)
    assert asked(client, where="speed > 5", bbox="0,0,50,100") == boxed


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("sped > 5", "line 1, column 1: unknown column 'sped' (did you mean speed?)"),
        ("crew > 5 AND\n  sped > 5", "line 2, column 3: unknown column 'sped'"),
        ("speed >", "expected"),
        ("speed + 1", "condition"),
        ("speed > 5 AND INSIDE (0, 0, 1, 1)", ""),
        ("speed > 5 WINDOW 10 SECONDS", "more than a condition"),
        ("speed > 5; DROP QUERY q", "expected one SELECT"),
        ("true) OR (SELECT 1", ""),
        ("speed_mps > 5", "fix before"),
        ("elapsed_s IS NULL OR speed > 1", "fix before"),
    ],
)
def test_what_is_no_condition_on_a_fix_is_refused_as_the_language_says_it(
    client, place, fixes, condition, said
):
    done = client.get("/v1/objects", params={"stream": "ships", "where": condition})
    assert done.status_code == 400, done.text
    assert said in done.json()["error"]
    places = ["--home", str(place.home.root), "--conf", str(place.conf)]
    told = CliRunner().invoke(app, [*places, "objects", "ships", "--where", condition])
    assert told.exit_code != 0


SHAPES = """
[streams.works]
format = "ndjson"
columns = { object = "id", event_ts = "t", shape = "geom" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
crs = "EPSG:3067"
"""
LINE = "LINESTRING (385000 6672000, 386000 6672500)"
AREA = "POLYGON ((385000 6672000, 386000 6672000, 386000 6673000, 385000 6672000))"


@pytest.fixture
def shaped(tmp_path):
    """Two works, one of them archived, with their geometries by name."""
    conf = tmp_path / "home" / "conf"
    conf.mkdir(parents=True)
    (conf / "streams.toml").write_text(SHAPES)
    place = Installation(home=Home(tmp_path / "home"), conf=conf)
    with served(place) as client, contextlib.closing(Engine(place, "works")) as engine:

        def put(name, time, text):
            record = json.dumps({"id": name, "t": time, "geom": text})
            headers = {"content-type": "application/x-ndjson"}
            told = client.post(
                "/v1/streams/works/fixes", content=record, headers=headers
            )
            assert told.status_code == 202, told.text

        put("area", 1, AREA)
        engine.work()
        put("line", 2, LINE)
        yield client, place, engine


def test_features_for_gis_are_the_geometries_and_not_points_on_them(shaped):
    client = shaped[0]
    told = client.get("/v1/ogc/collections/objects.works/items").json()["features"]
    shapes = {one["id"]: shapely.geometry.shape(one["geometry"]) for one in told}
    on_earth = Transformer.from_crs(3067, 4326, always_xy=True)
    for name, text in (("line", LINE), ("area", AREA)):
        (ways,) = [shapely.get_coordinates(shapely.from_wkt(text))]
        lon_lat = np.column_stack(on_earth.transform(*ways.T))
        assert np.allclose(shapely.get_coordinates(shapes[name]), lon_lat, atol=2e-9)
    west, south, east, north = shapes["line"].bounds
    inside = f"{west},{south},{east},{north}"
    found = client.get(
        "/v1/ogc/collections/objects.works/items", params={"bbox": inside}
    ).json()["features"]
    meet = shapely.intersects(shapely.box(*shapes["line"].bounds), [*shapes.values()])
    assert [one["id"] for one in found] == sorted(np.array([*shapes])[meet])
    assert "line" in {one["id"] for one in found}


@pytest.mark.parametrize("form", ["geojson", "geoparquet"])
def test_exports_hold_the_geometries(shaped, tmp_path, form):
    _, place, engine = shaped
    engine.work()
    out = tmp_path / f"out.{form}"
    places = ["--home", str(place.home.root), "--conf", str(place.conf)]
    words = ["objects", "works", "--format", form, "--out", str(out)]
    told = CliRunner().invoke(app, [*places, *words])
    assert told.exit_code == 0, told.output
    if form == "geojson":
        rows = json.loads(out.read_text())["features"]
        shapes = {
            one["properties"]["object"]: shapely.geometry.shape(one["geometry"])
            for one in rows
        }
        on_earth = Transformer.from_crs(3067, 4326, always_xy=True)
        for name, text in (("area", AREA), ("line", LINE)):
            shape = shapely.transform(
                shapely.from_wkt(text),
                lambda places: np.column_stack(on_earth.transform(*places.T)),
            )
            assert shapes[name].equals_exact(shape, 1e-8)
        return
    table = pq.read_table(out)
    read = dict(
        zip(table["object"].to_pylist(), table["geometry"].to_pylist(), strict=True)
    )
    assert shapely.from_wkb(read["line"]).equals_exact(shapely.from_wkt(LINE), 0)
    assert shapely.from_wkb(read["area"]).equals_exact(shapely.from_wkt(AREA), 0)
    about = json.loads(table.schema.metadata[b"geo"])["columns"]["geometry"]
    assert about["geometry_types"] == ["LineString", "Polygon"]
    assert about["bbox"] == [385000, 6672000, 386000, 6673000]
