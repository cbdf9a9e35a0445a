"""Fixes that are posted while the disk is full, fails, or is shared with another server: each request for itself."""

import asyncio
import contextlib
import errno
import json
import os
import resource
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.errors import FairwayError, StorageError, TransientError
from st_common.log.log import Log
from st_common.operations.records import read_record, write_record
from st_common.position import row_of, segment_of
from st_common.server import intake as server_intake
from st_common.server.installation import Installation
from st_common.server.intake import Intakes
from st_common.server.parameters import ReusedKeyError
from st_common.storage import local
from tests.kit.effort import tries
from tests.kit.feeding import lines_of
from tests.kit.server_http import served

pytestmark = pytest.mark.spec("S8")

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
"""
NDJSON = "application/x-ndjson"


def place_in(folder):
    conf = folder / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(folder / "home"), conf=conf)


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


def fix(ship, t=1):
    return json.dumps({"id": ship, "t": t, "x": 1, "y": 1}) + "\n"


def post(client, content, key=None):
    headers = {"content-type": NDJSON}
    headers |= {} if key is None else {"idempotency-key": key}
    return client.post("/v1/streams/ships/fixes", content=content, headers=headers)


@contextlib.contextmanager
def full_disk():
    """No file takes a byte, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.spec("S2")
@pytest.mark.parametrize("key", [None, "k1"])
def test_fixes_are_taken_again_once_the_disk_has_room(place, key):
    with served(place) as client:
        assert post(client, fix("before")).status_code == 202
        with full_disk():
            refused = [post(client, fix("a"), key) for _ in range(3)]
        assert [one.status_code for one in refused] == [503] * 3
        assert post(client, fix("other")).status_code == 202
        assert post(client, fix("a"), key).status_code == 202
    assert Counter(lines_of(place.home)) == Counter(
        fix(ship).strip() for ship in ("before", "other", "a")
    )


@pytest.mark.spec("S2")
def test_old_keys_that_a_full_disk_keeps_end_nothing(place, monkeypatch):
    monkeypatch.setattr(server_intake, "_KEYS", 2)
    with served(place) as client:
        for number in range(3):
            assert post(client, fix(f"s{number}"), f"k{number}").status_code == 202
        put = local.LocalStorage.put
        writes = []

        def second_is_refused(self, key, data, **how):
            writes.append(key)
            if len(writes) == 2:  # the first one announces, the second one forgets
                raise StorageError("no room")
            put(self, key, data, **how)

        monkeypatch.setattr(local.LocalStorage, "put", second_is_refused)
        for number in range(3, 9):
            assert post(client, fix(f"s{number}"), f"k{number}").status_code == 202
    assert len(lines_of(place.home)) == 9


def test_two_servers_on_a_home_know_each_others_keys(place):
    with served(place) as one, served(place) as two:
        post(one, fix("first"))
        post(two, fix("first"))
        for key, (quick, slow) in {"k1": (one, two), "k2": (two, one)}.items():
            first = post(quick, fix(key), key)
            assert first.status_code == 202
            for server in (slow, quick, slow):
                again = post(server, fix(key), key)
                assert (again.status_code, again.json()) == (202, first.json())
                assert post(server, fix("next")).status_code == 202
            other = post(slow, fix("another"), key)
            assert other.status_code == 422
            assert f"the idempotency key '{key}' came with" in other.json()["error"]
    told = Counter(json.loads(line)["id"] for line in lines_of(place.home))
    assert told == {"first": 2, "k1": 1, "k2": 1, "next": 6}


@pytest.mark.parametrize("is_new_server", [False, True])
def test_a_key_that_comes_with_another_request_is_refused_and_nothing_is_stored(
    place, is_new_server
):
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(served(place))
        first = post(client, fix("a"), "one").json()
        if is_new_server:
            client = stack.enter_context(served(place))
        assert post(client, fix("b"), "one").status_code == 422
        past = client.post(
            "/v1/streams/ships/fixes?live=false",
            content=fix("a"),
            headers={"content-type": NDJSON, "idempotency-key": "one"},
        )
        assert past.status_code == 422
        assert post(client, fix("a"), "one").json() == first
        for key in ("", "k" * 256):
            assert post(client, fix("b"), key).status_code == 400
    assert lines_of(place.home) == [fix("a").strip()]


def test_a_key_that_was_kept_without_its_request_is_still_known(place):
    with served(place) as client:
        first = post(client, fix("a"), "one").json()
    noted = place.home.log("ships") / "captures" / "http-server.json"
    kept = json.loads(noted.read_text())
    del kept["crc32"]
    kept["places"] |= kept.pop("next")["places"]
    kept["places"]["key:one"] &= (1 << 63) - 1  # as versions before wrote it
    noted.write_text(json.dumps(kept))
    with served(place) as client:
        assert post(client, fix("a"), "one").json() == first
    assert len(lines_of(place.home)) == 1


