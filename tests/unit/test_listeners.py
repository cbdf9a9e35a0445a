"""Those who listen to changes over real sockets: none of them, and no look that fails, can deafen another."""

import asyncio
import contextlib
import ctypes
import gc
import json
import resource
import socket
import threading
import time
from collections import deque
from pathlib import Path

import httpx
import pytest

from st_common.answers.follow import Follower
from st_common.config.home import Home
from st_common.errors import StorageError
from st_common.server import changes as server_changes
from st_common.server.changes import Hub, Listener, Told
from st_common.server.installation import Installation
from tests.kit.server_http import Engine, events, served

pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
ZONE = "SELECT object FROM ships INSIDE (0, 0, 10, 10)"
MB = 1 << 20
OF_LISTENERS = (Listener, Told, server_changes.EventsReply)


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(tmp_path / "home"), conf=conf)


@pytest.fixture
def client(place):
    with served(place) as client:
        client.put("/v1/queries/zone", content=ZONE).raise_for_status()
        yield client


@pytest.fixture
def engine(client, place):
    post(client, "first")
    engine = Engine(place)
    engine.work()
    yield engine
    engine.close()


def post(client, *ships):
    lines = [json.dumps({"id": one, "t": 1, "x": 1, "y": 1}) + "\n" for one in ships]
    done = client.post(
        "/v1/streams/ships/fixes",
        content="".join(lines),
        headers={"content-type": "application/x-ndjson"},
    )
    assert done.status_code == 202


