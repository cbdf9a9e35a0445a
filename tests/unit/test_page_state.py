"""The state of all as the page polls it: what is known is right, and what is not known is null."""

import json
import time
from dataclasses import replace

import pytest

from st_common.layers.load import load
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.operations.status import StreamStatus, write_status
from st_common.position import position_of
from tests.kit.server_http import Engine, served
from tests.kit.server_page import CSV, fix, place_in, post

pytestmark = pytest.mark.spec("P10")

KINDS = {
    "box": ("SELECT * FROM ships INSIDE (0, 0, 10, 10)", "range"),
    "near": ("SELECT * FROM ships KNN (1, 5, 5)", "knn"),
    "tell": ("SELECT * FROM ships INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT", "fence"),
    "many": ("SELECT count(*) FROM ships INSIDE (0, 0, 10, 10)", "aggregate"),
    "late": ("SELECT * FROM ships INSIDE (0, 0, 10, 10) WINDOW 10 min", "window"),
    "deep": ("SELECT * FROM ships WHERE draught > 3", "filter"),
}


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


def until(client, is_so):
    """The first state of which something is so."""
    end_s = time.monotonic() + 120
    while not is_so(state := client.get("/page/state").json()):
        assert time.monotonic() < end_s, state
        time.sleep(0.1)
    return state


def stream_of(state, name):
    return next(one for one in state["streams"] if one["name"] == name)


def test_a_home_where_nothing_ran_invents_no_figure(client):
    told = client.get("/page/state")
    assert told.status_code == 200, told.text
    state = told.json()
    assert [one["name"] for one in state["streams"]] == ["ships", "cars", "taxis"]
    ships = stream_of(state, "ships")
    assert (ships["state"], ships["engine"]) == ("never run", "local")
    for unknown in ("extent", "fixes_per_s", "latency_ms", "objects"):
        assert ships[unknown] is None, unknown
    assert "fixes" not in ships
    assert (ships["lag_segments"], ships["rejects"]) == (0, {})
    assert ships["space"] == {"kind": "globe"}
    assert stream_of(state, "cars")["space"]["kind"] == "plane"
    assert stream_of(state, "cars")["group"] == "town"
    assert (state["queries"], state["layers"], state["deliveries"]) == ([], [], [])


def test_queries_are_grouped_by_kind_and_counted_with_their_members(place, client):
    for name, (text, _) in KINDS.items():
        told = client.put(f"/v1/queries/{name}", content=text)
        assert told.status_code == 201, told.text
    engine = Engine(place, "ships")
    try:
        fixes = fix("a", 1, 1, 1) + fix("b", 2, 2, 2) + fix("c", 3, 50, 50)
        post(client, "ships", f"{fixes}no json\n")
        engine.work()
    finally:
        engine.close()

    def has_members(state):
        return any(one["members"] for one in state["queries"])

    state = until(client, has_members)
    by_name = {one["name"]: one for one in state["queries"]}
    assert {name: by_name[name]["kind"] for name in KINDS} == {
        name: kind for name, (_, kind) in KINDS.items()
    }
    assert state["query_kinds"] == {kind: 1 for _, kind in KINDS.values()}
    assert (by_name["box"]["members"], by_name["near"]["members"]) == (2, 1)
    assert by_name["box"]["text"].endswith(KINDS["box"][0])
    ships = stream_of(state, "ships")
    assert sum(ships["rejects"].values()) == 1
    assert set(ships["latency_ms"]) == {"p50", "p95", "p99"}
    client.delete("/v1/queries/box")
    state = until(client, lambda state: len(state["queries"]) == len(KINDS) - 1)
    assert "range" not in state["query_kinds"]


def test_a_replay_has_no_latency_of_a_live_feed(place, client):
    log = log_for(place.home, place.stream("ships"))
    log.append(fix("a", 1, 1, 1).encode(), arrival_us=1)
    client.put("/v1/queries/box", content=KINDS["box"][0])
    engine = Engine(place, "ships")
    try:
        engine.work()
    finally:
        engine.close()
    state = until(client, lambda state: state["queries"][0]["members"] == 1)
    assert stream_of(state, "ships")["latency_ms"] is None


def test_a_stream_that_somebody_looks_at_says_how_many_objects_and_where(client):
    fixes = "".join(fix(f"s{n}", 1, n / 10, 5) for n in range(100))
    post(client, "ships", fixes)
    client.get("/page/live/ships")
    state = until(client, lambda state: stream_of(state, "ships")["extent"])
    ships = stream_of(state, "ships")
    assert (ships["objects"], ships["lag_segments"]) == (100, 1)
    assert ships["latest_event_ts"] == "1970-01-01T00:00:01.000Z"
    assert ships["extent"] == pytest.approx([0, 5, 9.9, 5], abs=0.02)


def test_the_extent_of_a_plane_is_where_its_objects_are_on_the_map(client):
    post(client, "cars", "id,t,x,y\na,1,0,0\nb,1,4000,1000\n", CSV)
    client.get("/page/live/cars")
    state = until(client, lambda state: stream_of(state, "cars")["extent"])
    cars = stream_of(state, "cars")
    west, _, _, north = cars["extent"]
    assert max(map(abs, cars["extent"])) <= 1
    space = cars["space"]
    assert west / space["s"] + space["x0"] == pytest.approx(0, abs=10)
    assert north / space["s"] + space["y0"] == pytest.approx(1000, abs=10)


def test_layers_are_told_with_their_kinds_and_extent(place, client, tmp_path):
    square = [[[0, 0], [4, 0], [4, 2], [0, 2], [0, 0]]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": square},
        "properties": {"kind": "park", "fid": "p1"},
    }
    file = tmp_path / "parks.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    load(place.home, "parks", file, group="default")
    (layer,) = client.get("/page/state").json()["layers"]
    assert (layer["name"], layer["features"], layer["kinds"]) == (
        "parks",
        1,
        {"park": 1},
    )
    assert layer["extent"] == [0, 0, 4, 2]
    assert layer["space"] == {"kind": "globe"}


def test_a_setting_that_is_wrong_is_told_beside_the_streams_that_can_run(place, client):
    conf = place.conf / "streams.toml"
    conf.write_text(conf.read_text() + '\n[streams.boats]\nfromat = "csv"\n')
    state = client.get("/page/state").json()
    assert "boats" in state["broken_streams"]
    assert str(place.conf) not in json.dumps(state)


def test_answers_lag_behind_by_the_engine_whatever_the_archive_does(place, client):
    post(client, "ships", fix("a", 1, 1, 1))
    log = Log(place.home.log("ships"))
    told = StreamStatus(
        state="running",
        beat_ts=time.time_ns() // 1000,
        position=position_of(log.end(), 0),
        end_position=position_of(log.end(), 0),
    )
    folder = place.home.stream("ships")
    write_status(folder, told)
    write_status(folder, replace(told, job="archive", position=0))
    ships = stream_of(client.get("/page/state").json(), "ships")
    assert (ships["lag_s"], ships["lag_segments"]) == (0.0, 0)
    assert ships["archive_lag_s"] > 0
    post(client, "ships", fix("a", 2, 1, 1))
    state = until(client, lambda one: stream_of(one, "ships")["lag_segments"])
    assert stream_of(state, "ships")["lag_segments"] == 1
    assert 0 < stream_of(state, "ships")["lag_s"] < 60
