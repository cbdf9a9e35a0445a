"""Histories of captures and engines on a simulated machine: kills, pauses, takeovers, power cuts, clock steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.capture.log import Log
from st_common.engine.states import States
from st_common.testing import histories
from st_common.testing.effort import tries
from st_common.testing.simulated import SimulatedStorage, World

SEEDS = st.integers(0, (1 << 32) - 1)


@pytest.mark.spec("X1", "X6", "S2")
@tries(30)
@given(SEEDS)
def test_whatever_breaks_nothing_is_lost_and_nothing_is_told_twice(seed):
    histories.live(seed)


def test_a_history_is_its_seed():
    assert histories.live(5) == histories.live(5)


def unsynced(_log, _segments):
    """What an engine reads is not made durable before it tells of it."""


def newest_of_all(states, *, upto):
    """The newest state, also when it has seen more than the table holds."""
    return real_newest(states, upto=1 << 62)


def unchecked(table, _path, data, _contract, *, app, version, after, check):
    """A commit that asks neither for the lease nor where the table stands."""
    table.world.pause()
    table.commits.append((version, data))
    table.durable = len(table.commits)
    return True


real_newest = States.newest


@pytest.mark.parametrize(
    ("where", "name", "planted"),
    [(Log, "sync", unsynced), (States, "newest", newest_of_all), (histories._Table, "append", unchecked)],
    ids=["told before it is durable", "a state ahead of the table", "a commit without compare-and-set"],
)
def test_a_planted_bug_breaks_some_history(monkeypatch, where, name, planted):
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(AssertionError):
        all(histories.live(seed) for seed in range(300))


def test_what_was_synced_survives_a_power_cut_and_what_was_not_may_go():
    lost = set()
    for seed in range(20):
        world = World(seed)
        storage = SimulatedStorage(world)
        storage.create("a/1", b"whole")
        actor = world.start("writer", lambda at=storage: at.create_all([("b/1", b"x"), ("b/2", b"y")]))
        for _ in range(4):
            world.turn(actor)
        world.kill(actor)
        storage.cut()
        assert storage.read("a/1") == b"whole"
        lost.add(tuple(storage.names("b")))
    assert lost == {(), ("1",), ("2",), ("1", "2")}
