"""Questions about the past, beside what queries told that were registered before the first fix."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.answers.sql import sql
from st_common.batch.asking import VISITS, asked
from st_common.config.home import Home
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.query.past import Past
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.grid_days import HOUR_S, T0, histories, segment, settings
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X10", "P2")

MICROSECOND = timedelta(microseconds=1)
SELECTS = {
    "left": "SELECT * FROM grid INSIDE (0, 0, 5, 10)",
    "near": "SELECT * FROM grid KNN (2, 5, 5)",
    "pairs": "SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 3 m)",
    "many": "SELECT COUNT(*) FROM grid INSIDE (0, 0, 10, 5)",
    "lately": "SELECT * FROM grid INSIDE (3, 3, 7, 7) WINDOW 3 h",
    "places": "SELECT x, y FROM grid INSIDE (0, 5, 10, 10) EMIT EVERY",
    "values": "SELECT COUNT(*) AS n, AVG(x) AS mean FROM grid INSIDE (0, 0, 10, 5)",
    "stayed": "SELECT * FROM grid INSIDE (0, 0, 5, 5) DETECT DWELL 4 h",
}
TRIP = [
    ("a", 0, 1, 1, False),
    ("b", HOUR_S, 9, 9, False),
    ("a", 30 * HOUR_S, 9, 9, False),
    ("b", 31 * HOUR_S, 2, 2, False),
    ("z", 40 * HOUR_S, 99, 99, False),
]


def follow(home, stream, arriving, cuts):
    """An engine with its archive reads a log, at whose beginning all queries are registered."""
    text = ";".join(f"REGISTER QUERY {name} AS {it}" for name, it in SELECTS.items())
    register(home, {stream.name: stream}, parse(text), owner="t")
    log = bare_log(home.log(stream.name))
    for start, end in zip([0, *cuts], cuts, strict=False):
        segment(log, arriving[start:end])
    run(home, stream, until_idle=True)


def ask(home, stream, text, past):
    (statement,) = parse(text)
    tables = list(asked(home, stream, statement.plan, past))
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def rows(table, names):
    return sorted(
        (tuple(row[name] for name in names) for row in table.to_pylist()), key=repr
    )


# With lateness a change may be told behind the day of its event, where the next day's rows have the same numbers.
TOLD_LATE = [
    ("b", 23 * HOUR_S, 0, 0, False),
    ("b", 25 * HOUR_S, 0, 0, True),
    ("a", 28 * HOUR_S, 0, 0, True),
    ("z", 75 * HOUR_S, 99, 99, False),
]


@pytest.fixture
def trip(tmp_path):
    home, stream = Home(tmp_path), settings()
    follow(home, stream, TRIP, [3, 5])
    return home, stream


@tries(4)
@given(histories(), st.sampled_from(sorted(SELECTS)), st.integers(0, 3 * 24 * HOUR_S))
@example((settings(lateness_s=2.0 * HOUR_S), TOLD_LATE, [4]), "near", 26 * HOUR_S)
def test_an_answer_at_a_time_is_that_of_a_query_registered_before_all_fixes(
    history, name, after_s
):
    with tempfile.TemporaryDirectory() as folder:
        home, (stream, arriving, cuts) = Home(Path(folder)), history
        follow(home, stream, arriving, cuts)
        at = T0 + timedelta(seconds=after_s)
        wanted = answer(home, name, at)
        given_rows = ask(home, stream, SELECTS[name], Past(until=at))
        assert sorted(given_rows, key=repr) == rows(wanted, wanted.column_names)


@tries(4)
@given(histories(), st.sampled_from(sorted(SELECTS)), st.integers(0, 2))
@example((settings(lateness_s=2.0 * HOUR_S), TOLD_LATE, [4]), "near", 2)
def test_visits_of_whole_days_are_those_that_the_query_told(history, name, first):
    with tempfile.TemporaryDirectory() as folder:
        home, (stream, arriving, cuts) = Home(Path(folder)), history
        follow(home, stream, arriving, cuts)
        since, until = T0 + timedelta(days=first), T0 + timedelta(days=3)
        wanted = sql(
            home,
            f"SELECT * FROM visits_grid WHERE query = '{name}'"
            f" AND event_date >= '{since.date()}' AND event_date < '{until.date()}'",
        )
        past = Past(since=since, until=until - MICROSECOND)
        given_rows = ask(home, stream, SELECTS[name], past)
        assert sorted(given_rows, key=repr) == rows(wanted, VISITS)


def test_an_interval_may_begin_and_end_at_any_time(trip):
    home, stream = trip
    since, until = T0 + timedelta(hours=10), T0 + timedelta(hours=32)
    day = T0 + timedelta(days=1)
    assert ask(home, stream, SELECTS["left"], Past(since=since, until=until)) == [
        ("a", None, since, day, None, "day", "day", None),
        ("a", None, day, T0 + timedelta(hours=30), None, "day", "leave", None),
        ("b", None, T0 + timedelta(hours=31), None, None, "enter", None, None),
    ]


def test_the_time_that_is_asked_for_counts(trip):
    home, stream = trip
    leaves = T0 + timedelta(hours=30)
    assert ask(home, stream, SELECTS["left"], Past(until=leaves)) == []
    before = Past(until=leaves - MICROSECOND)
    assert ask(home, stream, SELECTS["left"], before) == [("a", None, T0, None, None)]


def test_without_a_time_the_last_one_counts_of_which_everything_is_known(trip):
    home, stream = trip
    b = ("b", None, T0 + timedelta(hours=31), None, None)
    assert ask(home, stream, SELECTS["left"], None) == [b]


def test_before_the_first_fix_there_is_nobody(trip):
    home, stream = trip
    early = datetime(2020, 1, 1, tzinfo=T0.tzinfo)
    assert ask(home, stream, SELECTS["left"], Past(until=early)) == []
    interval = Past(since=early, until=early + timedelta(days=3))
    assert ask(home, stream, SELECTS["left"], interval) == []


def test_times_that_have_not_come_are_refused_by_name(trip):
    home, stream = trip
    later = Past(until=T0 + timedelta(hours=40, seconds=1))
    with pytest.raises(QueryError, match="has not come to 2024-05-02T16:00:01Z"):
        ask(home, stream, SELECTS["left"], later)
