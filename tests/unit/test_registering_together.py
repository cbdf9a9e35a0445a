"""Registrations of several at once: nobody waits for one that is slow to understand, and none is lost or doubled."""

import threading

import pytest

from st_common.answers.answers import answer
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import backfill, carrying_out
from st_common.engine.run import run
from st_common.errors import QueryError, TransientError
from st_common.query import registry
from st_common.query.area_store import areas
from st_common.query.lookup import find, queries
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S8")

STREAMS = {
    "cars": StreamSettings(
        name="cars",
        format="csv",
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
        attributes={"speed": "double", "name": "string"},
    )
}


def statements(name, text="INSIDE (0, 0, 1, 1)"):
    return parse(f"REGISTER QUERY {name} AS SELECT * FROM cars {text}")


def register(home, name):
    return registry.carry_out(home, STREAMS, statements(name), owner="ada")


@pytest.fixture
def slow(monkeypatch):
    """An event that tells that a statement named `slow` is tried, and one that lets it be understood."""
    begun, may_end, plain = threading.Event(), threading.Event(), registry.draft_all

    def drafted(draft, known):
        if any(one.name == "slow" for one in known):
            begun.set()
            assert may_end.wait(60)
        return plain(draft, known)

    monkeypatch.setattr(registry, "draft_all", drafted)
    return begun, may_end


def test_others_register_while_one_is_being_understood(tmp_path, slow):
    home, (begun, may_end) = Home(tmp_path), slow
    first = threading.Thread(target=register, args=(home, "slow"))
    first.start()
    assert begun.wait(60)
    for name in ("one", "two"):  # it would wait for ever
        register(home, name)
    registry.drop(home, "one")
    assert [row.name for row in queries(home)] == ["two"]
    may_end.set()
    first.join(60)
    assert [row.name for row in queries(home)] == ["slow", "two"]
    assert find(home, "slow").version == 1


def test_a_name_that_is_taken_meanwhile_is_taken(tmp_path, slow):
    home, (begun, may_end) = Home(tmp_path), slow
    wrong = []

    def late():
        try:
            register(home, "slow")
        except QueryError as error:
            wrong.append(str(error))

    both = [threading.Thread(target=late) for _ in range(2)]
    for one in both:
        one.start()
    assert begun.wait(60)
    may_end.set()
    for one in both:
        one.join(60)
    (row,), (told,) = queries(home), wrong
    assert (row.name, row.version) == ("slow", 1)
    assert "slow" in told


def test_many_at_once_are_all_registered_once(tmp_path):
    home = Home(tmp_path)
    each = [[f"q{n}_{m}" for m in range(5)] for n in range(4)]
    workers = [
        threading.Thread(target=lambda names=names: [register(home, n) for n in names])
        for names in each
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join(120)
    names = sorted(name for names in each for name in names)
    assert sorted(row.name for row in queries(home)) == names
    assert {row.version for row in queries(home)} == {1}


@pytest.mark.timeout(120)
def test_a_long_list_is_read_in_a_time_in_proportion_to_its_length():
    """It was the square of it: 40,000 numbers took 11 s, 200,000 more than 6 minutes."""
    (one,) = statements("q", f"WHERE speed IN ({','.join(map(str, range(200_000)))})")
    assert one.plan is not None


def fixes(log, first, count):
    """Adds a segment with a fix of each of so many cars."""
    when = f"2024-05-01T{first // 1000:02}:00:00Z"
    rows = [f"car{first + n},{when},1,1,5,x" for n in range(count)]
    payload = "\n".join(["id,t,x,y,speed,name", *rows]).encode()
    log.append(payload, arrival_us=1_714_608_000_000_000 + first)


@pytest.fixture
def fed(tmp_path, monkeypatch):
    """A home whose stream has run, where 400 bytes are too much to follow while the log is locked."""
    home, stream = Home(tmp_path), STREAMS["cars"]
    log = bare_log(home.log("cars"))
    fixes(log, 0, 20)
    run(home, stream, until_idle=True)
    monkeypatch.setattr(backfill, "_MOST_BYTES", 400)
    return home, log


def while_it_registers(monkeypatch, act):
    """Does something after the log was followed, and before it is locked; counts how often."""
    plain, counted = registry.carry_out, []

    def carried_out(*args, **named):
        counted.append(True)
        act(len(counted))
        return plain(*args, **named)

    monkeypatch.setattr(carrying_out.registry, "carry_out", carried_out)
    return counted


def test_what_comes_while_a_log_is_followed_is_followed_before_it_is_locked(
    fed, monkeypatch
):
    home, log = fed
    more = {1: 100, 2: 50, 3: 5}
    tried = while_it_registers(
        monkeypatch, lambda n: fixes(log, 1000 * n, more.get(n, 0))
    )
    followed = []
    plain = backfill.Backfill._followed

    def watched(self, row, end):
        before = self._until_now(row).state.next_segment
        sizes = [one.size for one in log.segments(before, end=end)]
        followed.append(sum(sizes))
        return plain(self, row, end)

    monkeypatch.setattr(backfill.Backfill, "_followed", watched)
    known = statements("all_cars", "WHERE speed > 1 FROM BEGINNING")
    done = carrying_out.carry_out(home, STREAMS, known, owner="ada").outcome
    assert len(tried) == 3
    assert [one > 400 for one in followed] == [True, True, True, False]
    run(home, STREAMS["cars"], until_idle=True)
    assert done.rows[0].seed is not None
    assert len(answer(home, "all_cars")) == 20 + 100 + 50 + 5


def test_who_cannot_follow_a_stream_is_told_and_registers_nothing(fed, monkeypatch):
    home, log = fed
    while_it_registers(monkeypatch, lambda n: fixes(log, 1000 * n, 50))
    known = statements("all_cars", "FROM BEGINNING")
    with pytest.raises(TransientError, match="gets more than can be followed"):
        carrying_out.carry_out(home, STREAMS, known, owner="ada")
    assert list(queries(home)) == []
    register(home, "one")
    assert [row.name for row in queries(home)] == ["one"]


def test_what_is_found_is_written_only_by_who_may(tmp_path):
    home = Home(tmp_path)

    def may_not():
        assert list(queries(home)) == []
        raise TransientError("nobody waits any more")

    known = parse(
        "CREATE AREA here AS (0, 0, 1, 1); REGISTER QUERY q AS SELECT * FROM cars INSIDE here"
    )
    with pytest.raises(TransientError):
        registry.carry_out(home, STREAMS, known, owner="a", before_writing=may_not)
    assert (list(queries(home)), list(areas(home))) == ([], [])
    registry.carry_out(home, STREAMS, known, owner="a", before_writing=lambda: None)
    assert [row.name for row in queries(home)] == ["q"]
