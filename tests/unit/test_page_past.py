"""What was and what would have been, as the page asks: the way of an object, its visits, a question about the past."""

import json
import math

import numpy as np
import pytest
import shapely

from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.layers.load import load
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store
from st_common.server.page import questions as asks
from st_common.server.parameters import Parameters
from tests.kit.server_http import Engine, served
from tests.kit.server_page import CSV, fix, place_in, post, unpacked

pytestmark = pytest.mark.spec("P10")

ZONE = "SELECT * FROM ships INSIDE (0, 0, 10, 10)"


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


@pytest.fixture
def engine(place):
    engine = Engine(place, "ships")
    yield engine
    engine.close()


def at(second):
    return f"1970-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def told(client, path, **params):
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask(client, text, **params):
    answer = client.post("/page/ask", content=text, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_way_of_an_object_is_that_of_the_archive_and_the_log(client, engine):
    post(client, "ships", "".join(fix("a", t, t / 10, 1) for t in range(10)))
    post(client, "ships", fix("b", 3, 50, 50))
    engine.work()
    post(client, "ships", "".join(fix("a", t, t / 10, 1) for t in range(10, 20)))
    way = told(client, "/page/ways/ships", object="a")
    assert way["fixes"] == [[t, t / 10, 1] for t in range(20)]
    part = told(
        client, "/page/ways/ships", **{"object": "a", "from": at(5), "to": at(14)}
    )
    assert [one[0] for one in part["fixes"]] == list(range(5, 15))
    few = told(client, "/page/ways/ships", object="a", limit=3)
    assert ([one[0] for one in few["fixes"]], few["count"]) == ([0, 9, 19], 20)
    assert told(client, "/page/ways/ships", object="none")["fixes"] == []
    assert client.get("/page/ways/ships").status_code == 400
    assert client.get("/page/ways/ships?object=a&limit=0").status_code == 400


def test_all_that_is_known_of_an_object_is_told(client, engine):
    client.put("/v1/queries/zone", content=ZONE)
    post(client, "ships", fix("a/1", 1, 50, 1) + fix("b", 1, 5, 5, draught=4))
    post(client, "ships", fix("a/1", 2, 5, 5))
    engine.work()
    post(client, "ships", fix("a/1", 3, 6, 6, name="Anna", draught=3.5))
    one = told(client, "/page/object/ships/a/1")
    assert (one["x"], one["y"], one["lon"], one["gone"]) == (6, 6, 6, False)
    assert one["properties"] == {"name": "Anna", "draught": 3.5}
    assert one["event_ts"].startswith("1970-01-01T00:00:03")
    (answer,) = one["answers"]
    assert (answer["query"], answer["since_ts"][:19]) == ("zone", "1970-01-01T00:00:02")
    (visit,) = one["visits"]
    assert (visit["query"], visit["cause_in"], visit["to_ts"]) == (
        "zone",
        "enter",
        None,
    )
    assert client.get("/page/object/ships/none").status_code == 404
    post(client, "ships", fix("a/1", 4, 50, 1))
    engine.work()
    one = told(client, "/page/object/ships/a/1")
    assert (one["answers"], one["visits"][0]["cause_out"]) == ([], "leave")


def test_all_that_was_known_of_an_object_at_a_time_is_told(client, engine):
    client.put("/v1/queries/zone", content=ZONE)
    post(client, "ships", fix("a", 1, 50, 1) + fix("a", 2, 5, 5, draught=3))
    post(client, "ships", fix("a", 9, 60, 1, draught=4) + fix("b", 9, 5, 5))
    post(client, "ships", fix("a", 12, 5, 5) + fix("a", 15, 5, 6, gone=True))
    engine.work()
    then = told(client, "/page/object/ships/a", at=at(5))
    assert (then["x"], then["lat"], then["gone"]) == (5, 5, False)
    assert then["properties"] == {"name": None, "draught": 3}
    assert then["event_ts"].startswith("1970-01-01T00:00:02")
    (answer,) = then["answers"]
    assert (answer["query"], answer["since_ts"][:19]) == ("zone", "1970-01-01T00:00:02")
    assert [(one["to_ts"], one["cause_out"]) for one in then["visits"]] == [
        (None, None)
    ]
    later = told(client, "/page/object/ships/a", at=at(10))
    assert (later["x"], later["properties"]["draught"], later["answers"]) == (60, 4, [])
    assert later["visits"][0]["to_ts"].startswith("1970-01-01T00:00:09")
    for second in (0, 20):  # before its first fix, and when it was gone
        absent = client.get("/page/object/ships/a", params={"at": at(second)})
        assert (absent.status_code, "at that time" in absent.json()["error"]) == (404, True)  # fmt: skip


def test_visits_are_the_longest_or_the_newest_of_a_query_or_an_object(client, engine):
    client.put("/v1/queries/zone", content=ZONE)
    client.put(
        "/v1/queries/other", content="SELECT * FROM ships INSIDE (20, 0, 30, 10)"
    )
    assert told(client, "/page/visits", stream="ships")["rows"] == []
    post(client, "ships", fix("z", 0, 70, 70))
    engine.work()  # from here on there is a table, without rows
    assert told(client, "/page/visits", stream="ships")["rows"] == []
    post(client, "ships", fix("a", 1, 5, 5) + fix("a", 31, 50, 5))
    post(
        client, "ships", fix("b", 40, 5, 5) + fix("b", 45, 25, 5) + fix("b", 60, 50, 5)
    )
    engine.work()

    def objects(**params):
        rows = told(client, "/page/visits", stream="ships", **params)["rows"]
        return [(row["object"], row["query"]) for row in rows]

    assert objects(order="newest") == [("b", "other"), ("b", "zone"), ("a", "zone")]
    assert objects(order="longest") == [("a", "zone"), ("b", "other"), ("b", "zone")]
    assert objects(query="zone", limit=1) == [("b", "zone")]
    assert objects(object="a") == [("a", "zone")]
    assert objects(**{"from": at(50)}) == [("b", "other")]
    assert objects(to=at(30)) == [("a", "zone")]
    refused = client.get("/page/visits?stream=ships&order=odd")
    assert (refused.status_code, refused.json()["hint"]) == (400, "one of longest, newest")  # fmt: skip
    quoted = client.get(
        "/page/visits", params={"stream": "ships", "object": "' OR 1=1 --"}
    )
    assert quoted.json()["rows"] == []


def test_the_last_changes_up_to_a_time_are_told_and_nothing_later(client, engine):
    client.put("/v1/queries/zone", content=ZONE)
    steps = ((1, 50), (2, 5), (4, 50), (6, 5))
    post(client, "ships", "".join(fix("a", second, x, 1) for second, x in steps))
    engine.work()

    def known(to, **more):
        answer = told(client, "/page/changes/zone", to=at(to), **more)
        causes = [(one["cause"], one["event_ts"][17:19]) for one in answer["rows"]]
        return answer["entered"], answer["left"], causes

    assert known(1) == (0, 0, [])
    assert known(3) == (1, 0, [("enter", "02")])
    assert known(5) == (1, 1, [("leave", "04"), ("enter", "02")])
    assert known(7, limit=1) == (2, 1, [("enter", "06")])
    assert known(7, **{"from": at(5)}) == (1, 0, [("enter", "06")])
    assert client.get("/page/changes/zone").status_code == 400
    assert client.get("/page/changes/none", params={"to": at(1)}).status_code == 404


def test_objects_of_the_past_come_as_those_of_now(client, engine):
    post(client, "ships", fix("a", 1, 1, 1) + fix("a", 5, 2, 2) + fix("b", 9, 3, 3))
    engine.work()
    answer = client.get("/page/past/ships", params={"at": at(6)})
    header, arrays = unpacked(answer.content)
    assert (header["reset"], header["names"]) == (True, {"from": 0, "names": ["a"]})
    assert (arrays["lon"].tolist(), arrays["event_s"].tolist()) == ([2], [5])
    assert client.get("/page/past/ships").status_code == 400


def test_places_of_an_interval_are_a_sample_of_its_fixes(client, engine):
    span = {"from": at(10), "to": at(20)}
    assert told(client, "/page/places/ships", **span)["places"] == []
    post(client, "ships", "".join(fix("a", t, t, t / 10) for t in range(40)))
    post(client, "ships", fix("b", 12, 80, 80) + fix("b", 13, 80, 80, gone=True))
    engine.work()
    all_of_it = told(client, "/page/places/ships", **span)
    wanted = [[t, t / 10] for t in range(10, 20)] + [[80, 80]]
    assert (sorted(all_of_it["places"]), all_of_it["count"]) == (wanted, 11)
    few = told(client, "/page/places/ships", **span, limit=4)
    assert (len(few["places"]), few["count"]) == (4, 11)
    assert all(one in wanted for one in few["places"])
    assert client.get("/page/places/ships", params={"from": at(10)}).status_code == 400
    refused = client.get("/page/places/ships", params={**span, "limit": 10_001})
    assert (refused.status_code, refused.json()["hint"]) == (400, "from 1 to 10000")
    assert client.get("/page/places/none", params=span).status_code == 404


def test_places_of_a_plane_are_where_the_map_shows_it(place, client):
    rows = "".join(f"a{k},{k},{100 * k},{50 * k}\n" for k in range(3))
    post(client, "cars", f"id,t,x,y\n{rows}", CSV)
    cars = Engine(place, "cars")
    cars.work()
    cars.close()
    span = {"from": at(0), "to": at(9)}
    places = np.array(sorted(told(client, "/page/places/cars", **span)["places"]))
    (space,) = (
        one["space"]
        for one in told(client, "/page/state")["streams"]
        if one["name"] == "cars"
    )
    back = places / space["s"] + [space["x0"], space["y0"]]
    assert back == pytest.approx(np.array([[0, 0], [100, 50], [200, 100]]), abs=1e-3)


def test_a_question_about_the_past_is_answered_with_the_places_where_stays_began(
    place, client
):
    post(client, "ships", fix("a", 1, 50, 5) + fix("a", 10, 5, 5) + fix("a", 31, 50, 5))
    post(client, "ships", fix("b", 40, 6, 6) + fix("b", 60, 7, 7))
    run(place.home, place.stream("ships"), until_idle=True)
    stays = ask(client, f"{ZONE} BETWEEN '{at(0)}' AND '{at(59)}'")
    assert (stays["interval"], stays["more"], stays["fixes"]) == (True, False, 5)
    places = [(row["object"], row["lon"], row["lat"]) for row in stays["rows"]]
    assert places == [("a", 5, 5), ("b", 6, 6)]
    assert stays["rows"][0]["to_ts"].startswith("1970-01-01T00:00:31")
    then = ask(client, f"{ZONE} AS OF '{at(20)}'")
    assert [(row["object"], row["lon"]) for row in then["rows"]] == [("a", 5)]
    few = ask(client, f"{ZONE} BETWEEN '{at(0)}' AND '{at(59)}'", limit=1)
    assert (len(few["rows"]), few["more"]) == (1, True)
    late = client.post("/page/ask", content=f"{ZONE} AS OF '{at(3000)}'")
    assert late.status_code == 400
    assert "has not come to" in late.json()["error"]


def test_a_question_that_reads_too_much_is_refused(place, client, monkeypatch):
    monkeypatch.setattr(asks, "MOST_FIXES", 2)
    post(client, "ships", "".join(fix("a", t, 1, 1) for t in range(3)))
    run(place.home, place.stream("ships"), until_idle=True)
    text = f"{ZONE} AS OF '{at(2)}'".encode()
    with pytest.raises(QueryError, match="more than 2"):
        asks.ask(Parameters(place=place, path={}, params={}, body=text))


def test_a_select_is_checked_and_what_is_wrong_has_its_place(client):
    right = client.post("/page/check", content="select * from SHIPS inside (0,0,10,10)")
    assert right.json() == {
        "ok": True,
        "stream": "ships",
        "kind": "range",
        "text": right.json()["text"],
        "dwell_s": None,
    }
    assert client.put("/v1/queries/q", content=right.json()["text"]).status_code == 201
    wrong = client.post("/page/check", content="SELECT * FROM ships INSDE (0, 0, 1, 1)")
    assert wrong.status_code == 400
    assert "line 1, column 21" in wrong.json()["error"]
    unknown = client.post("/page/check", content="SELECT * FROM ships WHERE depth > 3")
    assert unknown.status_code == 400


def test_what_may_come_next_is_completed(client):
    def complete(text, cursor=None):
        body = {"text": text, "cursor": len(text) if cursor is None else cursor}
        answer = client.post("/page/complete", json=body)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        return told["from"], {one["text"]: one["about"] for one in told["options"]}

    start, options = complete("SELECT * FROM sh")
    assert (start, options) == (14, {"ships": "stream"})
    start, options = complete("SELECT * FROM ships WH")
    assert (start, list(options)) == (20, ["WHERE"])
    assert "draught" in complete("SELECT * FROM ships WHERE dr")[1]
    assert complete("SELECT * FROM sh INSIDE (0,0,1,1)", 16)[1] == {"ships": "stream"}
    assert client.post("/page/complete", json={"text": 3}).status_code == 400


def drawn(geometry):
    return None if geometry is None else shapely.from_geojson(json.dumps(geometry))


def test_shapes_of_queries_are_where_they_are_now(place, client, engine, tmp_path):
    texts = {
        "box": ZONE,
        "around": "SELECT * FROM ships INSIDE ('M', 'a', 1000 m)",
        "near": "SELECT * FROM ships KNN ('M', 2, 'a')",
        "lost": "SELECT * FROM ships INSIDE ('M', 'nobody', 1000 m)",
    }
    for name, text in texts.items():
        made = client.put(f"/v1/queries/{name}", content=text)
        assert made.status_code == 201, made.text
    post(client, "ships", fix("a", 1, 20, 30))

    def shapes(query):
        found = told(client, f"/page/shapes/{query}")["features"]
        return [(drawn(one["geometry"]), one["properties"]) for one in found]

    ((box, about),) = shapes("box")
    assert box.equals(shapely.box(0, 0, 10, 10))
    assert about == {"role": "region", "follows": None, "follows_at": None}
    ((circle, about),) = shapes("around")
    assert about == {"role": "region", "follows": "a", "follows_at": [20, 30]}
    assert circle.centroid.coords[0] == pytest.approx((20, 30), abs=0.001)
    assert circle.bounds[3] - 30 == pytest.approx(0.00902, abs=0.0001)
    assert circle.area / circle.envelope.area == pytest.approx(math.pi / 4, abs=0.01)
    ((centre, about),) = shapes("near")
    assert (about["role"], centre.coords[0]) == ("centre", (20, 30))
    ((nothing, about),) = shapes("lost")
    assert (nothing, about["follows"], about["follows_at"]) == (None, "nobody", None)
    assert client.get("/page/shapes/none").status_code == 404


def test_features_in_an_answer_are_among_its_shapes(place, client, engine, tmp_path):
    file = tmp_path / "parks.geojson"
    feature = {
        "type": "Feature",
        "id": "p1",
        "geometry": json.loads(shapely.to_geojson(shapely.box(0, 0, 4, 2))),
        "properties": {"fid": "p1", "kind": "park"},
    }
    far = {**feature, "id": "p2", "geometry": json.loads(shapely.to_geojson(shapely.box(50, 0, 54, 2)))}  # fmt: skip
    file.write_text(
        json.dumps({"type": "FeatureCollection", "features": [feature, far]})
    )
    load(place.home, "parks", file, group="default")
    text = "SELECT * FROM ships JOIN parks ON ST_Within(ships, parks)"
    made = client.put("/v1/queries/walks", content=text)
    assert made.status_code == 201, made.text
    post(client, "ships", fix("a", 1, 2, 1))
    engine.work()
    (partner,) = told(client, "/page/shapes/walks")["features"]
    assert (partner["properties"]["role"], partner["properties"]["fid"]) == ("partner", "p1")  # fmt: skip


def test_regions_are_told_with_their_load(place, client):
    bounds = np.array([[-np.inf, -np.inf, 5, np.inf], [5, -np.inf, np.inf, np.inf]])
    regions = Regions(group="default", version=0, region_id=["0", "1"], bounds=bounds)
    assert told(client, "/page/regions/ships")["features"] == []
    store(place.home, regions, np.array([30, 10]), "sample, kd")
    features = told(client, "/page/regions/ships")["features"]
    assert [one["properties"] for one in features] == [
        {"region": "0", "rows": 30, "share": 1.0, "objects": None},
        {"region": "1", "rows": 10, "share": pytest.approx(1 / 3), "objects": None},
    ]
    post(client, "ships", fix("a", 1, 2, 1) + fix("b", 1, 7, 1) + fix("c", 1, 8, 1))
    client.get("/page/live/ships")
    features = told(client, "/page/regions/ships")["features"]
    assert [one["properties"]["objects"] for one in features] == [1, 2]
    corners = np.array(features[0]["geometry"]["coordinates"])
    assert np.isfinite(corners).all()
    assert corners[0][:, 0].max() == 5


BOXES = """
[streams.boxes]
format = "boxes"
columns = { object = "key", box = SIDES }
crs = "planar"
max_ahead_s = "off"
engine = "local"
group = "space"
"""


@pytest.mark.spec("B2")
@pytest.mark.parametrize("dimensions", [1, 3])
def test_regions_of_other_dimensions_are_told_as_rectangles_each_once(
    place, client, dimensions
):
    sides = [f"{side}{n + 1}" for n in range(dimensions) for side in ("lo", "hi")]
    settings = place.conf / "streams.toml"
    boxes = BOXES.replace("SIDES", json.dumps(sides))
    settings.write_text(settings.read_text() + boxes)
    points = np.random.default_rng(1).uniform(0, 9, (200, dimensions))
    split = median_split(points, 8)
    made = Regions(group="space", version=0, region_id=split.paths, bounds=split.bounds)
    store(place.home, made, np.arange(8), "elements, median")
    client.get("/page/live/boxes")
    answer = told(client, "/page/regions/boxes")
    told_of = [one["properties"] for one in answer["features"]]
    assert (answer["group"], answer["dimensions"]) == ("space", dimensions)
    names = [name for one in told_of for name in one["region"].split(", ")]
    assert sorted(names) == split.paths
    assert sum(one["rows"] for one in told_of) == 28
    assert len(told_of) == (4 if dimensions == 3 else 8), "two lie above each other"
    corners = [one["geometry"]["coordinates"] for one in answer["features"]]
    assert np.isfinite(np.array(corners)).all()
    assert len({json.dumps(one) for one in corners}) == len(told_of)
    # where objects are is known by x and y alone
    assert {one["objects"] for one in told_of} == ({None} if dimensions == 3 else {0})


def test_planes_are_told_in_the_coordinates_of_the_map(place, client):
    engine = Engine(place, "cars")
    try:
        post(client, "cars", "id,t,x,y\na,1,0,0\na,2,2000,1000\n", CSV)
        engine.work()
        space = told(client, "/page/state")["streams"][1]["space"]
        way = told(client, "/page/ways/cars", object="a")["fixes"]
    finally:
        engine.close()
    back = [[lon / space["s"] + space["x0"], lat / space["s"] + space["y0"]] for _, lon, lat in way]  # fmt: skip
    assert back == [pytest.approx([0, 0], abs=1e-6), pytest.approx([2000, 1000])]
