"""The description of the API: real answers of every endpoint that gives JSON are what it says, key by key."""

import json
from collections import defaultdict

import jsonschema
import pytest

from st_common.config.home import Home
from st_common.engine.run import run
from st_common.layers.load import load
from st_common.query.leases import leased
from st_common.server.app import ENDPOINTS
from st_common.server.installation import Installation
from st_common.server.ogc import OPENAPI
from st_common.server.openapi import description
from tests.kit.server_http import served

PUBLIC = [one for one in ENDPOINTS if one.is_public]
pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { speed = "double m/s" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"

[streams.broken]
format = "csv"
"""
RING = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
ZONES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "id": name,
            "properties": {"kind": "park"},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for name, ring in {"z": RING, "open": RING[:2]}.items()
    ],
}
ZONE = "SELECT object, speed FROM ships INSIDE (0, 0, 10, 10)"
QUERIES = """
REGISTER QUERY pairs AS SELECT * FROM ships JOIN zones z ON ST_Intersects(ships, z);
REGISTER QUERY around AS SELECT * FROM ships INSIDE ('M', 'a', 500 m);
REGISTER QUERY n AS SELECT COUNT(*) AS n FROM ships;
REGISTER QUERY nobody AS SELECT * FROM ships JOIN zones z ON ST_Intersects(ships, z) INSIDE (50, 50, 51, 51);
CREATE AREA harbour AS (0, 0, 1, 1)
"""
THEN = "2023-11-14T22:13:30Z"
SPAN = "from=2023-11-14T22:00:00Z&to=2023-11-14T23:00:00Z"
NDJSON = {"content-type": "application/x-ndjson"}
JSON_MEDIA = ("application/json", "application/geo+json", OPENAPI)
BEFORE = [
    ("POST", "/v1/queries", "/v1/queries", {"content": QUERIES}),
    ("PUT", "/v1/queries/{query}", "/v1/queries/zone", {"content": ZONE}),
]
ASKED = [
    ("GET", "/v1/queries", "/v1/queries", {}),
    *(
        ("GET", path, path.format(query=query) + more, {})
        for query in ("zone", "pairs", "around", "n", "nobody")
        for path, more in (
            ("/v1/queries/{query}", ""),
            ("/v1/answers/{query}", ""),
            ("/v1/answers/{query}", f"?at={THEN}"),
            ("/v1/explain/{query}", ""),
            ("/page/shapes/{query}", ""),
            ("/page/shapes/{query}", f"?at={THEN}"),
            ("/page/changes/{query}", f"?{SPAN}"),
            ("/v1/verify/{query}", ""),
        )
        if path != "/v1/verify/{query}"
    ),
    ("POST", "/v1/explain", "/v1/explain", {"content": ZONE}),
    ("GET", "/v1/objects", "/v1/objects?stream=ships", {}),
    ("GET", "/v1/objects", f"/v1/objects?stream=ships&at={THEN}", {}),
    ("GET", "/v1/objects", "/v1/objects?stream=ships&near=1,1,2", {}),
    ("GET", "/v1/layers", "/v1/layers", {}),
    ("GET", "/v1/tables", "/v1/tables", {}),
    ("PUT", "/v1/tables/{table}/rows", "/v1/tables/zones/rows", {"json": {**ZONES["features"][0], "id": "y"}}),
    ("GET", "/v1/tables/{table}/rows", "/v1/tables/zones/rows?key=y", {}),
    ("GET", "/v1/tables/{table}/items", "/v1/tables/zones/items?bbox=0,0,2,2", {}),
    ("GET", "/v1/tables/{table}/joined/{other}", "/v1/tables/zones/joined/zones?bbox=0,0,2,2", {}),
    ("DELETE", "/v1/tables/{table}/rows", "/v1/tables/zones/rows?key=y", {}),
    ("GET", "/v1/status", "/v1/status", {}),
    ("GET", "/v1/why/{query}", "/v1/why/zone?object=a", {}),
    ("GET", "/v1/why/{query}", "/v1/why/pairs?object=a", {}),
    ("POST", "/v1/verify", "/v1/verify", {}),
    ("POST", "/v1/verify/{query}", "/v1/verify/zone", {}),
    ("POST", "/v1/sql", "/v1/sql", {"content": "SELECT * FROM changes"}),
    ("GET", "/v1/openapi.json", "/v1/openapi.json", {}),
    *(("GET", path, path, {}) for path in ("/v1/ogc", "/v1/ogc/conformance")),
    ("GET", "/v1/ogc/collections", "/v1/ogc/collections", {}),
    *(
        ("GET", "/v1/ogc/collections/{collection}" + more, f"/v1/ogc/collections/{name}{more}", {})
        for name in ("layers.zones", "objects.ships", "answers.zone", "visits.ships")
        for more in ("", "/items")
    ),
    *(
        ("GET", "/v1/ogc/collections/{collection}/items/{feature}", f"/v1/ogc/collections/{one}", {})
        for one in ("layers.zones/items/z", "objects.ships/items/a")
    ),
    ("GET", "/page/state", "/page/state", {}),
    ("GET", "/page/courses", "/page/courses", {}),
    ("POST", "/page/ask", "/page/ask", {"content": f"{ZONE} AS OF '{THEN}'"}),
    ("POST", "/page/check", "/page/check", {"content": ZONE}),
    ("POST", "/page/complete", "/page/complete", {"json": {"text": "SELECT * FR", "cursor": 11}}),
    ("GET", "/page/ways/{stream}", "/page/ways/ships?object=a", {}),
    ("GET", "/page/places/{stream}", f"/page/places/ships?{SPAN}", {}),
    ("GET", "/page/object/{stream}/{object}", "/page/object/ships/a", {}),
    ("GET", "/page/visits", "/page/visits?stream=ships", {}),
    ("GET", "/page/regions/{stream}", "/page/regions/ships", {}),
    ("POST", "/v1/backtest", "/v1/backtest?days=3000", {"content": f"REGISTER QUERY b AS {ZONE}"}),
    ("DELETE", "/v1/queries/{query}", "/v1/queries/zone", {}),
]  # fmt: skip
WRONG = [
    ("POST", "/v1/queries", "/v1/queries", {"content": "REGISTER QUERY a AS SELECT * FROM s"}),
    ("GET", "/v1/answers/{query}", "/v1/answers/none", {}),
    ("GET", "/v1/tables/{table}/rows", "/v1/tables/none/rows?key=y", {}),
    ("PUT", "/v1/tables/{table}/rows", "/v1/tables/zones/rows", {"json": [1]}),
    ("GET", "/page/visits", "/page/visits", {}),
    ("POST", "/page/check", "/page/check", {"content": "SELECT * FROM s"}),
]  # fmt: skip


def fix(ship, t, x, y):
    return json.dumps({"id": ship, "t": t, "x": x, "y": y, "speed": 1.0}) + "\n"


LATER_S = 80_000  # no leap, and past the end of a day
POSTS = [
    fix("a", 1_700_000_000, 0.5, 0.5) + fix("b", 1_700_000_001, 5, 5) + '{"id": "c"}\n',
    '{"id": "c"}\n',
    fix("a", 1_700_000_100, 50, 50) + fix("b", 1_700_000_101 + LATER_S, 5, 6),
    fix("b", 1_700_000_101 + 2 * LATER_S, 5, 7),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The answers of all endpoints, with their status; and the description."""
    root = tmp_path_factory.mktemp("api")
    (root / "conf").mkdir()
    (root / "conf/streams.toml").write_text(SETTINGS)
    (root / "zones.geojson").write_text(json.dumps(ZONES))
    place = Installation(home=Home(root / "home"), conf=root / "conf")
    load(place.home, "zones", root / "zones.geojson", group="default")
    answers = defaultdict(list)
    with served(place) as client:

        def ask(method, path, address, given):
            answer = client.request(method, address, **given)
            answers[method, path].append((answer.status_code, answer.json()))

        for one in BEFORE:
            ask(*one)
        for body in POSTS:
            given = {"content": body, "headers": NDJSON}
            ask("POST", "/v1/streams/{stream}/fixes", "/v1/streams/ships/fixes", given)
        run(place.home, place.streams()["ships"], until_idle=True)
        for one in (*ASKED, *WRONG):
            ask(*one)
        ephemeral = {"content": ZONE, "params": {"ephemeral": 30}}
        ask("PUT", "/v1/queries/{query}", "/v1/queries/leased", ephemeral)
        lease = leased(place.home)["leased"].lease
        for method in ("PUT", "DELETE", "DELETE"):  # the last one is wrong
            ask(method, "/v1/leases/{lease}", f"/v1/leases/{lease}", {})
        published = client.get("/v1/openapi.json").json()
    assert published["paths"] == description("0", PUBLIC)["paths"]
    return answers, description("0", ENDPOINTS)


def closed(schema):
    """A schema of OpenAPI 3.0 as one of JSON Schema that takes no key which it does not name."""
    if not isinstance(schema, dict):
        return schema
    may_be_null = schema.get("nullable")
    made = {
        "properties": {k: closed(v) for k, v in schema.get("properties", {}).items()},
        **({"items": closed(schema["items"])} if "items" in schema else {}),
    }
    if "properties" in schema:
        made["additionalProperties"] = False
    if "additionalProperties" in schema:
        made["additionalProperties"] = closed(schema["additionalProperties"])
    whole = {key: value for key, value in schema.items() if key != "nullable"} | made
    if may_be_null and "type" in schema:
        return {"anyOf": [{"type": "null"}, whole]}
    return whole


def test_every_endpoint_of_json_was_asked_and_answered(seen):
    answers, _ = seen
    known = {(one.method, one.path) for one in ENDPOINTS if one.gives in JSON_MEDIA}
    assert set(answers) == known
    without = [one for one in known if all(code >= 300 for code, _ in answers[one])]
    assert without == []


def test_real_answers_are_what_the_description_says(seen):
    answers, description = seen
    for (method, path), found in answers.items():
        responses = description["paths"][path][method.lower()]["responses"]
        for status, value in found:
            assert status < 500, (path, value)
            assert status >= 400 or str(status) in responses, (method, path, status)
            response = responses.get(str(status), responses["default"])
            (content,) = response["content"].values()
            try:
                jsonschema.validate(value, closed(content["schema"]))
            except jsonschema.ValidationError as error:
                where = f"{method} {path} {status} {list(error.absolute_path)}"
                raise AssertionError(f"{where}: {error.message}") from None


def test_no_answer_and_no_body_is_without_a_schema(seen):
    _, description = seen
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            bodies = [
                operation.get("requestBody", {}),
                *operation["responses"].values(),
            ]
            for body in bodies:
                for content in body.get("content", {}).values():
                    assert content["schema"], (method, path)
    fixes = description["paths"]["/v1/streams/{stream}/fixes"]["post"]["responses"]
    assert {"202", "422"} <= fixes.keys()
