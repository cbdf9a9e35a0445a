"""Questions that take too long, too much, or that nobody waits for any more: they hold up nobody who posts."""

import concurrent.futures
import contextlib
import json
import os
import re
import time
from urllib.parse import parse_qsl, urlsplit

import httpx
import psutil
import pytest

from st_common.config.home import Home
from st_common.server.endpoints import ENDPOINTS
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
"""
ENDLESS = "SELECT count(*) FROM range(10000000000) a, range(1000) b"
HOMES: list[str] = []
"""Those of the tests so far: the last one is that of the test that runs."""
FIX = json.dumps({"id": "a", "t": 1, "x": 1, "y": 1})


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    HOMES.append(str(tmp_path / "home"))
    return Installation(home=Home(tmp_path / "home"), conf=conf)


def limited(place, **limits):
    lines = [f"{name} = {value}" for name, value in limits.items()]
    (place.conf / "operations.toml").write_text("\n".join(["[server]", *lines]))


def answering():
    """The processes that answer for this one."""
    found = []
    for one in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            words = one.cmdline()  # a server of other tests may have some, too
            if "st_common.processes.answer" in words and HOMES[-1] in words:
                found.append(one)
    return found


QUERY = "SELECT * FROM ships INSIDE (0, 0, 9, 9)"
THEN = "2024-05-01T00:00:00Z"
AND_SO_ON = " AND ".join(["x > 1"] * 1300)
REGISTERED = ("PUT", "/v1/queries/zone", QUERY)
LONG = [
    ("POST", "/v1/verify", "", "check"),
    ("POST", "/v1/verify/zone", "", "check"),
    ("POST", "/v1/backtest?days=1", f"REGISTER QUERY other AS {QUERY}", "check"),
    ("GET", "/v1/explain/zone?analyze=true", "", "check"),
    ("POST", "/v1/explain", QUERY, "ask"),
    ("POST", "/page/ask", f"{QUERY} AS OF '2024-01-01'", "ask"),
    ("POST", "/v1/queries", f"REGISTER QUERY other AS {QUERY}", "register"),
    ("PUT", "/v1/queries/other", QUERY, "register"),
    ("GET", "/v1/why/zone?object=a", "", "read"),
    ("GET", f"/v1/objects?stream=ships&at={THEN}", "", "read"),
    ("GET", "/v1/ogc/collections/visits.ships/items", "", "read"),
    ("GET", "/page/ways/ships?object=a", "", "read"),
    ("GET", f"/v1/objects?stream=ships&where={AND_SO_ON}", "", "read"),
    ("POST", "/page/check", f"{QUERY} WHERE {AND_SO_ON}", "ask"),
]
ONE_OF_EACH = [
    *({kind: (method, path, body, kind) for method, path, body, kind in LONG}.values()),
    LONG[3],  # by a parameter
    LONG[
        12
    ],  # by the length of a text, where a short one is answered by the server itself
]
"""For each kind a request, as all of a kind go the same way; see the test of what is declared."""


def asked(client, method, path, body, **how):
    content = body.encode() if body else None
    return client.request(method, path, content=content, **how)


def names(client):
    return [one["name"] for one in client.get("/v1/queries").json()["queries"]]


@contextlib.contextmanager
def standing_still(client):
    """A process that answers is asked and does not go on; it is what computing for ever looks like from outside."""
    client.post("/v1/sql", content="SELECT 1")
    (process,) = answering()
    process.suspend()
    try:
        yield process
    finally:
        with contextlib.suppress(psutil.Error):
            process.kill()


def until(is_so):
    end_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"), LONG, ids=lambda v: str(v)[:24]
)
def test_what_computes_is_declared_to_be_answered_by_a_process(
    method, path, body, kind
):
    (one,) = (
        each
        for each in ENDPOINTS
        if each.method == method
        and re.fullmatch(re.sub(r"{[^}]*}", "[^/]+", each.path), urlsplit(path).path)
    )
    given = [
        one.apart_with[name]
        for name, _ in parse_qsl(urlsplit(path).query)
        if name in one.apart_with
    ]
    assert kind in (one.apart_if_long, *(given or [one.apart]))


def test_what_takes_too_long_is_ended_and_fixes_are_taken_meanwhile(place):
    limited(place, ask_s=3, ask_at_once=1)
    with served(place) as client, concurrent.futures.ThreadPoolExecutor() as pool:
        assert client.post("/v1/sql", content="SELECT 1 AS n").json()["rows"] == [
            {"n": 1}
        ]
        slow = [
            pool.submit(
                httpx.post, f"{client.base_url}/v1/sql", content=text, timeout=60
            )
            for text in (ENDLESS, "SELECT 2 AS n")
        ]
        while not all(one.done() for one in slow):
            assert (
                client.post("/v1/streams/ships/fixes", content=FIX).status_code == 202
            )
            time.sleep(0.1)
        told = [one.result() for one in slow]
        assert told[0].status_code == 400
        assert told[0].json()["error"] == "the answer takes longer than 3 s"
        assert "ask_s" in told[0].json()["hint"]
        # the other one waited for its turn, and got it or was told to come again
        assert told[1].status_code in (200, 503)
        assert client.post("/v1/sql", content="SELECT 3 AS n").json()["rows"] == [
            {"n": 3}
        ]
    assert answering() == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT repeat('x', 3000000000) AS n",
        "SELECT range(1000000000) AS n",
        "SELECT list(range) AS n FROM range(1000000000)",
        "WITH a AS (SELECT repeat('x', 1000) AS s), "
        "b AS (SELECT replace(s, 'x', repeat('y', 3000)) AS s FROM a) "
        "SELECT replace(s, 'y', repeat('z', 3000)) FROM b",
    ],
    ids=["text", "list", "aggregate", "replace"],
)
def test_what_takes_too_much_memory_is_refused_and_the_next_is_answered(place, text):
    limited(place, ask_memory_mb=400)
    with served(place) as client:
        told = client.post("/v1/sql", content=text)
        assert told.status_code == 400, told.text
        assert "memory" in told.json()["error"]
        assert client.post("/v1/sql", content="SELECT 1 AS n").json()["rows"] == [
            {"n": 1}
        ]


def test_processes_that_answer_give_way_to_the_server_from_their_start_on(place):
    with served(place) as client, concurrent.futures.ThreadPoolExecutor() as pool:
        told = pool.submit(client.post, "/v1/sql", content="SELECT 1")
        until(answering)  # it imports what it needs, for a second at least
        (process,) = answering()
        assert process.nice() >= psutil.Process().nice() + 10
        assert told.result().status_code == 200
        assert answering() == [process]
        assert {
            os.getpriority(os.PRIO_PROCESS, one.id) for one in process.threads()
        } == {process.nice()}


def test_a_process_that_was_killed_holds_up_nobody_and_is_not_called_too_large(place):
    with served(place) as client, concurrent.futures.ThreadPoolExecutor() as pool:
        client.post("/v1/sql", content="SELECT 1")
        (idle,) = answering()
        idle.kill()
        until(lambda: not psutil.pid_exists(idle.pid))
        told = client.post("/v1/sql", content="SELECT 1")
        assert told.status_code == 200, told.text
        slow = pool.submit(client.post, "/v1/sql", content=ENDLESS, timeout=60)
        (busy,) = answering()
        until(lambda: busy.status() == psutil.STATUS_RUNNING and busy.num_threads() > 1)
        busy.kill()
        told = slow.result()
        assert (told.status_code, "signal 9" in told.text) == (503, True)
        assert client.post("/v1/sql", content="SELECT 1").status_code == 200


def test_a_question_ends_when_whoever_asked_is_gone(place):
    with served(place) as client:
        client.post("/v1/sql", content="SELECT 1")
        assert len(answering()) == 1
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/sql", content=ENDLESS, timeout=1)
        until(lambda: answering() == [])


def test_what_is_asked_in_arrow_and_what_is_wrong_are_told_from_there_too(place):
    arrow = {"accept": "application/vnd.apache.arrow.stream"}
    with served(place) as client:
        assert client.post("/v1/sql", content="SELECT 1", headers=arrow).content[
            :4
        ] == (b"\xff\xff\xff\xff")
        told = client.post("/v1/sql", content="SELECT nothing")
        assert told.status_code == 400
        assert "nothing" in told.json()["error"]
        assert client.post("/v1/sql?limit=x", content="SELECT 1").status_code == 400
        told = client.post(
            "/page/ask", content="SELECT * FROM ships INSIDE (0, 0, 1, 1)"
        )
        assert told.status_code == 400
        assert str(place.home.root) not in told.text


def test_bytes_and_what_json_does_not_have_come_as_text(place):
    text = "SELECT '\\x00\\xff'::BLOB AS geometry, 'inf'::DOUBLE AS high, '{' AS fields"
    with served(place) as client:
        (row,) = client.post("/v1/sql", content=text).json()["rows"]
        assert row == {"geometry": "00ff", "high": "inf", "fields": "{"}
        for value in ("TIMESTAMP '290000-01-01'", "'infinity'::TIMESTAMP"):
            told = client.post("/v1/sql", content=f"SELECT {value} AS t")
            assert told.status_code == 400, told.text


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"), ONE_OF_EACH, ids=lambda v: str(v)[:24]
)
def test_whatever_computes_is_ended_in_time_and_the_next_is_answered(
    place, method, path, body, kind
):
    limited(place, check_memory_mb=2048)
    with served(place) as client:
        assert asked(client, *REGISTERED).status_code == 201
        with standing_still(client):
            limited(place, **{f"{kind}_s": 2}, check_memory_mb=2048)
            told = asked(client, method, path, body)
            assert told.status_code == 400, told.text
            assert "takes longer than 2 s" in told.json()["error"]
            assert f"{kind}_s of [server]" in told.json()["hint"]
            assert answering() == []
            assert names(client) == ["zone"]
        limited(place)
        assert client.post("/v1/streams/ships/fixes", content=FIX).status_code == 202
        assert asked(client, *REGISTERED[:2], f"{QUERY} ").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "kind"), ONE_OF_EACH, ids=lambda v: str(v)[:24]
)
def test_whatever_computes_ends_when_whoever_asked_is_gone(
    place, method, path, body, kind
):
    limited(place, check_memory_mb=2048)
    with served(place) as client:
        assert asked(client, *REGISTERED).status_code == 201
        with standing_still(client):
            with pytest.raises(httpx.ReadTimeout):
                asked(client, method, path, body, timeout=1)
            until(lambda: answering() == [])
        assert names(client) == ["zone"]


def test_short_texts_are_checked_and_completed_while_no_process_answers(place):
    limited(place, ask_at_once=1, ask_s=30)
    with served(place) as client:
        for number in range(9):
            box = f"CREATE AREA a{number} AS 'POLYGON((0 0,{number + 1} 0,1 1,0 0))'"
            assert asked(client, "POST", "/v1/queries", box).status_code == 201
        with standing_still(client):
            for text in (QUERY, "SELECT * FROM ships INSIDE a1 AND INSIDE a2"):
                told = client.post("/page/check", content=text).json()
                assert told["ok"], told
                body = {"text": text, "cursor": len(text)}
                assert client.post("/page/complete", json=body).json()["options"]
            told = client.post(
                "/page/check", content="SELECT * FROM ships INSIDE nowhere"
            )
            assert "unknown area 'nowhere'" in told.json()["error"]


def test_a_short_text_that_names_much_is_checked_by_a_process(place):
    """Of a large area a naming is as much as its text."""
    ring = ",".join(f"{n % 2 + 1} {n / 1e5}" for n in range(20_000))
    large = f"CREATE AREA large AS 'POLYGON((0 0,{ring},0 0.3,0 0))'"
    small = "CREATE AREA small AS 'POLYGON((0 0,1 0,1 1,0 0))'"
    names = " AND ".join(["INSIDE small"] * 9)
    with served(place) as client:
        for text in (large, small):
            told = asked(client, "POST", "/v1/queries", text)
            assert told.status_code == 201, told.text
        for text in ("INSIDE large", names):
            with standing_still(client):
                limited(place, ask_s=2)
                told = client.post("/page/check", content=f"SELECT * FROM ships {text}")
                assert "takes longer than 2 s" in told.json()["error"]
            limited(place)
            told = client.post("/page/check", content=f"SELECT * FROM ships {text}")
            assert told.json()["ok"], told.text


def test_what_is_read_apart_is_what_the_page_would_be_told_here(place):
    """Links of OGC lead to the server that was asked, and an id may have a slash."""
    with served(place) as client:
        told = client.get("/v1/ogc/collections/objects.ships/items").json()
        assert {one["href"] for one in told["links"]} == {
            f"{client.base_url}/v1/ogc/collections/objects.ships/items",
            f"{client.base_url}/v1/ogc/collections/objects.ships",
        }
        assert client.get("/page/object/ships/a/b").json()["error"] == (
            "stream 'ships' has no object 'a/b'"
        )


def test_kinds_do_not_wait_for_each_other(place):
    """Who fills the places of one kind takes none of the others."""
    limited(place, ask_at_once=1, ask_s=30)
    with served(place) as client, concurrent.futures.ThreadPoolExecutor() as pool:
        with standing_still(client):
            slow = pool.submit(
                httpx.post, f"{client.base_url}/v1/sql", content="SELECT 1", timeout=60
            )
            time.sleep(0.5)
            assert asked(client, *REGISTERED).status_code == 201
            told = client.post("/v1/verify").json()  # nothing is archived that it needs
            assert "ships" in told["error"], told
            assert (
                client.post("/v1/streams/ships/fixes", content=FIX).status_code == 202
            )
            assert not slow.done()
        assert slow.result().status_code == 503  # it was killed


def test_a_registration_is_refused_by_what_it_takes_and_not_half_done(place):
    limited(place, ask_memory_mb=120)
    corners = ",".join(f"{n % 7}.{n} {n % 5}.{n}" for n in range(70_000))
    many = ";".join(
        f"REGISTER QUERY q{n} AS {QUERY} WHERE {' AND '.join(['x > 1'] * 200)}"
        for n in range(400)
    )
    with served(place) as client:
        told = client.post("/v1/queries", content=many + f";{corners}")
        assert told.status_code in (400, 503)
        assert names(client) == []
        assert asked(client, *REGISTERED).status_code == 201


def test_a_query_is_registered_though_the_settings_cannot_be_read_any_more(place):
    with served(place) as client:
        assert client.post("/v1/streams/ships/fixes", content=FIX).status_code == 202
        (place.conf / "streams.toml").write_text("[[[")
        assert asked(client, *REGISTERED).status_code == 201
        assert asked(client, *REGISTERED).status_code == 200
        told = client.post("/v1/sql", content="SELECT count(*) AS n FROM queries")
        assert told.json()["rows"] == [{"n": 2}]


def test_if_none_match_goes_along(place):
    with served(place) as client:
        assert asked(client, *REGISTERED).status_code == 201
        told = asked(client, *REGISTERED, headers={"if-none-match": "*"})
        assert told.status_code == 400
        assert "zone" in told.json()["error"]
