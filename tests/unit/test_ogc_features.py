"""OGC API Features, Part 1: the abstract tests of the standard (17-069r4, annex A), and clients that others wrote.

Each test says of which abstract tests it is. The expected places are converted by pyproj, boxes met by shapely.
"""

import json
import math
from datetime import UTC, datetime

import numpy as np
import openapi_spec_validator
import pyogrio
import pytest
import shapely
from openapi_schema_validator import OAS30Validator, validate
from owslib.ogcapi.features import Features
from pyproj import Transformer

from st_common.config.home import Home
from st_common.engine.run import run
from st_common.layers.load import load
from st_common.server.installation import Installation
from tests.kit.server_http import served

pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"

[streams.works]
format = "ndjson"
columns = { object = "id", event_ts = "t", shape = "geom" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
crs = "EPSG:3067"

[streams.robots]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
crs = "planar"
"""
NDJSON = {"content-type": "application/x-ndjson"}
BEGIN_S = 1_714_521_600  # 2024-05-01T00:00:00Z
WORK = "LINESTRING (385000 6672000, 386000 6672500)"
L_SHAPE = [[0, 0], [4, 0], [4, 1], [1, 1], [1, 4], [0, 4], [0, 0]]
EDGE = [[179, 10], [180, 10], [180, 11], [179, 11], [179, 10]]
COLLECTIONS = {
    *("objects.ships", "visits.ships", "answers.zone"),
    *("objects.works", "visits.works", "layers.parks"),
}
SHIPS = {"a": (1.0, 1.0), "b": (5.0, 5.0), "c": (179.5, 10.5), "d": (-179.5, 10.5)}


def at(seconds):
    return datetime.fromtimestamp(BEGIN_S + seconds, UTC).isoformat()[:19] + "Z"


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A home with a stream in degrees, one in a projected system, one in a plane, a layer and a query.

    Ship a passes 0, 0 at 0 s and is at its place from 60 s on; the others are at theirs from 10, 20 and 30 s on.
    """
    root = tmp_path_factory.mktemp("ogc")
    (root / "conf").mkdir()
    (root / "conf/streams.toml").write_text(SETTINGS)
    features = [
        {
            "type": "Feature",
            "id": fid,
            "properties": {"kind": "park"},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for fid, ring in (("l-shape", L_SHAPE), ("edge", EDGE))
    ]
    (root / "parks.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": features})
    )
    place = Installation(home=Home(root / "home"), conf=root / "conf")
    load(place.home, "parks", root / "parks.geojson", group="default")
    with served(place) as client:
        zone = "SELECT * FROM ships INSIDE (0, 0, 10, 10)"
        client.put("/v1/queries/zone", content=zone).raise_for_status()
        ships = [{"id": "a", "t": BEGIN_S, "x": 0.5, "y": 0.5}]
        ships += [
            {"id": name, "t": BEGIN_S + 10 * number, "x": x, "y": y}
            for number, (name, (x, y)) in enumerate(SHIPS.items())
            if number
        ]
        ships.append({"id": "a", "t": BEGIN_S + 60, "x": 1.0, "y": 1.0})
        ships.append({"id": "b", "t": BEGIN_S + 70, "x": 50.0, "y": 5.0})
        for stream, rows in {
            "ships": ships,
            "works": [{"id": "w", "t": BEGIN_S, "geom": WORK}],
            "robots": [{"id": "r", "t": BEGIN_S, "x": 1, "y": 1}],
        }.items():
            path = f"/v1/streams/{stream}/fixes"
            client.post(path, content=lines(*rows), headers=NDJSON).raise_for_status()
            run(place.home, place.streams()[stream], until_idle=True)
        yield client


def links(document, relation):
    return [one for one in document["links"] if one["rel"] == relation]


def ids(client, collection, **params):
    path = f"/v1/ogc/collections/{collection}/items"
    reply = client.get(path, params=params)
    assert reply.status_code == 200, reply.text
    return [one["id"] for one in reply.json()["features"]]


