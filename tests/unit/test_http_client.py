"""A client of a server does what a client on a home folder does."""

import asyncio
import contextlib
import itertools
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import fairway
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.log.log import Log
from st_common.server.installation import Installation
from tests.kit.server_http import Engine, served

pytestmark = pytest.mark.spec("S8", "S9")

SETTINGS = """
[streams.ships]
format = "csv"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
attributes = { speed = "double m/s" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
ZONE = "SELECT object, speed FROM ships INSIDE (0, 0, 10, 10)"


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(tmp_path / "home"), conf=conf)


@pytest.fixture
def clients(place, monkeypatch):
    """One of a server, and one on its home."""
    monkeypatch.setenv("FAIRWAY_CONF", str(place.conf))
    with (
        served(place) as http,
        fairway.connect(str(http.base_url)) as remote,
        fairway.connect(place.home.root) as local,
    ):
        yield remote, local


@pytest.fixture
def engine(place):
    engine = Engine(place)
    with contextlib.closing(engine):
        yield engine


def fix(ship, t, lon, lat, speed=1.0):
    return {"id": ship, "t": t, "lon": lon, "lat": lat, "speed": speed}


def test_what_is_put_registered_and_asked_for_is_the_same_as_on_the_home(
    clients, engine
):
    remote, local = clients
    with remote.register(ZONE, "zone") as changes:
        assert (changes.id, changes.stream) == (("zone", 1), "ships")
        put = remote.put("ships", [fix("a", 1, 1, 1, 3.5), fix("b", 2, 20, 1)])
        assert put.records == 2
        remote.put("ships", [fix("a", 5, 30, 1), fix("c", 6, 2, 2)])
        engine.work()
        came = [changes.next(30) for _ in range(3)]
        assert changes.next(0.05) is None
    mine = local.changes("zone", seconds=0)
    assert list(remote.changes("zone", seconds=1)) == list(mine)
    assert [(one.sign, one.element.object) for one in came] == [
        (1, "a"),
        (-1, "a"),
        (1, "c"),
    ]
    assert came[0].element.fields == {"object": "a", "speed": 3.5}
    assert came[0].event_ts == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    then = datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)
    for asked in (
        lambda client: client.answer("zone"),
        lambda client: client.answer("zone", at=then),
        lambda client: client.objects("ships"),
        lambda client: client.objects("ships", inside=(0, 0, 25, 5)),
        lambda client: client.objects("ships", nearest=(1, 29, 1)),
        lambda client: client.sql(
            "SELECT object, sign FROM changes ORDER BY position, seq"
        ),
    ):
        ours, theirs = asked(remote), asked(local)
        assert ours.table.equals(theirs.table, check_metadata=True)
        assert ours.crs == theirs.crs
    assert len(remote.answer("zone")) == 1


def test_fixes_of_arrow_come_with_times_of_its_own(clients, engine):
    remote, local = clients
    remote.register("SELECT * FROM ships INSIDE (0, 0, 10, 10)", "all")
    times = [datetime(2024, 5, 1, 12, 0, n, tzinfo=UTC) for n in range(3)]
    rows = {"id": ["a", "b", "c"], "t": times, "lon": [1.0] * 3, "lat": [2.0] * 3}
    remote.put("ships", pa.table({**rows, "speed": [1.5] * 3}))
    engine.work()
    assert local.objects("ships").table["event_ts"].to_pylist() == times


def test_what_is_put_is_counted_and_refused_alike(clients):
    for client in clients:
        put = client.put("ships", [fix("a", 1, 1, 1), fix("b", 1, 1, 93.5)])
        assert (put.records, put.accepted, put.rejected) == (2, 1, 1)
        assert put.reasons == {"out_of_crs": 1}
        with pytest.raises(fairway.ConfigError) as wrong:
            client.put("ships", [fix("b", 1, 1, 93.5)])
        assert "out_of_crs" in wrong.value.message
        assert "are they exchanged" in wrong.value.hint


def test_plans_and_builders_are_registered_and_cancelled(clients, engine):
    remote, local = clients
    built = fairway.query("ships").in_space((0, 0, 10, 10))
    changes = remote.register(built, "built")
    assert changes.plan == local.register(built, "other").plan
    again = remote.register(
        "REPLACE QUERY built AS SELECT * FROM ships INSIDE (0, 0, 5, 5)"
    )
    assert again.id == ("built", 2)
    assert list(changes) == []  # it was replaced
    with pytest.raises(
        fairway.QueryError, match="version 1 of query 'built' was replaced"
    ):
        remote.cancel(changes)
    remote.cancel(again)
    assert again.closed
    assert list(again) == []


def test_async_programs_wait_for_changes(clients, engine):
    remote, _ = clients
    changes = remote.register(ZONE, "zone")

    async def run():
        await asyncio.to_thread(
            remote.put, "ships", [fix(f"s{n}", n, 1, 1) for n in range(5)]
        )
        await asyncio.to_thread(engine.work)
        got = []
        async for one in changes:
            got.append(one.element.object)
            if len(got) == 5:
                changes.close()
        return got

    assert sorted(asyncio.run(run())) == [f"s{n}" for n in range(5)]


def test_what_is_wrong_is_the_same_error_as_on_the_home(clients):
    remote, local = clients
    for ask in (
        lambda client: client.register("SELECT * FROM ship INSIDE (0, 0, 1, 1)"),
        lambda client: client.answer("nothing"),
        lambda client: list(client.changes("nothing", seconds=0)),
        lambda client: client.sql("DROP TABLE changes"),
    ):
        with pytest.raises(fairway.QueryError) as ours:
            ask(remote)
        with pytest.raises(fairway.QueryError) as theirs:
            ask(local)
        assert ours.value.message == theirs.value.message


def test_fixes_of_the_past_are_put_alike(clients, place):
    for client in clients:
        client.put("ships", [fix("a", 1, 1, 1)], live=False)
        client.put("ships", [fix("a", 2, 1, 1)])
    segments = Log(place.home.log("ships")).segments(0)
    assert [one.live for one in segments if not one.control] == [False, True] * 2


def test_a_server_that_is_away_may_come_back_and_changes_go_on(place, engine):
    with served(place) as http:
        port = http.base_url.port
        remote = fairway.connect(str(http.base_url))
        changes = remote.register(ZONE, "zone")
        remote.put("ships", [fix("a", 1, 1, 1)])
        engine.work()
        assert changes.next(30).element.object == "a"
    with pytest.raises(fairway.TransientError):
        remote.answer("zone")
    with served(place, port=port):
        remote.put("ships", [fix("b", 2, 1, 1)])
        engine.work()
        assert changes.next(60).element.object == "b"
        remote.close()


def test_a_backtest_gives_the_same_tables(place, clients):
    remote, _ = clients
    remote.register("SELECT * FROM ships INSIDE (0, 0, 10, 10)", "all")
    days = [86_400 * n for n in range(4)]
    fixes = [
        fix("a", t, x, 1) for t, x in zip(days, itertools.cycle((1, 30)), strict=False)
    ]
    remote.put("ships", fixes)
    run(place.home, load_streams(place.conf)["ships"], until_idle=True)
    assert [one.object for one in remote.changes("all", until_idle=True)] == ["a"] * 4
    text = f"REGISTER QUERY zone AS {ZONE}"
    ours, theirs = (one.backtest(text, "ships", days=2) for one in clients)
    assert ours.totals.equals(theirs.totals)
    assert ours.days.equals(theirs.days)
    assert (ours.since, ours.until, ours.fixes) == (
        theirs.since,
        theirs.until,
        theirs.fixes,
    )


def test_both_say_alike_how_streams_and_answers_are_and_why(clients, engine):
    remote, local = clients
    remote.register(ZONE, "zone")
    remote.put("ships", [fix("a", 1, 1, 1, 3.5), fix("b", 2, 20, 1)])
    remote.put("ships", [fix("a", 5, 30, 1), fix("c", 6, 2, 2)])
    with pytest.raises(fairway.TransientError, match="0 of 3 segments"):
        remote.run("ships", timeout_s=0)
    engine.close()
    local.run("ships")
    remote.run("ships", timeout_s=60)
    for one in (remote, local):
        (state,) = one.status()
        assert (state["stream"], state["fixes"], state["segments_done"]) == (
            "ships",
            4,
            3,
        )
        (verdict,) = one.verify("zone")
        assert (verdict["holds"], verdict["members"], verdict["missing"]) == (
            True,
            1,
            0,
        )
        reason = one.why("zone", "a")
        assert "a" in reason["sentence"]
        assert reason["change"]["sign"] == -1
        assert (
            one.why("zone", "a", datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC))["change"][
                "sign"
            ]
            == 1
        )
    assert remote.why("zone", "a") == local.why("zone", "a")
    assert remote.verify() == local.verify()
    for given in ("zone", ZONE, f"REGISTER QUERY z2 AS {ZONE}"):
        assert remote.explain(given) == local.explain(given)
    told = remote.explain("zone", analyze=True)
    assert any("4 archived fixes" in line for line in told)
    for wrong in (
        lambda one: one.why("none", "a"),
        lambda one: one.why("zone", "nobody"),
        lambda one: one.verify("none"),
        lambda one: one.explain("none"),
        lambda one: one.explain("SELECT * FROM nothing"),
        lambda one: one.run("nothing"),
    ):
        messages = []
        for one in (remote, local):
            with pytest.raises(fairway.FairwayError) as error:
                wrong(one)
            messages.append(error.value.message)
        assert messages[0] == messages[1]


def test_a_token_is_shown_to_servers_alone(place):
    with served(place, token="secret") as http:
        with fairway.connect(str(http.base_url), token="secret") as remote:
            assert len(remote.sql("SELECT 1 AS one")) == 1
        with (
            fairway.connect(str(http.base_url)) as stranger,
            pytest.raises(fairway.ConfigError, match="a token is needed"),
        ):
            stranger.sql("SELECT 1 AS one")
    with pytest.raises(fairway.ConfigError, match="a home asks for no token"):
        fairway.connect(place.home.root, token="secret")