def left_over():
    """What of listeners is in memory, but for what nothing refers to any more."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, OF_LISTENERS)]


def stalled(client):
    """A connection that asks for changes and reads the beginning of the answer alone."""
    there = socket.socket()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    there.connect((client.base_url.host, client.base_url.port))
    host = f"{client.base_url.host}:{client.base_url.port}"
    there.sendall(f"GET /v1/changes/zone HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert there.recv(15) == b"HTTP/1.1 200 OK"
    return there


@contextlib.contextmanager
def listening(client, path="/v1/changes/zone", *, after=None):
    headers = {} if after is None else {"last-event-id": after}
    got, known = [], threading.Event()

    def listen():
        with (
            contextlib.suppress(httpx.HTTPError),  # the test ends
            client.stream("GET", path, headers=headers) as response,
        ):
            assert response.status_code == 200
            known.set()
            deque(map(got.append, events(response)), maxlen=0)

    threading.Thread(target=listen, daemon=True).start()
    assert known.wait(60)
    yield got


def until(is_so):
    end_s = time.monotonic() + 240
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def hub_of(client):
    (hub,) = client.get("/v1/status").json()["listeners"]
    return hub


def failing(monkeypatch, times):
    """The next looks for changes fail, so many of them."""
    poll, left = Follower.poll, [times]

    def look(self):
        if left[0] > 0:
            left[0] -= 1
            raise OSError("the disk has a bad day")
        return poll(self)

    monkeypatch.setattr(Follower, "poll", look)
    return left


def test_one_who_stalls_and_a_look_that_fails_deafen_nobody(
    client, engine, monkeypatch
):
    with contextlib.closing(stalled(client)), listening(client) as before:
        until(lambda: hub_of(client)["listeners"] == 2)
        failing(monkeypatch, 3)
        until(lambda: hub_of(client)["failures"] == 3)
        with listening(client) as later:
            post(client, "a", "b")
            engine.work()
            until(lambda: len(before) == len(later) == 2)
        assert [one["object"] for _, one in later] == ["a", "b"]
        hub = hub_of(client)
        assert (hub["stream"], hub["error"], hub["dropped"]) == ("ships", None, {})
        assert 0 <= hub["age_s"] < 60
        told = client.get("/metrics").text
        assert 'fairway_listeners_looks_failed_total{stream="ships"} 3.0' in told
        assert 'fairway_listeners_age_seconds{stream="ships"}' in told


def test_an_id_that_looks_like_an_event_is_the_id_of_one_object(client, engine):
    names = ['a"\n\nevent: change\ndata: {"forged": 1}\n\n.', "b\r\rid: 9/9", "c"]
    names += ["d\u2028data: {}", "e\x85f", "\0", "</script>"]
    with listening(client) as got:
        until(lambda: hub_of(client)["age_s"] is not None)
        for name in names:
            post(client, name)
            engine.work()
        until(lambda: len(got) == len(names))
    assert [one["object"] for _, one in got] == names
    places = [tuple(map(int, known.split("/"))) for known, _ in got]
    assert places == [(one["position"], one["seq"]) for _, one in got]


def test_a_look_that_fails_after_it_read_loses_no_change(client, engine, monkeypatch):
    written, left = server_changes.told_of, [2]

    def failing_once(rows, stream):
        if left[0] > 0:
            left[0] -= 1
            raise MemoryError
        return written(rows, stream)

    with listening(client) as got:
        until(lambda: hub_of(client)["age_s"] is not None)
        monkeypatch.setattr(server_changes, "told_of", failing_once)
        post(client, "a")
        engine.work()
        until(lambda: len(got) == 1)
    assert left == [0]


def test_who_comes_while_nothing_can_be_followed_is_told_so(client, monkeypatch):
    monkeypatch.setattr(server_changes, "JOIN_S", 0.3)
    left = failing(monkeypatch, 10_000)
    told = client.get("/v1/changes/zone")
    assert (told.status_code, "the disk has a bad day" in told.text) == (503, True)
    left[0] = 0
    with listening(client):
        until(lambda: hub_of(client)["error"] is None)


def test_a_connection_that_takes_nothing_is_cut_off_and_counted(
    client, engine, monkeypatch
):
    monkeypatch.setattr(server_changes, "STALLED_S", 0.5)
    with contextlib.closing(stalled(client)) as there, listening(client) as got:
        until(lambda: hub_of(client)["listeners"] == 2)
        post(client, *(f"s{number}" for number in range(4_000)))
        engine.work()
        until(lambda: hub_of(client)["dropped"] == {"stalled": 1})
        until(lambda: len(got) == 4_000)
        assert hub_of(client)["listeners"] == 1
        with pytest.raises(ConnectionResetError):
            deque(iter(lambda: there.recv(1 << 16), b""), maxlen=0)
    told = client.get("/metrics").text
    dropped = 'fairway_listeners_dropped_total{reason="stalled",stream="ships"} 1.0'
    assert dropped in told


def test_one_for_whom_too_much_waits_is_let_go_and_told_why(
    place, client, engine, monkeypatch
):
    monkeypatch.setattr(server_changes, "MOST_WAITING", 2)

    async def told():
        hub = Hub(place.home, "ships")
        slow, quick = await hub.join(None, None), await hub.join("zone", None)
        heard = hub.told(quick)
        beginning = await anext(heard)
        got = []
        for ship in ("a", "b", "c"):
            await asyncio.to_thread(post, client, ship)
            await asyncio.to_thread(engine.work)
            got.append(await anext(heard))
        ending = [part async for part in hub.told(slow)]
        hub.leave(slow)
        hub.leave(quick)
        return beginning, got, ending, hub.state.dropped

    beginning, got, ending, dropped = asyncio.run(told())
    assert b": listening" in beginning
    assert len(got) == 3
    assert dropped == {"slow": 1}
    assert len(ending) == 2
    assert ending[1].startswith(b"event: end\ndata: ")
    assert b"too many changes waited" in ending[1]


def test_much_at_once_is_told_to_one_who_has_read_all(monkeypatch):
    monkeypatch.setattr(server_changes, "MOST_WAITING", 5)
    listener, one = Listener(None), Told((1, 0), "zone", b"x")
    assert listener.tell([one] * 9, 9)
    assert not listener.tell([one], 1)
    assert [len(some) for some in listener.taken()] == [9]
    assert listener.tell([one], 1)


def test_a_place_that_was_purged_is_told_before_anything_is_sent(
    client, engine, monkeypatch
):
    def purged(*_given, **_named):
        raise StorageError("it was purged")

    assert client.get("/v1/changes/zone", headers={"last-event-id": "x"}).is_error
    with listening(client):
        until(lambda: hub_of(client)["age_s"] is not None)
        monkeypatch.setattr(server_changes, "Follower", purged)
        told = client.get("/v1/changes/zone?since=0")
    assert (told.status_code, "it was purged" in told.text) == (503, True)


def rss():
    """What the process holds, bytes, without what its allocator keeps for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


