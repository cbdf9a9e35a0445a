"""Who writes clock rows, when, and when not: live feeds go on by the wall clock, replays stand still."""

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import timekeeper
from st_common.engine.local import LocalEngine
from st_common.engine.timekeeper import (
    MINUTES,
    PAUSE_US,
    SETTLE_US,
    Delays,
    SteadyWall,
    Timekeeper,
)
from st_common.log.control import write_clock, write_end
from st_common.operations.awaited import write_awaited
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log

S = 1_000_000
NOW = (
    4_000_000_000 * S
)  # after the real one, by which registrations are stamped: arrivals never go back


def stream_of(**given):
    return StreamSettings(
        name="cars",
        format="csv",
        crs="planar",
        time_unit="us",
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
        **given,
    )


class Wall:
    """A wall clock that a test sets."""

    def __init__(self, now_us=NOW):
        self.us = now_us

    def __call__(self):
        return self.us


def fix(log, event_us, *, arrival_us, name="a", live=True):
    return log.append(
        f"id,t,x,y\n{name},{event_us},5,5\n".encode(), arrival_us=arrival_us, live=live
    )


def drive(engine, wall=None, until_us=0, step_us=250_000):
    """The engine as its loop runs it, until the wall clock is at a time."""
    while True:
        while engine.batch() or engine.keep_time():
            pass
        if wall is None or wall.us >= until_us:
            return
        wall.us += step_us


def clock_rows(log):
    segments = [one for one in log.segments(0) if one.clock]
    return [(one.arrival_us, json.loads(log.read(one))) for one in segments]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


STATEMENTS = """
REGISTER QUERY box AS SELECT * FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY many AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM cars KNN (1, 0, 0);
REGISTER QUERY around AS SELECT * FROM cars INSIDE ('M', 'a', 8, 8);
REGISTER QUERY minute AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10) WINDOW 60 SECONDS;
"""


def members(home):
    return {
        name: answer(home, name)["object"].to_pylist()
        for name in ("box", "near", "around")
    }


def counts(home):
    return [answer(home, name)["value"].to_pylist() for name in ("many", "minute")]


@pytest.mark.spec("S1", "G7")
@pytest.mark.parametrize("lateness_s", [0.0, 3.0])
def test_a_feed_that_pauses_is_told_what_time_brings(home, lateness_s):
    stream, wall = stream_of(silence_s=5.0, lateness_s=lateness_s), Wall()
    register(home, {"cars": stream}, parse(STATEMENTS), owner="me")
    log = bare_log(home.log("cars"))
    fix(log, NOW, arrival_us=NOW, name="a")
    fix(log, NOW, arrival_us=NOW, name="b")
    engine = LocalEngine(home, stream, now_us=wall)
    drive(engine, wall, NOW + round(lateness_s * S) + 4 * S)
    engine.commit()
    assert members(home) == {"box": ["a", "b"], "near": ["a"], "around": ["b"]}
    assert counts(home) == [[2.0], [2.0]]
    drive(engine, wall, NOW + round(lateness_s * S) + 10 * S)
    engine.commit()
    assert members(home) == {"box": [], "near": [], "around": []}
    assert counts(home) == [[0.0], [2.0]]  # the window tells of the past
    drive(engine, wall, NOW + round(lateness_s * S) + 70 * S)
    engine.commit()
    assert counts(home) == [[0.0], [0.0]]
    rows = clock_rows(log)
    assert all(row["ts"] <= arrival_us - SETTLE_US for arrival_us, row in rows)
    assert (
        len(rows) <= 5
    )  # the tick, the end of the silence, its tick, the window: not one for every look
    engine.close()


@pytest.mark.spec("S1")
def test_after_a_replay_and_after_an_end_mark_time_stands_still(home):
    stream, wall = stream_of(silence_s=5.0), Wall(NOW + 3_600 * S)
    register(home, {"cars": stream}, parse(STATEMENTS), owner="me")
    log = bare_log(home.log("cars"))
    fix(log, NOW, arrival_us=NOW, live=False)
    engine = LocalEngine(home, stream, now_us=wall)
    drive(engine)
    assert not clock_rows(log)
    fix(log, NOW + 1, arrival_us=NOW + 1)
    write_end(log, arrival_us=NOW + 2)
    drive(engine)
    assert not clock_rows(log)
    fix(log, NOW + 3, arrival_us=NOW + 3)
    drive(engine)
    assert len(clock_rows(log)) == 1
    fix(log, NOW + 4, arrival_us=NOW + 4, live=False)
    wall.us += 60 * S
    drive(engine)
    assert len(clock_rows(log)) == 1
    engine.close()


@st.composite
def feeds(draw):
    """When fixes are sent (us after the start), with pauses; all are under way for the same time."""
    gaps = draw(
        st.lists(st.sampled_from((0.3, 1.0, 2.0, 7.0, 30.0)), min_size=2, max_size=12)
    )
    sent, at = [], 0
    for gap in gaps:
        at += round(gap * S)
        sent.append(at)
    return sent


