"""Registrations of several at once: nobody waits for one that is slow to understand, and none is lost or doubled."""

import threading

import pytest

from st_common.errors import QueryError
from st_common.home import Home
from st_common.query import registry
from st_common.query.lookup import find, queries
from st_common.query.text import parse
from st_common.settings import Columns, StreamSettings

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
