"""What a home has that who registers a query should know of: told at registration, and the query is taken."""

import itertools
import json

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.log.record_settings import log_for
from st_common.server.installation import Installation
from tests.kit.ran_home import ran_home
from tests.kit.server_http import served

CONF = """
[streams.taxis]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
engine = "local"

[streams.buses]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
engine = "local"

[streams.empty]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
engine = "local"
"""
NUMBERS = itertools.count()
SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
ZONES = {
    "good": SQUARE,
    "open": [[0, 0], [1, 1]],
    "gone": [[0, 0], [400, 0], [1, 1], [0, 0]],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    root = tmp_path_factory.mktemp("home")
    home = ran_home(root, CONF, "taxis", "id,t,x,y\ncar7,0,1,1\nboth,0,1,1\n")
    buses = load_streams(root / "conf")["buses"]
    log_for(home, buses).append(b"id,t,x,y\nbus1,0,1,1\nboth,0,1,1\n", arrival_us=0)
    run(home, buses, until_idle=True)
    features = [
        {
            "type": "Feature",
            "id": name,
            "properties": {"kind": "zone"},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for name, ring in ZONES.items()
    ]
    whole = {"type": "FeatureCollection", "features": features}
    (root / "zones.geojson").write_text(json.dumps(whole))
    (root / "fine.geojson").write_text(json.dumps({**whole, "features": features[:1]}))
    for name in ("zones", "fine"):
        done = says(home, "layer", "load", name, str(root / f"{name}.geojson"))
        assert done[0] == 0, done
    return home


def says(home, *words):
    done = CliRunner().invoke(app, words, env={"FAIRWAY_HOME": str(home.root)})
    return done.exit_code, done.stdout, done.stderr


def registered(home, query):
    """What is noted when a query is registered, but for what lies before it."""
    text = f"REGISTER QUERY q{next(NUMBERS)} AS {query}"
    code, out, err = says(home, "query", "register", "--text", text)
    assert (code, "registered" in out) == (0, True), err
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if "lie before" not in line)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM buses INSIDE ('M', 'car7', 500 m)",
        "SELECT * FROM Buses KNN ('M', 3, 'car7')",
        "SELECT COUNT(*) FROM buses INSIDE ('M', 'car7', 5, 5)",
        "SELECT * FROM buses INSIDE ('M', 'car7', 500 m) DETECT ENTER",
        "SELECT * FROM (SELECT * FROM buses INSIDE ('M', 'car7', 500 m))",
    ],
)
def test_an_object_that_only_another_stream_has_had_is_noted(home, query):
    err = registered(home, query)
    assert "stream 'buses' has had no object 'car7' so far, stream 'taxis' has" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM buses INSIDE ('M', 'nobody', 500 m)",
        "SELECT * FROM buses INSIDE ('M', 'both', 500 m)",
        "SELECT * FROM buses INSIDE ('M', 'bus1', 500 m)",
        "SELECT * FROM taxis INSIDE ('M', 'car7', 500 m)",
        "SELECT * FROM taxis INSIDE (0, 0, 1, 1)",
        "SELECT * FROM taxis JOIN fine f ON ST_Intersects(taxis, f)",
    ],
)
def test_nothing_is_noted_of_an_object_that_nobody_or_the_stream_itself_has_had(
    home, query
):
    assert registered(home, query) == ""


def test_an_object_is_named_once_for_all_queries_that_ask_for_it(home):
    text = "; ".join(
        f"REGISTER QUERY many{n} AS SELECT * FROM empty INSIDE ('M', '{name}', 5 m)"
        for n, name in enumerate(["car7", "both", "bus1", "car7"])
    )
    code, _, err = says(home, "query", "register", "--text", text)
    assert code == 0
    named = [line for line in err.splitlines() if "has had no object" in line]
    assert [line.split("'")[3] for line in named] == ["car7", "both", "bus1"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM taxis JOIN zones z ON ST_Intersects(taxis, z)",
        "SELECT * FROM taxis WHERE EXISTS (SELECT 1 FROM ZONES z WHERE ST_DWithin(taxis, z, 5 m))",
        "SELECT z.fid, COUNT(*) FROM taxis JOIN zones z ON ST_Intersects(taxis, z) GROUP BY z.fid",
    ],
)
def test_features_that_a_layer_lacks_are_noted_with_the_way_to_list_them(home, query):
    err = registered(home, query)
    assert "2 features were rejected when layer 'zones' was loaded" in err
    assert "fairway layer show zones --all" in err
    assert len(err.splitlines()) == 1
    code, out, _ = says(home, "layer", "show", "zones", "--all")
    assert code == 0
    assert "'open'" in out
    assert "'gone'" in out


def test_a_server_notes_the_same(home):
    text = (
        "REGISTER QUERY over_http AS SELECT * FROM taxis t"
        " JOIN zones z ON ST_Intersects(t, z) INSIDE ('M', 'bus1', 5 m)"
    )
    with served(Installation(home=home, conf=home.root / "conf")) as client:
        answer = client.post("/v1/queries", content=text)
    assert answer.status_code < 300, answer.text
    notices = answer.json()["notices"]
    assert any("2 features were rejected" in one for one in notices)
    assert any("no object 'bus1' so far" in one for one in notices)
