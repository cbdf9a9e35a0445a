"""Whatever is asked of a server: what is wrong with it is said in one line, with 4xx, and the next one is answered."""

import contextlib
import gzip
import json
import urllib.parse

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.layers.load import load
from st_common.server.app import ENDPOINTS
from st_common.server.installation import Installation
from st_common.server.openapi import description
from tests.kit.effort import tries
from tests.kit.server_http import served

SETTINGS = """
[streams.s]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { speed = "double km/h", name = "string" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"

[streams.p]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
engine = "local"
"""
QUERY = "SELECT * FROM s INSIDE (0, 0, 1, 1)"
ZONE = {
    "type": "Feature",
    "id": "z",
    "properties": {},
    "geometry": {
        "type": "Polygon",
        "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]],
    },
}
DEEP = 100_000
WORDS = (
    *("", " ", "-", "-1", "0", "1", "1e999", "nan", "inf", "-inf", "9" * 40, "0.5"),
    *("-" + "9" * 40, "1e-320", "1_0", "٣", "+1", "true", "false", "null", "None"),
    *("0001-01-01", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2023-11-14"),
    *("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00", "10000-01-01"),
    *("1969-12-31T23:59:59Z", "2023-02-30", "2023-11-14T22:13:21Z", "noon", "-0001"),
    *(
        "a\0b",
        "a\nb",
        "a\r\nb: c",
        "a\x1b[2J",
        "é☃",
        "\U0001f600",
        "..",
        "/",
        "../..",
        "%",
    ),
    *(
        "%00",
        "%ff",
        "a" * 5000,
        "'; DROP",
        "$(x)",
        "*",
        "~",
        "s",
        "p",
        "q",
        "z",
        "zones",
    ),
    *("0,0,nan", "0,0,1", "0,0,0", "0,0,-1", "0,0,1e30", "1,2,3", "0,0,1,1", "1,1,0,0"),
    *("nan,nan,nan,nan", "-inf,-inf,inf,inf", "0,0,1e308,1e308", "1e999,0,1", ",,,"),
    *(
        "speed > 5",
        "speed > 'x'",
        "speed >",
        "(" * 2000,
        "speed IN (" + "1," * 5000 + "1)",
    ),
    *("objects.s", "visits.s", "answers.q", "layers.zones", "layers.none", "objects.p"),
    *("newest", "longest", "1.5", "0x10", "1" * 5000),
)
SELECTS = (
    *(QUERY, f"{QUERY} AS OF '2023-11-14T22:13:21Z'", f"{QUERY} AS OF '0001-01-01'"),
    f"{QUERY} BETWEEN '0001-01-01' AND '9999-12-31T23:59:59Z'",
    *(
        "SELECT 1",
        "SELECT",
        "SELECT * FROM layer_zones",
        "SELECT * FROM changes",
        "SELEC",
    ),
    *("SELECT * FROM 'x.csv'", "SELECT now(), 'infinity'::TIMESTAMP", "SELECT x'00ff'"),
    *(
        "SELECT 1 AS fields",
        "SELECT '{' AS fields",
        "SELECT NULL AS geometry",
        "EXPLAIN x",
    ),
    *(
        "SELECT {'a': [1]}, map {1: x'00'}, INTERVAL 1 MONTH, 1::HUGEINT, 'nan'::DOUBLE",
    ),
    *("SELECT TIMESTAMP_NS '2023-11-14 22:13:21.123456789'", "SELECT TIME '24:00'"),
    *("SELECT " + "[" * 3000, "SELECT " + "(" * DEEP, "SELECT '" + "x" * 300_000 + "'"),
    f"REGISTER QUERY n AS {QUERY}",
    QUERY + " " * 2_000_001,
    "SELECT * FROM s WHERE speed IN (" + "1," * 20_000 + "1)",
    "SELECT * FROM s WHERE " + "NOT " * 5000 + "speed > 1",
    "SELECT * FROM s WHERE " + " AND ".join(["speed > 1"] * 3000),
    "SELECT * FROM s WHERE " + "(" * DEEP + "speed > 1",
    "SELECT * FROM s INSIDE POLYGON ((" + "0 0, " * 20_000 + "0 0))",
    "SELECT * FROM s INSIDE (nan, 0, 1, 1)",
    "SELECT * FROM s INSIDE CIRCLE (1e308, 1e308, 1e308)",
    *("SELECT KNN(0) FROM s", "DROP QUERY q; DROP QUERY q", "\ufeff" + QUERY, "\0"),
)
BODIES = (
    *(
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"\xff\xfe",
        b"\0" * 100,
        bytes(range(256)),
    ),
    *(b"[" * DEEP, b"{" * DEEP, b'{"a":' * DEEP, b"[" * DEEP + b"]" * DEEP),
    *(
        b'{"text": 1}',
        b'{"text": "\\ud800"}',
        b'{"text": "S", "cursor": -1}',
        b"1" * 10_000,
    ),
    *(b'{"text": "S", "cursor": 1e999}', b'{"text": "S", "cursor": true}'),
    b'{"text": "SELECT * FROM s", "cursor": 99999999999999999999}',
    b'{"id": "a", "t": 1e400, "x": 1e400, "y": NaN}',
    b'{"id": "a", "t": 99999999999999999999999, "x": 0.5, "y": 0.5}',
    b'{"id": ' + b"[" * 5000 + b'], "t": 1, "x": 0.5, "y": 0.5}',
    b'{"id": "a", "t": 1700000000, "x": 0.5, "y": 0.5, "speed": "'
    + b"9" * 9999
    + b'"}',
    b"id,t,x,y\n" + b'"' * 10_001,
    b'{"type": "FeatureCollection", "features": [' + b"{}," * 1000 + b"{}]}",
    *(b"\x1f\x8b\x08\0", b"ARROW1\0\0", b"\xff\xff\xff\xff\x10\0\0\0" + b"\0" * 40),
    *(text.encode() for text in SELECTS),
    *(json.dumps({"text": text}).encode() for text in SELECTS),
)
TYPES = (
    *(
        "",
        ";",
        "text/html",
        "text/plain; charset=utf-16",
        "application/json; charset=x",
    ),
    *(
        "multipart/form-data",
        "application/vnd.apache.arrow.stream",
        "TEXT/CSV",
        "a" * 3000,
    ),
)
ODD = (
    "%",
    "%zz",
    "%00",
    "%c0%af",
    "%ed%a0%80",
    "%2e%2e%2f",
    "%252f",
    "+",
    "%f4%90%80%80",
)
"""Percent-encodings: torn, doubled, too long for their character, of half a pair, above Unicode, of other folders."""
USUAL = {
    "stream": ("s", "p"),
    "query": ("q",),
    "layer": ("zones",),
    "collection": ("objects.s", "visits.s", "answers.q", "layers.zones", "objects.p"),
    "feature": ("a", "z"),
    "object": ("a",),
    **dict.fromkeys(("z", "x", "y"), ("0", "1", "22")),
}
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, each in description("0", ENDPOINTS)["paths"].items()
    for method, operation in each.items()
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A server of a home that has seen something."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(SETTINGS)
    (root / "zone.geojson").write_text(json.dumps(ZONE))
    home = Home(root / "home")
    load(home, "zones", root / "zone.geojson", group="default")
    fixes = "".join(
        json.dumps({"id": name, "t": 1700000000 + n, "x": 0.5 + n, "y": 0.5}) + "\n"
        for n in range(3)
        for name in "ab"
    )
    with served(Installation(home=home, conf=root / "conf")) as client:
        assert client.put("/v1/queries/q", content=QUERY).status_code == 201
        assert client.post("/v1/streams/s/fixes", content=fixes).status_code == 202
        run(home, load_streams(root / "conf")["s"], until_idle=True)
        yield client


def hostile(name):
    """Words for a parameter, half of them such as it may have."""
    words = st.one_of(st.sampled_from(WORDS), st.text(max_size=20))
    usual = USUAL.get(name)
    return words if usual is None else st.one_of(st.sampled_from(usual), words)


@st.composite
def requests(draw, name):
    """A request to an operation: address, headers, body."""
    operation, (method, path) = OPERATIONS[name], name.split(" ")
    given = []
    for one in operation["parameters"]:
        how_often = 1 if one["in"] == "path" else draw(st.sampled_from((0, 0, 1, 1, 2)))
        for _ in range(how_often):
            word = encoded(draw)
            if word is None:
                text = draw(hostile(one["name"])).encode("utf-8", "surrogatepass")
                word = urllib.parse.quote(text, safe="")
            if one["in"] == "path":
                path = path.replace(f"{{{one['name']}}}", word)
            else:
                given.append(f"{one['name']}={word}")
    if given:
        path += "?" + "&".join(given)
    kinds = list(operation.get("requestBody", {}).get("content", ()))
    headers = {"content-type": draw(st.sampled_from([*kinds, *TYPES]))}
    if draw(st.booleans()):
        words = ("x", "1/2/3", "q/1/a/~/9/0", "9" * 400, "a" * 3000, "*")
        key = draw(st.sampled_from(["last-event-id", "idempotency-key", "accept"]))
        headers[key] = draw(st.sampled_from(words))
    body = draw(st.one_of(st.sampled_from(BODIES), st.binary(max_size=200)))
    if kinds and draw(st.integers(0, 3)) == 0:
        headers["content-encoding"], body = draw(st.sampled_from(lies(body)))
    return method, path, headers, body if kinds else b""


def encoded(draw):
    """A percent-encoding that is none, or None for a word that is encoded as it should be."""
    return draw(st.sampled_from(ODD)) if draw(st.integers(0, 7)) == 0 else None


def lies(body):
    """A body as gzip: such as it says, none, torn, with a wrong sum, with more behind it, and twice."""
    packed = gzip.compress(body, mtime=0)
    wrong = packed[:-8] + bytes(8)
    return [
        *(("gzip", one) for one in (packed, body, packed[:-3], wrong, packed + b"x")),
        *(("gzip", gzip.compress(packed)), ("gzip, gzip", packed), ("br", packed)),
        *(("identity", packed), ("GZIP", packed * 2)),
    ]


@pytest.mark.spec("S8")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", OPERATIONS, ids=str)
@tries(8)
@given(data=st.data())
def test_whatever_is_asked_is_answered_or_refused_in_words(client, name, data):
    method, path, headers, body = data.draw(requests(name))
    judged(client, method, path, headers, body)
    if data.draw(st.integers(0, 15)) == 0:
        assert_honest(client)


def assert_honest(client):
    """The next who asks for what is right gets it, whatever was asked before."""
    fix = b'{"id": "honest", "t": 1700000000, "x": 0.5, "y": 0.5}\n'
    posted = client.post("/v1/streams/s/fixes", content=fix)
    assert (posted.status_code, posted.json()["records"]) == (202, 1), posted.text
    assert "s" in {one["stream"] for one in client.get("/v1/status").json()["streams"]}
    if client.get("/v1/queries/q").status_code == 404:  # a DELETE of it was honest too
        assert client.put("/v1/queries/q", content=QUERY).status_code == 201
    assert client.get("/v1/answers/q").status_code == 200


def judged(client, method, path, headers=None, body=b""):
    with contextlib.suppress(httpx.InvalidURL):
        how = {"headers": headers or {}, "content": body}
        with client.stream(method, path, **how) as reply:
            asked = (method, path[:300], headers, body[:300])
            if reply.headers.get("content-type", "").startswith("text/event-stream"):
                return  # it goes on for ever
            text = reply.read().decode("utf-8", "replace")
        assert reply.status_code < 500, (asked, text[:500])
        assert "/hostile" not in text  # the folder of the home
        if reply.status_code >= 400 and method != "HEAD":
            told = json.loads(text)
            assert set(told) >= {"error", "hint"}
            assert "\n" not in told["error"]


WRONG = [
    ("GET", "/v1/answers/q?at=0001-01-01", b""),
    ("GET", "/v1/answers/q?at=0001-01-01T00:00:00%2B14:00", b""),
    ("GET", "/v1/answers/q?at=9999-12-31T23:59:59-14:00", b""),
    ("GET", "/v1/objects?stream=s&at=0001-01-01", b""),
    ("GET", "/page/tiles/zones/%/%/%0A.mvt", b""),
    ("GET", "/v1/objects?stream=s&near=0,0,nan", b""),
    ("GET", "/v1/objects?stream=s&near=0,0,1e30", b""),
    ("GET", "/v1/objects?stream=s&near=0,0,0.5", b""),
    ("GET", "/v1/objects?stream=s&bbox=1,1,0,0", b""),
    ("GET", "/v1/objects?stream=s&where=" + "(" * 5000, b""),
    ("GET", "/page/object/s/a?at=0001-01-01", b""),
    ("GET", "/page/visits?from=0001-01-01&to=9999-12-31", b""),
    ("GET", "/page/ways/s?object=a&from=0001-01-01&to=9999-12-31", b""),
    ("GET", "/page/past/s?at=0001-01-01", b""),
    ("GET", "/v1/why/q?object=a&at=0001-01-01", b""),
    ("GET", "/v1/ogc/collections/objects.s/items?datetime=0001-01-01", b""),
    ("POST", "/page/complete", b'{"text": "S", "cursor": 1e999}'),
    ("POST", "/v1/backtest?days=99999999999", QUERY.encode()),
    *(
        ("POST", path, body)
        for path in (
            "/v1/streams/s/fixes",
            "/v1/queries",
            "/v1/sql",
            "/page/ask",
            "/page/check",
        )
        for body in (b"[" * DEEP, b'{"a":' * DEEP, ("(" * DEEP).encode())
    ),
    *(
        ("POST", "/v1/queries", f"REGISTER QUERY n AS {text}".encode())
        for text in SELECTS
    ),
    *(("POST", "/v1/sql", text.encode()) for text in SELECTS),
    *(("POST", "/page/ask", text.encode()) for text in SELECTS),
]


@pytest.mark.spec("S8")
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_once_was_a_defect_is_refused_in_words(client, number):
    method, path, body = WRONG[number]
    kinds = ({"content-type": "text/plain"}, {"content-type": "application/json"})
    for headers in kinds if body else ({},):
        judged(client, method, path, headers, body)