def test_the_landing_page_leads_to_the_api_its_conformance_and_its_data(client):
    """A.2.2 root-op, root-success; A.2.1 http."""
    reply = client.get("/v1/ogc")
    assert (reply.status_code, reply.http_version) == (200, "HTTP/1.1")
    for relation in ("service-desc", "conformance", "data"):
        (link,) = links(reply.json(), relation)
        there = client.get(link["href"])
        assert there.status_code == 200
        assert there.headers["content-type"] == link["type"]
    (alternate,) = links(reply.json(), "alternate")
    assert alternate["type"] == "text/html"


def test_the_api_is_described_in_valid_openapi(client):
    """A.2.3 api-definition-op and -success; A.5 oas-definition-1 and -2, oas-impl: what is described is there."""
    (link,) = links(client.get("/v1/ogc").json(), "service-desc")
    assert link["type"] == "application/vnd.oai.openapi+json;version=3.0"
    described = client.get(link["href"]).json()
    openapi_spec_validator.validate(described)
    paths = [path for path in described["paths"] if path.startswith("/v1/ogc")]
    assert len(paths) == 6
    known = {"collection": "layers.parks", "feature": "edge"}
    for path in paths:
        reply = client.get(path.format(**known))
        schema = described["paths"][path]["get"]["responses"]["200"]["content"]
        (media,) = schema
        assert reply.headers["content-type"] == media
        validate(reply.json(), schema[media]["schema"], cls=OAS30Validator)


def test_it_conforms_to_core_geojson_and_openapi(client):
    """A.2.4 conformance-op and -success."""
    told = client.get("/v1/ogc/conformance").json()["conformsTo"]
    names = {one.rpartition("/")[2] for one in told}
    assert names == {"core", "geojson", "oas30"}


def test_collections_are_described_alike_in_the_list_and_alone(client):
    """A.2.5 fc-md-op, -success, -links, -items, -items-links, -extent; A.2.6 sfc-md-op, -success."""
    reply = client.get("/v1/ogc/collections")
    (own,) = links(reply.json(), "self")
    assert own["href"] == str(reply.url)
    listed = {one["id"]: one for one in reply.json()["collections"]}
    assert set(listed) == COLLECTIONS
    for name, one in listed.items():
        assert client.get(f"/v1/ogc/collections/{name}").json() == one
        assert one["crs"] == ["http://www.opengis.net/def/crs/OGC/1.3/CRS84"]
        (items,) = links(one, "items")
        assert items["type"] == "application/geo+json"
        features = client.get(items["href"]).json()["features"]
        assert ("spatial" in one["extent"]) == (not name.endswith("works"))
        (box,) = one["extent"].get("spatial", {"bbox": [[-180, -90, 180, 90]]})["bbox"]
        shapes = [shapely.geometry.shape(f["geometry"]) for f in features]
        west, south, east, north = shapely.total_bounds(
            [*shapes, shapely.Point(box[:2])]
        )
        inside = [west >= box[0], south >= box[1], east <= box[2], north <= box[3]]
        assert all(np.array(inside)), name
        temporal = one["extent"].get("temporal")
        assert (temporal is None) == (name == "layers.parks")
        if temporal is not None:
            assert temporal["interval"] == [[at(0), None]]


def test_what_lies_in_a_plane_is_no_collection_and_says_so(client):
    reply = client.get("/v1/ogc/collections/objects.robots/items")
    assert reply.status_code == 404
    assert "a plane without a place on Earth" in reply.json()["error"]
    assert "/v1/objects" in reply.json()["hint"]


def test_geometries_are_longitude_and_latitude_whatever_they_are_stored_in(client):
    """A.2.1 crs84; A.4 geojson-content."""
    (work,) = client.get("/v1/ogc/collections/objects.works/items").json()["features"]
    stored = shapely.get_coordinates(shapely.from_wkt(WORK))
    change = Transformer.from_crs(3067, 4326, always_xy=True)
    lon_lat = np.column_stack(change.transform(*stored.T))
    assert np.allclose(work["geometry"]["coordinates"], lon_lat, atol=2e-9)
    assert math.dist(work["bbox"][:2], lon_lat.min(axis=0)) < 1e-8


