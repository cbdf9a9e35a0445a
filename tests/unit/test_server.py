"""A server as programs use it: fixes in, queries, answers, changes as they happen, features for GIS."""

import contextlib
import gzip
import json
import re
import threading
import time
from collections import deque

import httpx
import pyarrow as pa
import pyogrio
import pytest

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.errors import ConfigError
from st_common.layers.load import load
from st_common.log.log import Log
from st_common.operations import lease
from st_common.server.app import ENDPOINTS, application
from st_common.server.engines import Engines
from st_common.server.guard import Limits
from st_common.server.installation import Installation
from st_common.server.serve import require_token
from tests.kit.feeding import lines_of, payloads_of
from tests.kit.server_http import Engine, events, served

pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { speed = "double m/s" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"

[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"

[streams.walks]
format = "gpx"
columns = { object = "trk/name", event_ts = "time", x = "lon", y = "lat" }
max_ahead_s = "off"
"""
ZONE = "SELECT object, speed FROM ships INSIDE (0, 0, 10, 10)"


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(tmp_path / "home"), conf=conf)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A server with a query, and its home's folder: for requests that are refused, and so leave it as it is."""
    root = tmp_path_factory.mktemp("asked")
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(SETTINGS)
    with served(Installation(home=Home(root / "home"), conf=root / "conf")) as client:
        client.put("/v1/queries/zone", content=ZONE).raise_for_status()
        yield client, root


@pytest.fixture
def engine_of(place):
    """Makes engines, and closes them."""
    with contextlib.ExitStack() as stack:

        def made(name="ships"):
            engine = Engine(place, name)
            stack.callback(engine.close)
            return engine

        yield made


def fix(ship, t, x, y, speed=1.0):
    return json.dumps({"id": ship, "t": t, "x": x, "y": y, "speed": speed}) + "\n"


def post(client, *fixes, stream="ships", **headers):
    named = {"content-type": "application/x-ndjson"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(
        f"/v1/streams/{stream}/fixes", content="".join(fixes), headers=named
    )


def test_whoever_posts_mostly_what_cannot_be_read_is_warned(place, client):
    bad = '{"id": "a", "when": 1, "x": 1, "y": 1}\n'
    told = post(client, bad, bad, fix("a", 1, 1, 1))
    assert told.status_code == 202
    assert "mostly missing_time" in told.json()["warning"]
    assert "warning" not in post(client, fix("a", 1, 1, 1), stream="vans").json()


def test_a_body_may_be_packed_by_gzip_and_is_bounded_while_it_is_unpacked(client):
    one, path = fix("a", 1, 1, 1).encode(), "/v1/streams/ships/fixes"
    packed = gzip.compress(one * 3)
    for headers in ({}, {"content-encoding": "gzip"}):
        told = client.post(path, content=packed, headers=headers)
        assert told.status_code == 202
        assert told.json()["accepted"] == 3
    bomb = gzip.compress(one * 1_000_000)
    assert client.post(path, content=bomb).status_code == 413
    assert client.post(path, content=packed[:-6]).status_code == 400
    other = {"content-encoding": "br"}
    assert client.post(path, content=one, headers=other).status_code == 415


@pytest.mark.spec("X14")
def test_late_fixes_are_a_warning_of_their_stream(place, client):
    times = [10, 11, 500, 12, 13, 14]  # each but 500 of an object with newer fixes
    assert post(client, *(fix("a", t, 1, 1) for t in times)).status_code == 202
    run(place.home, place.streams()["ships"], until_idle=True)
    (ships, *_) = client.get("/v1/status").json()["streams"]
    assert ships["late"] == 3
    assert ships["warnings"][:2] == [
        "3 of 6 fixes (50 %) came too late and changed no answer",
        "late are those of a 3",
    ]
    (shown, *_) = client.get("/page/state").json()["streams"]
    assert shown["warnings"] == ships["warnings"]


def test_a_query_is_put_fixes_are_posted_and_its_changes_and_answer_are_read(
    place, client, engine_of
):
    assert client.put("/v1/queries/zone", content=ZONE).status_code == 201
    told = post(client, fix("a", 1, 1, 1, 3.5), fix("b", 2, 20, 1))
    assert told.status_code == 202
    assert told.json()["records"] == 2
    engine = engine_of()
    engine.work()
    (row,) = client.get("/v1/answers/zone").json()["rows"]
    assert row["object"] == "a"
    assert row["fields"] == {"object": "a", "speed": 3.5}
    post(client, fix("a", 5, 30, 1), fix("c", 6, 2, 2))
    engine.work()
    assert [one["object"] for one in client.get("/v1/answers/zone").json()["rows"]] == [
        "c"
    ]
    then = client.get("/v1/answers/zone", params={"at": "1970-01-01T00:00:03Z"}).json()
    assert [one["object"] for one in then["rows"]] == ["a"]
    seen = client.get(
        "/v1/objects", params={"stream": "ships", "bbox": "0,0,25,5"}
    ).json()
    assert [one["object"] for one in seen["rows"]] == ["b", "c"]
    near = client.get(
        "/v1/objects", params={"stream": "ships", "near": "29,1,1"}
    ).json()
    assert [one["object"] for one in near["rows"]] == ["a"]
    verdict = client.post("/v1/verify/zone").json()
    assert (verdict["holds"], verdict["queries"][0]["members"]) == (True, 1)
    (count,) = client.post(
        "/v1/sql", content="SELECT count(*) AS n FROM changes"
    ).json()["rows"]
    assert count == {"n": 3}
    why = client.get("/v1/why/zone", params={"object": "a"}).json()
    assert why["change"]["sign"] == -1
    assert "INSIDE" in client.get("/v1/explain/zone").json()["lines"][0]
    (ships, *_) = client.get("/v1/status").json()["streams"]
    assert (ships["stream"], ships["segments"] >= 3) == ("ships", True)
    assert client.delete("/v1/queries/zone").status_code == 200
    (dropped,) = client.get("/v1/queries").json()["queries"] or [{"state": "none"}]
    assert dropped["state"] != "running"


def test_what_a_query_costs_is_counted_over_what_is_archived(place, client):
    client.put("/v1/queries/zone", content=ZONE)
    post(client, fix("a", 1, 1, 1), fix("b", 2, 20, 1), fix("a", 5, 30, 1))
    early = client.get("/v1/explain/zone", params={"analyze": "true"})
    assert early.status_code == 400
    assert "error" in early.json()
    run(place.home, load_streams(place.conf)["ships"], until_idle=True)
    lines = client.get("/v1/explain/zone", params={"analyze": "true"}).json()["lines"]
    assert any(line.startswith("actual    over 3 archived fixes") for line in lines)
    assert client.get("/v1/explain/zone", params={"analyze": "so"}).status_code == 400


def test_members_are_where_their_last_fix_was_before_it_is_judged_or_archived(
    client, engine_of
):
    client.put("/v1/queries/zone", content=ZONE)
    post(client, fix("a", 1, 1, 1))
    engine_of().work()
    post(client, fix("a", 2, 3, 1))  # no engine has seen it
    (row,) = client.get("/v1/answers/zone").json()["rows"]
    assert (row["x"], row["y"]) == (3.0, 1.0)
    for name, key in (("answers.zone", "a"), ("objects.ships", "a")):
        one = client.get(f"/v1/ogc/collections/{name}/items/{key}").json()
        assert one["geometry"]["coordinates"] == [3.0, 1.0]


def test_answers_and_objects_warn_of_late_fixes(place, client):
    def work():
        run(place.home, load_streams(place.conf)["ships"], until_idle=True)

    client.put("/v1/queries/zone", content=ZONE)
    post(client, fix("a", 100, 1, 1), fix("b", 100, 1, 1))
    work()
    assert "warnings" not in client.get("/v1/answers/zone").json()
    post(client, *(fix("a", t, 1, 1) for t in range(20, 30)))
    work()
    for path in ("/v1/answers/zone", "/v1/objects?stream=ships"):
        (first, *_) = client.get(path).json()["warnings"]
        assert "10 of 12 fixes (83 %) came too late" in first, path


CSV = "id,t,x,y,speed\na,1,2,3,4.5\n"
GEO = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [2, 3]},
            "properties": {"id": "a", "t": 1, "speed": 4.5},
        }
    ],
}


