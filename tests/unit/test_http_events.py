"""What the client does with events that it cannot read: it says so, counts them, and goes on."""

import contextlib
import http.server
import json
import logging
import threading

import pytest

import fairway
from st_common.errors import FairwayError

pytestmark = pytest.mark.spec("S8")

CHANGE = {
    "query": "zone",
    "query_version": 1,
    "layer_version": None,
    "object": "a",
    "partner": None,
    "sign": 1,
    "cause": "enter",
    "event_ts": "2026-01-01T00:00:00Z",
    "fix_ts": "2026-01-01T00:00:00Z",
    "position": 5,
    "seq": 0,
    "value": None,
    "fields": None,
    "x": 1.0,
    "y": 1.0,
}


def event(seq, **other):
    data = json.dumps({**CHANGE, "seq": seq, **other}, ensure_ascii=False)
    return f"id: 5/{seq}\nevent: change\ndata: {data}\n\n".encode()


@contextlib.contextmanager
def server(*answers):
    """A server that gives each answer to one request for changes, and ends the connection; what each resumed after."""
    left, resumed = list(answers), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            if "/v1/changes" not in self.path:
                self.wfile.write(b"{}")
                return
            resumed.append(self.headers.get("Last-Event-ID"))
            if left:
                self.wfile.write(left.pop(0))

        def log_message(self, *_given):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{there.server_port}", resumed
        there.shutdown()


def read(address, count, path="zone"):
    with fairway.connect(address) as client:
        changes = client.changes(path, seconds=20)
        got = [change for _, change in zip(range(count), changes, strict=False)]
        return got, changes.unreadable


UNREADABLE = {
    "forged": b'id: 5/1\nevent: change\ndata: {"forged": true}\n\n',
    "without a time": event(1, event_ts=None),
    "with a wrong time": event(1, event_ts="noon"),
    "with a number as its object": event(1, object=7),
    "no json": b"id: 5/1\nevent: change\ndata: {not json\n\n",
    "a list": b"id: 5/1\nevent: change\ndata: []\n\n",
    "deep": b"event: change\ndata: " + b"[" * 100_000 + b"\n\n",
    "no text": b"event: change\ndata: \xff\xfe\n\n",
    "of another kind": b'event: news\ndata: {"a": 1}\n\n',
    "with an id that is none": b"id: x\r\nid: \x00/1\r\nevent: change\ndata: 1\r\n\r\n",
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_an_event_that_cannot_be_read_is_counted_and_those_behind_it_are_given(
    content, caplog
):
    with (
        caplog.at_level(logging.WARNING),
        server(event(0) + content + event(2) + event(3)) as (address, _),
    ):
        got, unreadable = read(address, 3)
    assert [one.seq for one in got] == [0, 2, 3]
    assert unreadable == 1
    (warning,) = [one for one in caplog.messages if "cannot be read" in one]
    assert "/v1/changes/zone" in warning
    assert "\n" not in warning


def test_an_event_that_is_cut_comes_again_with_the_next_connection():
    whole = event(1, object="b")
    for cut in (1, 10, len(whole) - 1):
        with server(event(0) + whole[:cut], whole) as (address, resumed):
            got, unreadable = read(address, 2)
        assert [one.object for one in got] == ["a", "b"]
        assert unreadable == 0
        assert resumed[:2] == [None, "5/0"]


def test_ids_of_objects_with_ends_of_lines_are_given_as_they_are():
    names = ["\u2028", "\u2029\x85", "\x0b\x0c\x1c\x1d\x1e", "\n\nevent: change\n"]
    content = b"".join(event(n, object=name) for n, name in enumerate(names))
    with server(content) as (address, _):
        got, unreadable = read(address, len(names))
    assert ([one.object for one in got], unreadable) == (names, 0)


def test_a_place_that_is_said_before_any_change_is_resumed_after():
    with server(b"id: 4/7\n: listening\n\n", event(0)) as (address, resumed):
        read(address, 1)
    assert resumed[:2] == [None, "4/7"]


def test_an_error_that_nobody_thought_of_is_told_to_whoever_waits(monkeypatch):
    from st_common.client import http_events

    def broken(_lines):
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr(http_events, "events_of", broken)
    with (
        server(event(0)) as (address, _),
        pytest.raises(FairwayError, match="nobody thought of it"),
    ):
        read(address, 1)