@pytest.mark.parametrize(
    ("box", "found"),
    [
        ("0,0,4,4", ["l-shape"]),
        ("2,2,3,3", []),  # in the box of the L, and not in it
        ("3.5,0.5,9,9", ["l-shape"]),
        ("4,1,9,9", ["l-shape"]),  # its corner
        ("2,2,-100,3,3,100", []),
        ("0,0,-100,4,4,100", ["l-shape"]),
        ("179.5,0,-179.5,90", ["edge"]),  # across 180
        ("-180,-90,180,90", ["edge", "l-shape"]),
    ],
)
def test_a_box_finds_geometries_that_meet_it(client, box, found):
    """A.2.7 fc-bbox-definition, fc-bbox-response."""
    assert ids(client, "layers.parks", bbox=box) == found


def test_a_box_across_180_degrees_finds_both_sides(client):
    assert ids(client, "objects.ships", bbox="179,0,-179,20") == ["c", "d"]
    assert ids(client, "objects.ships", bbox="-179.6,0,179,20") == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("when", "found"),
    [
        (at(5), ["a"]),
        (at(25), ["a", "b", "c"]),
        (f"{at(10)}/{at(20)}", ["b", "c"]),
        (f"../{at(15)}", ["a", "b"]),
        (f"/{at(15)}", ["a", "b"]),
        (f"{at(30)}/..", ["a", "b", "d"]),
        (f"{at(30)}/", ["a", "b", "d"]),
        (f"{at(61)}/2100-01-01T00:00:00Z", ["b"]),
        ("2100-01-01T00:00:00Z/..", []),
        ("../..", ["a", "b", "c", "d"]),
    ],
)
def test_datetime_is_an_instant_or_an_interval_that_may_be_open(client, when, found):
    """A.2.7 fc-time-definition, fc-time-response: of objects the last place up to the end counts."""
    assert ids(client, "objects.ships", datetime=when) == found


def test_datetime_counts_for_answers_and_visits_too_and_not_for_layers(client):
    assert ids(client, "answers.zone", datetime=at(15)) == ["a", "b"]
    assert ids(client, "answers.zone", datetime=f"{at(1)}/..") == ["a"]
    visits = client.get("/v1/ogc/collections/visits.ships/items").json()["features"]
    assert {one["properties"]["object"] for one in visits} == {"a", "b"}

    def seen(when):
        found = ids(client, "visits.ships", datetime=when)
        return {one.split("/")[2] for one in found}

    assert seen(at(5)) == {"a"}
    assert seen(at(15)) == {"a", "b"}
    assert seen(f"{at(71)}/..") == {"a"}
    assert seen(f"../{at(5)}") == {"a"}
    assert len(ids(client, "layers.parks", datetime=at(-999))) == 2


def test_pages_follow_each_other_until_all_are_there(client):
    """A.2.7 fc-limit-response, fc-links, fc-timeStamp, fc-numberMatched, fc-numberReturned, fc-response."""
    path = "/v1/ogc/collections/objects.ships/items"
    given = {"limit": 3, "datetime": f"../{at(100)}", "bbox": "-180,-90,180,90"}
    reply = client.get(path, params=given)
    found, known = [], reply.json()
    assert known["numberMatched"] == 4
    stamped = datetime.fromisoformat(known["timeStamp"])
    assert abs((stamped - datetime.now(UTC)).total_seconds()) < 600  # noqa: TID251
    (own,) = links(known, "self")
    assert client.get(own["href"]).json()["features"] == known["features"]
    while True:
        assert known["type"] == "FeatureCollection"
        assert known["numberReturned"] == len(known["features"])
        found += [one["id"] for one in known["features"]]
        following = links(known, "next")
        if not following:
            break
        known = client.get(following[0]["href"]).json()
    assert found == ["a", "b", "c", "d"]