def arrow():
    table = pa.table({"id": ["a"], "t": [1], "x": [2.0], "y": [3.0], "speed": [4.5]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/x-ndjson", fix("a", 1, 2, 3, 4.5)),
        ("application/json", "[" + fix("a", 1, 2, 3, 4.5) + "]"),
        ("application/json; charset=utf-8", fix("a", 1, 2, 3, 4.5).replace(",", ",\n")),
        ("text/csv", CSV),
        ("application/vnd.apache.arrow.stream", arrow()),
    ],
    ids=("ndjson", "array", "object", "csv", "arrow"),
)
@pytest.mark.parametrize("stream", ["ships", "cars"])
def test_fixes_come_in_many_forms_into_streams_of_any_text_format(
    place, client, engine_of, media, body, stream
):
    headers = {"content-type": media}
    told = client.post(f"/v1/streams/{stream}/fixes", content=body, headers=headers)
    assert (told.status_code, told.json()["records"]) == (202, 1)
    engine = engine_of(stream)
    engine.work()
    (seen,) = client.get("/v1/objects", params={"stream": stream}).json()["rows"]
    assert (seen["object"], seen["x"], seen["y"]) == ("a", 2.0, 3.0)


@pytest.mark.parametrize(
    ("stream", "media", "body", "refused"),
    [
        ("ships", "text/html", "<p>", (415, "is not taken")),
        ("walks", "text/csv", CSV, (415, "takes gpx alone")),
        ("ships", "text/csv", "id,t,x\na,1,2\n", (422, "the record is rejected: missing_column")),
        ("cars", "application/x-ndjson", "{no json\n", (422, "the record is rejected: bad_json")),
        ("ships", "application/vnd.apache.arrow.stream", "x", (400, "no stream of Arrow")),
        ("ships", "application/x-ndjson", "\n", (400, "has no records")),
        ("boats", "application/x-ndjson", "{}", (404, "there is no stream 'boats'")),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_taken_says_why_and_stores_nothing(
    place, client, stream, media, body, refused
):
    status, wrong = refused
    told = client.post(
        f"/v1/streams/{stream}/fixes", content=body, headers={"content-type": media}
    )
    assert told.status_code == status
    assert wrong in told.json()["error"]
    assert not place.home.log(stream).exists() or payloads_of(place.home, stream) == []


def test_a_request_that_is_made_again_is_stored_once_by_the_next_server_too(place):
    with served(place) as client:
        first = post(client, fix("a", 1, 1, 1), Idempotency_Key="one").json()
        assert post(client, fix("a", 1, 1, 1), Idempotency_Key="one").json() == first
        second = post(client, fix("a", 2, 1, 1), Idempotency_Key="two").json()
        assert second["position"] > first["position"]
    with served(place) as client:
        assert post(client, fix("a", 1, 1, 1), Idempotency_Key="one").json() == first
        assert post(client, fix("a", 2, 1, 1), Idempotency_Key="two").json() == second
    assert len(lines_of(place.home)) == 2


def test_many_who_post_at_once_share_segments_and_each_is_told_his_own_place(
    place, client, engine_of
):
    places = {}

    def send(number):
        told = post(
            client,
            fix(f"s{number}", number, 1, 1),
            fix(f"s{number}", number + 100, 1, 1),
        )
        places[number] = told.json()["position"]

    threads = [threading.Thread(target=send, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine = engine_of()
    engine.work()
    rows = client.post(
        "/v1/sql",
        content="SELECT object, segment, row FROM positions_ships ORDER BY 1, 3",
    ).json()["rows"]
    first = {
        one["object"]: one["segment"] * (1 << 24) + one["row"] for one in reversed(rows)
    }
    assert first == {f"s{number}": position for number, position in places.items()}
    assert len(payloads_of(place.home)) < 40


@contextlib.contextmanager
def listening_to(client, path, **headers):
    """The events of an address, gathered as they come."""
    got, known = [], threading.Event()

    def listen():
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with (
            contextlib.suppress(httpx.HTTPError),  # the server ends, or the test
            client.stream("GET", path, headers=named) as response,
        ):
            known.set()
            deque(map(got.append, events(response)), maxlen=0)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert known.wait(60)
    time.sleep(0.2)  # he listens from now on
    yield got


def until(is_so):
    end_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_changes_come_as_they_happen_and_on_from_the_last_that_somebody_had(
    place, client, engine_of
):
    client.put("/v1/queries/zone", content=ZONE)
    client.put(
        "/v1/queries/all", content="SELECT * FROM ships INSIDE (-90, -90, 90, 90)"
    )
    post(client, fix("old", 1, 1, 1))
    engine = engine_of()
    engine.work()
    with (
        listening_to(client, "/v1/changes/zone") as mine,
        listening_to(client, "/v1/streams/ships/changes") as every,
        listening_to(client, "/v1/changes/zone?since=0") as since,
    ):
        for t in range(2, 12):
            post(client, fix(f"s{t}", t, 1, 1))
            engine.work()
        until(lambda: len(mine) == 10 and len(every) == 20 and len(since) == 11)
    assert [one["object"] for _, one in mine] == [f"s{t}" for t in range(2, 12)]
    assert [one["object"] for _, one in since] == ["old"] + [
        f"s{t}" for t in range(2, 12)
    ]
    assert len({known for known, _ in every}) == 20
    assert [known for known, _ in mine] == [
        f"{one['position']}/{one['seq']}" for _, one in mine
    ]
    assert mine[0][1]["fields"] == {"object": "s2", "speed": 1.0}
    with listening_to(client, "/v1/changes/zone", Last_Event_ID=mine[3][0]) as rest:
        post(client, fix("new", 20, 1, 1))
        engine.work()
        until(lambda: len(rest) == 7)
    assert rest[:6] == mine[4:10]
    assert rest[6][1]["object"] == "new"


@pytest.mark.parametrize(
    ("request_made", "refused"),
    [
        (("GET", "/nothing", ""), (404, "there is no GET /nothing")),
        (("PATCH", "/v1/queries", ""), (405, "there is no PATCH /v1/queries")),
        (("GET", "/v1/answers/none", ""), (404, "unknown query 'none'")),
        (("GET", "/v1/answers/zone?att=1", ""), (400, "unknown parameter 'att'")),
        (("GET", "/v1/answers/zone?at=noon", ""), (400, "at is 'noon' (a time such as")),
        (("GET", "/v1/objects", ""), (400, "'stream' is missing")),
        (("GET", "/v1/objects?stream=ships&bbox=1,2", ""), (400, "(4 numbers with commas")),
        (("GET", "/v1/changes/zone?since=-1", ""), (400, "whole number")),
        (("POST", "/v1/queries", "REGISTER QUERY a AS SELECT * FROM ship"), (400, "did you mean ships")),
        (("PUT", "/v1/queries/b", "DROP QUERY zone"), (400, "must be a SELECT")),
        (("POST", "/v1/explain", "SELCT * FROM ships"), (400, "line 1")),
        (("POST", "/v1/explain", "zone"), (400, "line 1")),
        (("POST", "/v1/sql", "DROP TABLE changes"), (400, "")),
        (("POST", "/v1/sql", "SELECT * FROM read_csv('/etc/passwd')"), (400, "")),
        (("GET", "/v1/ogc/collections/none/items", ""), (404, "no collection 'none'")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line_without_paths_of_the_machine(
    asked, request_made, refused
):
    (client, root), (method, path, body), (status, wrong) = asked, request_made, refused
    told = client.request(method, path, content=body)
    assert told.status_code == status, told.text
    said = told.json()
    assert wrong in f"{said['error']} ({said.get('hint')})"
    assert str(root) not in told.text


def test_a_hint_names_a_request_and_no_command(client):
    for path in ("/v1/changes/none", "/v1/answers/none", "/v1/queries/none"):
        told = client.get(path).json()
        assert told["hint"] == "`GET /v1/queries` names all", path


def test_a_query_is_verified_once_its_fixes_are_archived_and_not_before(
    place, client, engine_of
):
    client.put("/v1/queries/zone", content=ZONE)
    nobody = client.post("/v1/verify")
    assert (nobody.status_code, nobody.json()["error"]) == (
        400,
        "stream 'ships' has nothing to verify yet",
    )
    held = lease.take(place.home.stream("ships"), now_us=time.time_ns() // 1000)
    waiting = client.post("/v1/verify")
    lease.release(held)
    assert (waiting.status_code, waiting.json()["error"]) == (
        503,
        "stream 'ships' is not archived yet",
    )
    assert waiting.json()["hint"] == "try again in 30 s"
    post(client, fix("a", 1, 1, 1))
    engine_of().work()
    assert client.post("/v1/verify").json()["holds"] is True


def test_a_query_whose_stream_left_the_settings_is_not_found(place, client):
    client.put("/v1/queries/zone", content=ZONE)
    (place.conf / "streams.toml").write_text(SETTINGS.replace("ships", "boats"))
    for path in ("/v1/verify", "/v1/verify/zone", "/v1/explain/zone"):
        told = client.request("GET" if "explain" in path else "POST", path)
        assert (told.status_code, told.json()["error"]) == (
            404,
            "there is no stream 'ships'",
        ), path


def test_a_broken_setting_is_told_without_its_path(place, client):
    (place.conf / "streams.toml").write_text(
        SETTINGS.replace("[streams.cars]\nformat", "[streams.cars]\nfromat")
    )
    told = client.get("/v1/objects", params={"stream": "cars"})
    assert told.status_code == 400
    assert re.match(
        r"CONF/streams.toml:\d+: stream 'cars': unknown key 'fromat'",
        told.json()["error"],
    )


def test_other_machines_need_a_token_and_requests_are_limited(place):
    with pytest.raises(ConfigError, match="others could ask"):
        require_token("0.0.0.0", None)
    limits = Limits(body_bytes=100, requests_per_s=1.0, burst=3)
    with served(place, token="secret", limits=limits) as client:
        assert client.get("/v1/status").status_code == 401
        assert (
            client.get(
                "/v1/status", headers={"Authorization": "Bearer wrong"}
            ).status_code
            == 401
        )
        client.headers["Authorization"] = "Bearer secret"
        assert client.get("/v1/status").status_code == 200
        assert post(client, fix("a", 1, 1, 1) * 3).status_code == 413
        chunks = (fix("a", 1, 1, 1).encode() for _ in range(3))
        assert client.post("/v1/streams/ships/fixes", content=chunks).status_code == 413
        refused = [client.get("/v1/status") for _ in range(5)]
        assert [one.status_code for one in refused][-1] == 429
        assert refused[-1].headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8640"}, 200),
        ({"Host": "[::1]:8640", "Origin": "http://[::1]:8640"}, 200),
        ({"Host": "rebound.example"}, 403),
        ({"Host": "127.0.0.1.rebound.example"}, 403),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:8640", "Origin": "http://localhost:9000"}, 403),
    ],
)
def test_pages_of_others_and_other_names_are_refused(asked, headers, status):
    client, _ = asked
    assert client.get("/v1/status", headers=headers).status_code == status
    # there it is already, and no new one
    told = client.put("/v1/queries/zone", content=ZONE, headers=headers)
    assert told.status_code == status


def test_a_server_with_a_token_is_asked_by_any_name(place):
    shown = {"Authorization": "Bearer secret", "Host": "fairway.example"}
    with served(place, token="secret") as client:
        assert client.get("/v1/status", headers=shown).status_code == 200


def test_requests_are_counted_by_endpoint(client):
    client.put("/v1/queries/zone", content=ZONE)
    client.get("/v1/queries/zone")
    client.get("/v1/queries/none")
    client.get("/nowhere/secret-id")
    client.get("/v1/status", headers={"Host": "rebound.example"})
    told = client.get("/metrics").text
    counted = 'fairway_http_requests_total{endpoint="/v1/queries/{query}",method='
    assert f'{counted}"PUT",status="201"}} 1.0' in told
    assert f'{counted}"GET",status="200"}} 1.0' in told
    assert f'{counted}"GET",status="404"}} 1.0' in told
    assert 'endpoint="unknown",method="-",status="404"} 1.0' in told
    assert 'endpoint="refused",method="-",status="403"} 1.0' in told
    assert "secret-id" not in told
    assert (
        'fairway_http_request_seconds_count{endpoint="/v1/queries/{query}",method="GET"} 2.0'
        in told
    )


def test_fixes_of_the_past_do_not_let_time_go_on(place, client):
    post(client, fix("a", 1, 1, 1))
    past = client.post(
        "/v1/streams/ships/fixes?live=false",
        content=fix("a", 2, 1, 1),
        headers={"content-type": "application/x-ndjson"},
    )
    assert past.status_code == 202
    segments = Log(place.home.log("ships")).segments(0)
    assert [one.live for one in segments if not one.control] == [True, False]
    wrong = client.post("/v1/streams/ships/fixes?live=no", content=fix("a", 3, 1, 1))
    assert wrong.status_code == 400
    assert wrong.json() == {"error": "live is 'no'", "hint": "true or false"}


def test_an_engine_runs_once_its_stream_has_begun(place, client):
    engines = Engines(place, print)
    assert not any(one.running for one in engines.streams().values())
    post(client, fix("a", 1, 1, 1))
    client.put("/v1/queries/near", content="SELECT * FROM cars INSIDE (0, 0, 1, 1)")
    running = {name for name, one in engines.streams().items() if one.running}
    assert running == {"ships", "cars"}


def test_gis_reads_answers_objects_and_visits_as_features(place, client, engine_of):
    client.put("/v1/queries/zone", content=ZONE)
    fixes = [fix(f"s{n:02d}", n, n, 1, float(n)) for n in range(25)]
    post(client, *fixes)
    engine = engine_of()
    engine.work()
    base = str(client.base_url).rstrip("/")
    layers = {name for name, _ in pyogrio.list_layers(f"OAPIF:{base}/v1/ogc")}
    assert {"objects.ships", "answers.zone", "visits.ships"} <= layers
    seen = pyogrio.read_arrow(f"OAPIF:{base}/v1/ogc", layer="objects.ships")[1]
    assert len(seen) == 25
    boxed = pyogrio.read_arrow(
        f"OAPIF:{base}/v1/ogc", layer="objects.ships", bbox=(3, 0, 6, 2)
    )[1]
    assert len(boxed) == 4
    members = pyogrio.read_arrow(f"{base}/v1/ogc/collections/answers.zone/items")[1]
    assert sorted(members["object"].to_pylist()) == [f"s{n:02d}" for n in range(11)]
    page = client.get(
        "/v1/ogc/collections/objects.ships/items", params={"limit": 10}
    ).json()
    pages = [page]
    while following := [one["href"] for one in page["links"] if one["rel"] == "next"]:
        page = client.get(following[0]).json()
        pages.append(page)
    assert [one["numberReturned"] for one in pages] == [10, 10, 5]
    assert client.get("/v1/ogc/collections/objects.ships/items/s03").json()[
        "geometry"
    ] == {"type": "Point", "coordinates": [3.0, 1.0]}
    stays = client.get("/v1/ogc/collections/visits.ships/items").json()["features"]
    began = sorted(one["geometry"]["coordinates"] for one in stays)
    assert began == [[float(n), 1.0] for n in range(11)]
    assert client.get("/v1/ogc").headers["content-type"] == "application/json"


@pytest.mark.spec("P10")
def test_a_collection_of_a_layer_says_whose_data_it_is(place, client, tmp_path):
    file = tmp_path / "parks.geojson"
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    feature = {"type": "Feature", "properties": {"fid": "w1"}, "geometry": square}
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    load(place.home, "parks", file, group="default", attribution="© City of Helsinki")
    load(place.home, "lakes", file, group="default")
    listed = client.get("/v1/ogc/collections").json()["collections"]
    said = {one["id"]: one.get("attribution") for one in listed}
    assert said["layers.parks"] == "© City of Helsinki"
    assert said["layers.lakes"] is said["objects.ships"] is None
    one = client.get("/v1/ogc/collections/layers.parks").json()
    assert one["attribution"] == "© City of Helsinki"


def test_an_address_without_a_version_is_refused_with_the_one_that_has_it(client):
    for path in ("/queries", "/answers/zone", "/streams/ships/fixes", "/ogc"):
        reply = client.get(path)
        assert reply.status_code == 404
        assert reply.json()["hint"] == f"it is /v1{path} now"
    assert client.get("/query").json()["hint"].startswith("/v1/openapi.json has all")


def test_the_description_of_the_api_has_every_address(client):
    told = client.get("/v1/openapi.json").json()
    assert told["openapi"] == "3.0.3"
    public = [one for one in ENDPOINTS if one.is_public]
    for one in public:
        operation = told["paths"][one.path][one.method.lower()]
        assert operation["summary"] == one.about
        assert {p["name"] for p in operation["parameters"]} >= {
            p.name for p in one.params
        }
    ids = [
        one["operationId"] for path in told["paths"].values() for one in path.values()
    ]
    assert len(ids) == len(set(ids)) == len(public)


def test_metrics_are_served_with_the_number_of_those_who_listen(
    place, client, engine_of
):
    client.put("/v1/queries/zone", content=ZONE)
    engine_of().work()
    with listening_to(client, "/v1/changes/zone"):
        told = client.get("/metrics").text
    assert 'fairway_listeners{stream="ships"} 1' in told
    assert "fairway_" in told.partition("fairway_listeners")[0]


def test_a_stream_that_was_created_is_one_like_others(client, engine_of):
    statement = f"CREATE STREAM came AS SELECT ISTREAM (object) FROM ships {ZONE.partition('ships ')[2]}"
    created = client.post("/v1/queries", content=statement)
    assert created.json()["streams_created"] == ["came"], created.text
    text = "REGISTER QUERY near AS SELECT * FROM came INSIDE (0, 0, 5, 5)"
    assert client.post("/v1/queries", content=text).status_code == 201
    post(client, fix("a", 1, 1, 1))
    engine_of().work()
    for path in ("/v1/answers/near", "/v1/objects?stream=came", "/v1/answers/came"):
        told = client.get(path)
        assert told.status_code == 200, told.text
    named = [one["stream"] for one in client.get("/v1/status").json()["streams"]]
    assert named == ["ships", "cars", "walks", "came"]


@pytest.fixture
def elsewhere(place):
    """A server that a page of another origin may ask, and that origin."""
    origin = "https://maps.example"
    table = f'[server]\ncors_origins = ["{origin}"]\n'
    (place.conf / "operations.toml").write_text(table)
    with served(place) as client:
        yield client, origin


def test_a_page_elsewhere_may_ask_where_a_setting_names_it(elsewhere):
    client, origin = elsewhere
    wanted = {
        "Origin": origin,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization,if-none-match",
        "Access-Control-Request-Private-Network": "true",
    }
    allowed = client.options("/v1/queries/zone", headers=wanted)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == origin
    assert "PUT" in allowed.headers["access-control-allow-methods"]
    assert allowed.headers["access-control-allow-private-network"] == "true"
    put = client.put("/v1/queries/zone", content=ZONE, headers={"Origin": origin})
    assert put.status_code == 201
    assert put.headers["access-control-allow-origin"] == origin
    for other in ("https://evil.example", f"{origin}.evil.example", "null"):
        told = client.get("/v1/queries", headers={"Origin": other})
        assert told.status_code == 403
        assert "access-control-allow-origin" not in told.headers
        refused = client.options("/v1/queries", headers={**wanted, "Origin": other})
        assert refused.status_code == 400


def test_no_page_elsewhere_may_ask_where_none_is_named(client):
    told = client.get("/v1/queries", headers={"Origin": "https://maps.example"})
    assert told.status_code == 403
    assert "access-control-allow-origin" not in told.headers
    wanted = {"Origin": "https://maps.example", "Access-Control-Request-Method": "GET"}
    assert client.options("/v1/queries", headers=wanted).status_code in (403, 405)


@pytest.mark.parametrize(
    "wrong", ['"*"', '["*"]', '["maps.example"]', '["https://a.b/path"]', "[1]"]
)
def test_what_is_no_origin_is_refused(place, wrong):
    (place.conf / "operations.toml").write_text(f"[server]\ncors_origins = {wrong}\n")
    with pytest.raises(ConfigError, match="must be a list of origins"):
        application(place, version="0")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("https://a.example/tiles.png", "must have {z}, {x} and {y}"),
        ("https://a.example/{z}/{x}.png", "must have {z}, {x} and {y}"),
        ("https://a.example/{z}/{x}/{y}/{y}.png", "each once"),
        ("https://{s}.a.example/{z}/{x}/{y}.png", "must be an address of tiles"),
        ("https://a.example/{s}/{z}/{x}/{y}.png", "nothing else in braces"),
        ("ftp://a.example/{z}/{x}/{y}.png", "http or https"),
        ("/tiles/{z}/{x}/{y}.png", "must be an address of tiles"),
        ("https://a.example/{z}/{x}/{y}.png; script-src *", "semicolons"),
        ("https://a.example/{z}/{x}/{y};.png", "semicolons"),
        ("https://a.example/{z}/{x}/{y}'.png", "quotes"),
        ("https://a.example/{z}/{x}/{y} .png", "spaces"),
        ("https://a.example/{z}/{x}/{y}.png\\n", "spaces"),
        ("https://me:secret@a.example/{z}/{x}/{y}.png", "must be an address of tiles"),
    ],
)
def test_what_is_no_address_of_tiles_is_refused_by_its_key_and_value(
    place, wrong, said
):
    (place.conf / "operations.toml").write_text(f'[server]\ntile_url = "{wrong}"\n')
    with pytest.raises(ConfigError) as told:
        application(place, version="0")
    assert f"tile_url = '{wrong}'" in told.value.message.replace('"', "'")
    assert said in told.value.message


def test_a_number_is_no_address_of_tiles_and_nothing_names_nobody(place):
    file = place.conf / "operations.toml"
    for key, wrong in (("tile_url", "1"), ("tile_attribution", '" "')):
        file.write_text(f"[server]\n{key} = {wrong}\n")
        with pytest.raises(ConfigError, match=f"{key} = "):
            application(place, version="0")
    file.write_text('[server]\ntile_attribution = "Me"\n')
    with pytest.raises(ConfigError, match="there is no tile_url") as told:
        application(place, version="0")
    assert "operations.toml" in told.value.message
