"""Queries that end with who asked: a lease that is not renewed, or taken away, and what it leaves alone."""

import os
import time

import pytest

from st_common.client.home_client import HomeClient
from st_common.client.lease_keeper import LeaseKeeper
from st_common.config.home import Home
from st_common.engine import lease_watch
from st_common.engine.lease_watch import LeaseWatch
from st_common.errors import QueryError, StateError
from st_common.query.leases import (
    FILE,
    Lease,
    begin_lease,
    end_lease,
    leased,
    renew_lease,
    renewed_ns,
)
from st_common.query.lookup import find, queries
from tests.kit.archived import stream_of_places

pytestmark = pytest.mark.spec("P14")

SELECT = "SELECT * FROM cars INSIDE (0, 0, 5, 5)"


class Clock:
    """A monotonic clock that tests move."""

    now_s = 0.0

    def monotonic(self):
        return self.now_s


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(lease_watch, "time", made)
    return made


@pytest.fixture
def client(tmp_path):
    streams = {"cars": stream_of_places("cars")}
    with HomeClient(tmp_path, streams=streams) as made:
        yield made


@pytest.fixture
def home(client, tmp_path):
    return Home(tmp_path)


def names(home):
    return [row.name for row in queries(home)]


def lease_of(home, name):
    return leased(home)[name].lease


def look(watch, clock, *, after_s):
    clock.now_s += after_s
    watch.look()


def test_a_query_is_dropped_once_its_lease_was_not_renewed_in_its_time(
    client, home, clock
):
    client.register(SELECT, "stays")
    client.register(SELECT, "goes", ephemeral=1000)
    watch = LeaseWatch(home, "cars")
    for after_s in (2, 600):
        look(watch, clock, after_s=after_s)
        assert names(home) == ["goes", "stays"]
    lease = lease_of(home, "goes")
    os.utime(home.root / "leases" / lease, (5, 5))  # by a clock that was set back
    for after_s in (10, 995):
        look(watch, clock, after_s=after_s)
        assert names(home) == ["goes", "stays"]
    look(watch, clock, after_s=10)
    assert names(home) == ["stays"]
    assert find(home, "goes").op == "drop"
    assert leased(home) == {}
    assert renewed_ns(home, lease) is None
    with pytest.raises(QueryError, match="or it has ended"):
        renew_lease(home, lease)


def test_an_engine_that_starts_gives_a_lease_its_whole_time(client, home, clock):
    client.register(SELECT, "q", ephemeral=1000)
    for _ in range(4):
        watch = LeaseWatch(home, "cars")
        for after_s in (5, 900):
            look(watch, clock, after_s=after_s)
    assert names(home) == ["q"]


def test_the_engine_of_another_stream_drops_nothing(client, home, clock):
    client.register(SELECT, "q", ephemeral=3)
    watch = LeaseWatch(home, "buses")
    for _ in range(5):
        look(watch, clock, after_s=100)
    assert names(home) == ["q"]


def test_a_subscription_that_is_closed_takes_its_query_along(client, home, clock):
    with client.register(SELECT, "q", ephemeral=True):
        assert leased(home)["q"].lease_s == 30
    look(LeaseWatch(home, "cars"), clock, after_s=2)
    assert names(home) == []


def test_what_was_replaced_or_registered_anew_hangs_on_no_lease(client, home, clock):
    for name in ("replaced", "anew", "goes"):
        client.register(SELECT, name, ephemeral=True)
    leases = [lease_of(home, name) for name in ("replaced", "anew", "goes")]
    client.register(f"REPLACE QUERY replaced AS {SELECT}")
    client.cancel(("anew", 1))  # its subscription ends the lease as well
    client.register(SELECT, "anew")
    for one in leases[::2]:
        end_lease(home, one)
    look(LeaseWatch(home, "cars"), clock, after_s=2)
    assert names(home) == ["anew", "replaced"]
    assert leased(home) == {}


def test_nothing_hangs_on_a_lease_whose_registration_failed(client, home):
    client.register(SELECT, "q")
    with pytest.raises(QueryError):
        client.register(SELECT, "q", ephemeral=True)
    assert list((home.root / "leases").iterdir()) == []
    assert not (home.root / "registry" / FILE).exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"CREATE STREAM near AS {SELECT}", "registers queries, and does nothing else"),
        (f"REGISTER QUERY q AS {SELECT} FROM BEGINNING", "begins where it is"),
    ],
)
def test_what_would_not_end_with_the_lease_is_refused(client, home, text, message):
    with pytest.raises(QueryError, match=message):
        client.register(text, ephemeral=True)
    assert names(home) == []


@pytest.mark.parametrize("seconds", [0, 2.9, 86_401, float("nan")])
def test_a_lease_has_bounds(client, home, seconds):
    with pytest.raises(QueryError, match="from 3 s to 86,400 s"):
        client.register(SELECT, "q", ephemeral=seconds)
    assert names(home) == []


@pytest.mark.parametrize("lease_id", ["", "../registry/x", "A" * 32, "f" * 32])
def test_what_is_no_lease_is_neither_renewed_nor_ended(home, lease_id):
    begin_lease(home)
    before = sorted(path for path in home.root.rglob("*") if path.is_file())
    for act in (renew_lease, end_lease):
        with pytest.raises(QueryError, match="there is no lease"):
            act(home, lease_id)
    assert sorted(path for path in home.root.rglob("*") if path.is_file()) == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"q": {"version": 1}}', '{"q": 1}'])
def test_a_file_of_leases_that_cannot_be_read_is_named(home, text):
    path = home.root / "registry" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(StateError, match=r"leases\.json cannot be read"):
        leased(home)


def test_a_keeper_renews_until_it_is_told_that_a_lease_has_ended():
    renewed = []

    def renew(lease_id):
        renewed.append(lease_id)
        if lease_id == "over":
            raise QueryError("it has ended")

    keeper = LeaseKeeper(renew, lambda _: None)
    for lease_id in ("over", "lives"):
        keeper.keep(Lease(id=lease_id, lease_s=0.03))
    while renewed.count("lives") < 5:
        time.sleep(0.01)
    assert renewed.count("over") == 1
    keeper.close()
    keeper.close()