def test_a_limit_above_the_greatest_is_cut(client):
    """A.2.7 fc-limit-definition: from 1 on, and more than the greatest is that."""
    assert len(ids(client, "objects.ships", limit=10_001)) == 4
    assert len(ids(client, "objects.ships", limit=2**62)) == 4
    described = client.get("/v1/openapi.json").json()
    items = described["paths"]["/v1/ogc/collections/{collection}/items"]["get"]
    (limit,) = [one for one in items["parameters"] if one["name"] == "limit"]
    assert limit["schema"]["maximum"] == 10_000
    assert (limit["style"], limit["explode"]) == ("form", False)


@pytest.mark.parametrize(
    "wrong",
    [
        *("bbox=1,2,3", "bbox=1,2,3,4,5", "bbox=a,b,c,d", "bbox=1,2,3,nan", "bbox="),
        *("bbox=0,1,0,0", "limit=0", "limit=-1", "limit=ten", "offset=-1", "crs=4326"),
        *("datetime=noon", "datetime=", "datetime=../../..", "datetime=a/b"),
        "datetime=2024-05-02T00:00:00Z/2024-05-01T00:00:00Z",
    ],
)
def test_parameters_that_are_unknown_or_wrong_are_refused(client, wrong):
    """A.2.1 query-param-unknown, query-param-invalid."""
    reply = client.get(f"/v1/ogc/collections/objects.ships/items?{wrong}")
    assert reply.status_code == 400
    assert wrong.partition("=")[0] in reply.json()["error"]


def test_one_feature_is_as_in_its_collection_with_links(client):
    """A.2.8 f-op, f-success, f-links."""
    path = "/v1/ogc/collections/layers.parks/items"
    for feature in client.get(path).json()["features"]:
        reply = client.get(f"{path}/{feature['id']}")
        assert reply.headers["content-type"] == "application/geo+json"
        one = reply.json()
        (own,), (whole,) = links(one, "self"), links(one, "collection")
        assert own["href"] == str(reply.url)
        assert client.get(whole["href"]).json()["id"] == "layers.parks"
        assert {k: v for k, v in one.items() if k != "links"} == feature
    assert client.get(f"{path}/none").status_code == 404


def test_ids_of_visits_stay_when_more_come(client):
    (first,) = ids(client, "visits.ships", datetime=at(5))
    assert first in ids(client, "visits.ships")
    reply = client.get(f"/v1/ogc/collections/visits.ships/items/{first}")
    assert reply.json()["properties"]["object"] == "a"


def test_owslib_finds_the_api_and_reads_features(client):
    there = Features(str(client.base_url) + "/v1/ogc")
    assert there.api()["openapi"] == "3.0.3"
    assert len(there.conformance()["conformsTo"]) == 3
    assert set(there.feature_collections()) == COLLECTIONS
    told = there.collection_items("objects.ships", bbox=[0, 0, 6, 6], limit=5)
    assert [one["id"] for one in told["features"]] == ["a"]
    edge = there.collection_item("layers.parks", "edge")
    assert edge["geometry"]["coordinates"] == [EDGE]


def test_gdal_reads_what_lies_in_a_box_and_in_an_interval(client):
    source = f"OAPIF:{client.base_url}/v1/ogc"
    layers = {name for name, _ in pyogrio.list_layers(source)}
    assert layers == COLLECTIONS
    about, rows = pyogrio.read_arrow(source, layer="objects.works")
    assert about["crs"] in ("EPSG:4326", "OGC:CRS84")
    (line,) = shapely.from_wkb(rows[about["geometry_name"] or "wkb_geometry"])
    assert shapely.get_coordinates(line)[0][0] == pytest.approx(24.93, abs=0.1)
    assert (
        len(pyogrio.read_arrow(source, layer="layers.parks", bbox=(2, 2, 3, 3))[1]) == 0
    )