def test_one_request_that_cannot_be_stored_is_told_so_and_those_beside_it_are_stored(
    place, monkeypatch
):
    append = server_intake.Writer.store

    def refusing(self, arrivals):
        if any(b"poison" in one.body for one in arrivals):
            raise ValueError("it cannot be stored")
        return append(self, arrivals)

    monkeypatch.setattr(server_intake.Writer, "store", refusing)
    monkeypatch.setattr(server_intake, "_GATHER_S", 0.2)

    async def sent():
        intakes = Intakes(place)
        intake = await intakes.of(place.stream("ships"))
        bodies = [fix("a"), fix("poison"), fix("b"), fix("c")]
        gathered = [intake.put(body.encode(), NDJSON, None) for body in bodies]
        done = await asyncio.gather(*gathered, return_exceptions=True)
        done.append(await intake.put(fix("d").encode(), NDJSON, None))
        await intakes.close()
        return done

    done = asyncio.run(sent())
    assert [isinstance(one, ValueError) for one in done] == [False, True, *[False] * 3]
    stored = [json.loads(line)["id"] for line in lines_of(place.home)]
    assert (sorted(stored[:3]), stored[3:]) == (["a", "b", "c"], ["d"])


class Faults:
    """Lets the disk fail at a step of storage, before or after it was done."""

    def __init__(self, patch):
        self.left, self.code, self.is_after = None, errno.ENOSPC, False
        for name in ("_sync_folder", "make_folder"):
            patch.setattr(local, name, self._at(getattr(local, name), OSError))
        disk = local.LocalStorage
        for name in ("_write_draft", "_link"):
            patch.setattr(disk, name, self._at(getattr(disk, name), OSError))
        for name in ("read", "names"):
            patch.setattr(disk, name, self._at(getattr(disk, name), refused))

    def _at(self, step, error):
        def run(*given, **named):
            is_hit = self.left == 0
            if self.left is not None:
                self.left -= 1
            if is_hit and not self.is_after:
                raise error(self.code, os.strerror(self.code))
            done = step(*given, **named)
            if is_hit:
                raise error(self.code, os.strerror(self.code))
            return done

        return run


def refused(number, text):
    return local.failed(OSError(number, text), Path("there"))


@pytest.mark.spec("S2")
def test_a_key_whose_segment_the_log_has_no_more_is_refused_and_not_acknowledged(place):
    """As where the log was put back from an older copy: the note of keys is newer than it."""
    with served(place) as client:
        stored = post(client, fix("one"), "k1").json()
        assert post(client, fix("one"), "k1").json() == stored
    number = segment_of(stored["position"])
    log = place.home.log("ships")
    (log / "segments" / "00000000" / f"{number:012d}.seg").unlink()
    note = log / "captures" / "http-server.json"
    noted = read_record(note)
    write_record(note, {"places": noted["next"]["places"]})
    with served(place) as client:
        again = post(client, fix("one"), "k1")
        assert (again.status_code, "another key" in again.text) == (422, True)
        assert post(client, fix("one"), "k2").status_code == 202


KEYS = st.sampled_from([None, "k1", "k2"])
POSTS = st.tuples(st.just("post"), st.integers(0, 1), KEYS, st.sampled_from(["x", "y"]))
FAULTS = st.tuples(
    st.just("fault"),
    st.integers(0, 25),
    st.sampled_from([errno.ENOSPC, errno.EIO, errno.EMFILE]),
    st.booleans(),
)
OTHERS = st.sampled_from([("restart", 0), ("restart", 1), ("heal",)])


class Model:
    """What was asked, what was said of it, and what the log may therefore have."""

    def __init__(self, place):
        self.place = place
        self.told = {}  # by key: the body and the position that were told
        self.unsure = set()  # keys of which a failed request may have stored something
        self.places = {}  # position by the object that was sent there

    def check(self, key, body, ship, done, *, is_faulty):
        if isinstance(done, ReusedKeyError):
            known = self.told.get(key)
            assert key in self.unsure or (known is not None and known[0] != body)
        elif isinstance(done, FairwayError):
            assert is_faulty, done
            assert isinstance(done, (StorageError, TransientError)), done
            self.unsure |= {key}
        elif key is not None and key in self.told:
            assert self.told[key] == (body, done.position)
        else:
            self.places[done.position] = ship
            if key is not None:
                self.told[key] = (body, done.position)

    def check_log(self):
        """What was acknowledged stands where it was told, and each key once."""
        found = {}
        log = Log(self.place.home.log("ships"))
        for number in range(log.end()):
            segment = log.segment(number)
            lines = [] if segment.control else log.raw(segment).splitlines()
            for row, line in enumerate(lines):
                found[number, row] = json.loads(line)["id"]
        for position, ship in self.places.items():
            assert found[segment_of(position), row_of(position)] == ship
        count = Counter(found.values())
        assert all(count[ship] == 1 for ship in count), count
        keyed = Counter(ship.split("-")[0] for ship in count if ship[0] == "k")
        assert set(keyed.values()) <= {1}, keyed