@pytest.mark.spec("S1", "X2")
@tries(8)
@given(
    feeds(),
    st.sampled_from((0, 1, 20, 600)),
    st.sampled_from((0.0, 0.5, 4.0)),
    st.integers(1, 3),
)
def test_a_steady_delay_with_pauses_loses_nothing_as_late(
    tmp_path_factory, sent, delay_s, lateness_s, objects
):
    home = Home(tmp_path_factory.mktemp("home"))
    stream, wall = stream_of(silence_s=5.0, lateness_s=lateness_s), Wall()
    register(home, {"cars": stream}, parse(STATEMENTS), owner="me")
    log = bare_log(home.log("cars"))
    engine = LocalEngine(home, stream, now_us=wall)
    for number, at in enumerate(sent):
        drive(engine, wall, NOW + at + delay_s * S, step_us=S)
        wall.us = NOW + at + delay_s * S
        fix(log, NOW + at, arrival_us=wall.us, name=f"o{number % objects}")
    drive(engine, wall, wall.us + 20 * S + round(lateness_s * S), step_us=S)
    engine.close()
    assert (engine.totals.counters.fixes, engine.totals.counters.late) == (len(sent), 0)
    assert members(home)["box"] == []
    assert all(row["ts"] <= at - SETTLE_US - delay_s * S for at, row in clock_rows(log))


def test_an_engine_that_starts_again_knows_the_feed_that_it_left(home):
    stream, wall = stream_of(silence_s=50.0), Wall(NOW + 20 * S)
    register(home, {"cars": stream}, parse(STATEMENTS), owner="me")
    log = bare_log(home.log("cars"))
    fix(log, NOW, arrival_us=NOW + 20 * S)
    engine = LocalEngine(home, stream, now_us=wall)
    engine.batch()
    engine.close()
    again = Timekeeper(log, stream, start=log.end())
    assert (again.feed.live, again.feed.delays.largest_us) == (True, 20 * S)
    for number in range(
        3 * timekeeper.LOOK_BACK
    ):  # so many that the fix is out of sight of one look
        write_clock(log, NOW + number, arrival_us=NOW + 20 * S, delay_us=25 * S)
    again = Timekeeper(log, stream, start=log.end())
    assert (again.feed.live, again.feed.delays.largest_us) == (True, 25 * S)
    write_end(log, arrival_us=NOW + 30 * S)
    assert not Timekeeper(log, stream, start=log.end()).feed.live
    assert not Timekeeper(log, stream, start=0).feed.live


def test_the_delay_is_the_largest_of_the_last_minutes_and_of_fixes_in_order():
    delays = Delays().seen(100 * S, 80 * S).seen(101 * S, 99 * S)
    assert delays.largest_us == 20 * S
    assert delays.seen(102 * S, 50 * S) == delays  # out of order: lateness is for that
    for minute in range(2, 2 + MINUTES):
        delays = delays.seen(minute * 60 * S + 200 * S, minute * 60 * S + 197 * S)
    assert delays.largest_us == 3 * S
    assert Delays().seen(100 * S, 130 * S).largest_us == 0  # a clock that is ahead


def test_clock_rows_are_a_second_apart_at_least(home):
    stream, wall = stream_of(), Wall()
    log = bare_log(home.log("cars"))
    fix(log, NOW, arrival_us=NOW)
    keeper, asked = Timekeeper(log, stream, start=1, now_us=wall), []
    for _ in range(100):
        wall.us += 100_000
        keeper.write_if_due(lambda: asked.append(wall.us) or NOW, max_event=NOW)
    assert all(late - early >= PAUSE_US for early, late in pairwise(asked))
    assert 5 <= len(clock_rows(log)) <= 10


@pytest.mark.spec("S1")
def test_a_stream_that_is_fed_waits_for_a_time_as_what_is_in_the_log_does(home):
    stream, wall, folder = stream_of(lateness_s=1), Wall(), home.stream("cars")
    log = bare_log(home.log("cars"))
    fix(log, NOW, arrival_us=NOW)
    keeper = Timekeeper(log, stream, start=1, now_us=wall, folder=folder)
    write_awaited(folder, "both", NOW + 5 * S)
    write_awaited(folder, "other", NOW - 2 * S)  # the clock has come to it
    for seconds, is_due in ((3, False), (7, False), (8, True)):
        wall.us = NOW + seconds * S
        assert keeper.write_if_due(lambda: None, max_event=NOW) is is_due
    wall.us += 60 * S
    assert not keeper.write_if_due(lambda: None, max_event=NOW + 7 * S)


def test_a_wall_clock_that_is_set_while_the_feed_is_quiet_moves_nobodys_time(
    monkeypatch,
):
    wall = SteadyWall()
    real, before = time.time_ns, wall.now_us()
    monkeypatch.setattr(time, "time_ns", lambda: real() + 3_600 * 10**9)
    assert wall.now_us() - before < 1_800 * S
    wall.look()  # data came: its arrival is by the new clock
    assert wall.now_us() - before > 1_800 * S