@pytest.fixture
def many_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_a_thousand_listeners_took_is_given_back(
    many_files, client, engine, monkeypatch
):
    monkeypatch.setattr(server_changes, "STALLED_S", 1.0)
    held, turns = [rss()], 0
    # What is kept for them grows with each turn; a table that is read, or another test's thread, not with each.
    while turns < 2 or (turns < 5 and held[-1] > held[-2] + 48 * MB):
        with contextlib.ExitStack() as stack:
            for _ in range(1000):
                stack.enter_context(contextlib.closing(stalled(client)))
            until(lambda: hub_of(client)["listeners"] == 1000)
            post(client, *(f"{turns}-{number}" for number in range(4_000)))
            engine.work()
            until(lambda: hub_of(client)["listeners"] == 0)
        held.append(rss())
        turns += 1
        until(lambda: not left_over())  # a task may still end, of one who has left
    assert hub_of(client)["dropped"] == {"stalled": 1000 * turns}
    assert held[-1] < held[-2] + 48 * MB, held


def test_who_resumes_is_told_nothing_again_by_an_engine_that_starts_anew(place):
    """The table and the journal are behind what he has had: they are made again after him."""
    at = (1 << 24, 0)

    async def heard():
        hub = Hub(place.home, "ships")
        mine = await hub.join(None, at)
        told = hub.told(mine)
        begins = await anext(told)
        some = [Told((at[0], seq), "zone", b"%d;" % seq) for seq in (0, 1, 2)]
        hub._tell(some)
        news = await anext(told)
        hub.leave(mine)
        return begins, news

    begins, news = asyncio.run(heard())
    assert b"id: 16777216/0\n" in begins
    assert news == b"1;2;"


def test_the_place_of_one_who_comes_is_never_behind_what_he_is_told(place):
    async def heard():
        hub = Hub(place.home, "ships")
        joining = asyncio.create_task(hub.join(None, None))
        while not hub.listeners:
            await asyncio.sleep(0)
        hub._place = (1 << 24, 5)
        hub._tell([Told((1 << 24, 5), "zone", b"before;")])
        hub._is_following.set()
        mine = await joining
        hub._tell([Told((1 << 24, 6), "zone", b"behind;")])
        told = hub.told(mine)
        both = [await anext(told), await anext(told)]
        hub.leave(mine)
        return both

    begins, news = asyncio.run(heard())
    assert b"id: 16777216/5\n" in begins
    assert news == b"behind;"


def test_who_resumes_before_an_engine_that_starts_anew_has_told_again_misses_nothing(
    client, place
):
    """The hub has told what a killed engine had in its journal, and passes over it when the next one tells it."""
    post(client, "first")
    killed = Engine(place)
    killed.work()
    with listening(client) as before:
        post(client, "a", "b")
        while killed.batch():
            pass  # told, and not committed
        until(lambda: len(before) == 2)
        killed.abandon()
        other = Engine(place)  # takes back what was told
        with listening(client, after=before[0][0]) as later:
            until(lambda: hub_of(client)["listeners"] == 2)
            time.sleep(0.3)  # he has looked for what is behind his last one
            post(client, "c")
            other.work()
            until(lambda: len(later) >= 2 and len(before) == 3)
        assert [one["object"] for _, one in later] == ["b", "c"]
        assert [one["object"] for _, one in before] == ["a", "b", "c"]
        other.close()