@tries(15)
@given(steps=st.lists(POSTS | FAULTS | OTHERS, max_size=25))
def test_whatever_fails_between_requests_each_is_answered_for_itself(steps):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = place_in(Path(folder))
        model = Model(place)
        asyncio.run(driven(place, model, steps, Faults(patch)))
        model.check_log()


async def driven(place, model, steps, faults):
    servers = [Intakes(place), Intakes(place)]
    stream = place.stream("ships")
    for number, (act, *how) in enumerate(steps):
        is_faulty = faults.left is not None
        if act == "fault":
            faults.left, faults.code, faults.is_after = how
        elif act == "heal":
            faults.left = None
        elif act == "restart":
            await servers[how[0]].close()
            servers[how[0]] = Intakes(place)
        else:
            server, key, body = how
            # With a key the same request is made again; without one each is another.
            ship = f"{key}-{body}" if key else f"s{number}"
            try:
                intake = await servers[server].of(stream)
                done = await intake.put(fix(ship).encode(), NDJSON, key)
            except FairwayError as error:
                done = error
            model.check(key, body, ship, done, is_faulty=is_faulty)
            if faults.left is not None and faults.left < 0:
                faults.left = None  # it has failed once
    faults.left = None
    for server in servers:  # all is well at the end, whatever went before
        intake = await server.of(stream)
        done = await intake.put(fix(f"end{id(server)}").encode(), NDJSON, None)
        model.check(None, "", f"end{id(server)}", done, is_faulty=False)
        await server.close()


@pytest.mark.spec("S8")
def test_a_key_that_another_server_stored_before_other_keys_is_known_here(place):
    with served(place) as one, served(place) as two:
        post(one, fix("warm"), "warm1")
        post(two, fix("warm"), "warm2")
        first = post(one, fix("a"), "k").json()
        assert post(two, fix("b"), "other").status_code == 202
        assert post(two, fix("a"), "k").json() == first
    told = Counter(json.loads(line)["id"] for line in lines_of(place.home))
    assert told == {"warm": 2, "a": 1, "b": 1}


@pytest.mark.spec("S8")
def test_a_sender_who_hangs_up_and_comes_again_with_his_key_is_stored_once(
    place, monkeypatch
):
    monkeypatch.setattr(server_intake, "_GATHER_S", 0.2)

    async def sent():
        intakes = Intakes(place)
        intake = await intakes.of(place.stream("ships"))
        await intake.put(fix("warm").encode(), NDJSON, None)
        first = asyncio.create_task(intake.put(fix("a").encode(), NDJSON, "k"))
        while not intake._sending:
            await asyncio.sleep(0.001)
        first.cancel()
        again = await intake.put(fix("a").encode(), NDJSON, "k")
        assert await intake.put(fix("a").encode(), NDJSON, "k") == again
        await intakes.close()

    asyncio.run(sent())
    assert Counter(lines_of(place.home))[fix("a").strip()] == 1


@pytest.mark.spec("S2")
def test_places_that_cannot_be_read_are_told_as_a_disk_that_refuses(place, monkeypatch):
    with served(place) as client:
        read = server_intake.Writer.__init__

        def refused_once(self, *given, **named):
            monkeypatch.setattr(server_intake.Writer, "__init__", read)
            raise OSError(errno.EIO, os.strerror(errno.EIO), "captures/x.json")

        monkeypatch.setattr(server_intake.Writer, "__init__", refused_once)
        assert post(client, fix("a")).status_code == 503
        assert post(client, fix("a")).status_code == 202


def test_who_waits_for_an_intake_to_close_may_go(place):
    async def closed():
        intakes = Intakes(place)
        intake = await intakes.of(place.stream("ships"))
        await intake.put(fix("a").encode(), NDJSON, None)
        closing = asyncio.create_task(intake.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        await intakes.close()

    asyncio.run(closed())
