"""Connections of a server: how many, how long they may say nothing, and how often a wrong token may be shown."""

import contextlib
import errno
import socket

import duckdb
import httpx
import pytest

from st_common.config.home import Home
from st_common.errors import QueryError, TableError
from st_common.server.connections import Bounds, is_short
from st_common.server.guard import Guesses
from st_common.server.installation import Installation
from tests.kit.server_http import served

pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
engine = "local"
"""
SHORT = Bounds(most=3, step=2, request_s=0.2, still_s=0.2)
PATIENT = Bounds(most=3, step=2)


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(tmp_path / "home"), conf=conf)


def connected(client):
    address = client.base_url
    return socket.create_connection((address.host, address.port), timeout=30)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /v1/status HTTP/1.1\r\nhost: 127.",
        b"POST /v1/sql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 8\r\n\r\nSEL",
        b"POST /v1/sql HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nSEL",
    ],
    ids=["nothing", "half a head", "half a body", "half of the chunks"],
)
def test_whoever_ends_no_request_is_let_go(place, sent):
    with served(place, bounds=SHORT) as client, connected(client) as slow:
        slow.sendall(sent)
        assert slow.recv(100) == b""


def test_a_byte_behind_an_answer_does_not_keep_a_connection(place):
    with served(place, bounds=SHORT) as client, connected(client) as slow:
        slow.sendall(b"GET /v1/ogc HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 200")
        slow.sendall(b"G")
        while slow.recv(1 << 16):
            pass


def test_one_that_waits_gives_way_and_where_all_are_busy_a_new_one_is_told_so(place):
    with served(place, bounds=PATIENT) as client, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(client)) for _ in range(3)]
        assert client.get("/v1/ogc").is_success
        assert silent[0].recv(100) == b""
        listening = [stack.enter_context(connected(client)) for _ in range(3)]
        for one in listening:
            one.sendall(
                b"GET /v1/streams/ships/changes HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
            )
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        with connected(client) as late:
            told = late.recv(1000)
            assert told.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in told
        listening[0].close()
        while httpx.get(client.base_url.join("/v1/ogc")).status_code == 503:
            pass


def test_wrong_tokens_of_a_host_are_counted_and_a_right_one_is_not_locked_out():
    guesses, host = Guesses(), "10.0.0.1"
    told = [guesses.wait_s(host, n / 10, is_right=False) for n in range(40)]
    assert told[:20] == [None] * 20
    assert all(one is not None and one > 0 for one in told[20:])
    assert told[39] < told[20]  # more of them do not put the end off
    assert guesses.wait_s("10.0.0.2", 4.0, is_right=True) is None  # another host
    assert guesses.wait_s(host, 5.0, is_right=True) is not None
    assert guesses.wait_s(host, 2.0 + 10.0, is_right=True) is None
    told = [guesses.wait_s(host, 20.0, is_right=False) for n in range(40)]
    assert None not in told[20:]
    assert guesses.wait_s(host, 20.0, is_right=True) is None  # it was seen before


def test_a_server_refuses_to_look_at_more_tokens_and_says_when_it_will(place):
    with served(place, token="0123456789abcdef") as client:
        told = [
            client.get("/v1/status", headers={"authorization": f"Bearer {n}"})
            for n in range(25)
        ]
        assert [one.status_code for one in told] == [401] * 20 + [429] * 5
        assert 1 <= int(told[-1].headers["retry-after"]) <= 10
        assert client.get("/v1/status").status_code == 401  # shows none, guesses none
        right = {"authorization": "Bearer 0123456789abcdef"}
        assert client.get("/v1/status", headers=right).status_code == 429
        assert client.get("/").status_code in (200, 404)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot write {home}: full", "cannot write HOME: full"),
        ("'{home}/tables/x' is no table", "'HOME/tables/x' is no table"),
        ("{conf}/streams.toml: s: wrong", "CONF/streams.toml: s: wrong"),
        ("{home}-2/x is another one", "PATH is another one"),
        ("No such file: /usr/lib/python3/a.py", "No such file: PATH"),
        ("open('/etc/passwd'), /tmp", "open('PATH'), PATH"),
        ("see `GET /v1/queries/q` and /status", "see `GET /v1/queries/q` and /status"),
        ("https://example.org/etc/x and 1/2/tmp", "https://example.org/etc/x and 1/2/tmp"),
    ],
)  # fmt: skip
def test_no_message_shows_a_path_of_the_machine(tmp_path, text, shown):
    place = Installation(home=Home(tmp_path / "home"), conf=tmp_path / "conf")
    given = text.format(home=tmp_path / "home", conf=tmp_path / "conf")
    assert place.hidden(given) == shown
    told = {"sources": [{"error": given, "files": given}], "why": None}
    assert place.without_paths(told) == {
        "sources": [{"error": shown, "files": given}],
        "why": None,
    }


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (MemoryError(), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (RuntimeError("can't start new thread"), True),
        (duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure"), True),
        (OSError(errno.EAGAIN, "OS can't spawn worker thread: .. (os error 11)"), True),
        (RuntimeError("dictionary changed size during iteration"), False),
        (OSError(errno.ENOENT, "No such file or directory"), False),
    ],
)
def test_what_a_machine_has_no_more_of_may_come_again_and_a_defect_may_not(
    error, is_passing
):
    assert is_short(error) == is_passing
    told = TableError("t cannot be opened", hint="")
    told.__cause__ = error
    assert is_short(told) == is_passing


@pytest.mark.parametrize(
    "error", [MemoryError(), duckdb.OutOfMemoryException("Out of Memory Error: 3 GB")]
)
def test_a_question_that_takes_too_much_memory_is_wrong_however_often_it_is_asked(
    error,
):
    asked = QueryError("the answer takes more memory than 400 MB")
    asked.__cause__ = error
    assert not is_short(asked)
