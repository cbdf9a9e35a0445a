"""The laws on the pure step: no log, no table, no Spark."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from tests.kit.by_hand import clock, end, fix, log, register
from tests.kit.effort import tries
from tests.kit.laws import holds, in_row_order, run_course
from tests.kit.oracle_rows import Rules
from tests.kit.strategies import Case, Course, Segmentation, cases, courses

WHAT_HAPPENED = (
    "fixes",
    "late",
    "double",
    "gone",
    "expired",
    "stays",
    "leaves",
    "enters",
)

AT_ONCE = Course(
    cut=Segmentation(cuts=(), batches=()),
    shards=1,
    restarts=frozenset(),
    margin=0.0,
)


@st.composite
def run_cases(
    draw: st.DrawFn, layers: bool | None = None
) -> tuple[Case, Course, Course]:
    case = draw(cases(layers=layers))
    return case, draw(courses(len(case.rows))), draw(courses(len(case.rows)))


@pytest.mark.spec("X1", "X2", "X4", "X6", "G2", "G6", "P1")
@tries(60)
@given(run_cases())
def test_any_batching_shards_restarts_and_caches_tell_what_brute_force_tells(drawn):
    case, course, _ = drawn
    holds(case, course)


@pytest.mark.spec("X1", "X6", "G6")
@given(run_cases())
def test_the_sequence_of_changes_and_the_counts_do_not_depend_on_how_a_case_is_run(
    drawn,
):
    case, course, other = drawn
    changes, counters, order = run_course(case, course)
    again, other_counters, other_order = run_course(case, other)
    assert in_row_order(changes, order) == in_row_order(again, other_order)
    for (
        name
    ) in WHAT_HAPPENED:  # how much was looked at depends on what was still in memory
        assert getattr(counters, name) == getattr(other_counters, name)


@st.composite
def cases_of_many_replays(draw: st.DrawFn) -> tuple[Case, Course]:
    """Cases with end marks at any place: what was replayed, and what is replayed after it."""
    case = draw(cases(rows=40))
    ends = draw(st.sets(st.integers(0, len(case.rows) - 1), max_size=8))
    rows = [[row, end()] if at in ends else [row] for at, row in enumerate(case.rows)]
    found = [
        replace(row, position=position)
        for position, row in enumerate(row for some in rows for row in some)
    ]
    return replace(case, rows=tuple(found)), draw(courses(len(found)))


@pytest.mark.spec("X1", "X2", "S1")
@tries(40)
@given(cases_of_many_replays())
def test_replays_one_after_the_other_tell_what_brute_force_tells(drawn):
    holds(*drawn)


@pytest.mark.parametrize("between", [[], [clock(10.5)], [clock(10.0)]])
def test_a_second_end_mark_takes_the_clock_no_further(between):
    """Lateness 2 s: an end mark takes the clock right behind 10.5, so that 10.4 is late and 11 is not."""
    rows = log(
        register("q", Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=8, maxy=8))),
        fix("a", 10.5, 1, 1),
        *(end(), *between, end()),
        *(fix("a", 11, 2, 2), fix("b", 10.4, 2, 2), end()),
    )
    case = Case(rows=tuple(rows), layers={}, rules=Rules(lateness_us=2_000_000))
    holds(case, AT_ONCE)
    _, counters, _ = run_course(case, AT_ONCE)
    assert (counters.late, counters.fixes) == (1, 3)


def test_each_end_mark_closes_the_open_tick_at_the_newest_time():
    """Lateness 2 s, ticks of 1 s: the first end mark takes the clock to 10, the second judges at 10.5, not at 11."""
    plan = Plan(stream="grid", neighbours=Nearest(k=1, place=Place(x=0.0, y=0.0)))
    rows = log(
        register("q", plan),
        *(fix("a", 10, 1, 1), end(), fix("b", 10.5, 0, 0), end()),
    )
    case = Case(rows=tuple(rows), layers={}, rules=Rules(lateness_us=2_000_000))
    holds(case, AT_ONCE)
    changes, _, _ = run_course(case, AT_ONCE)
    times = changes["event_ts"].cast("int64").to_pylist()
    assert times == [10_000_000, 10_500_000, 10_500_000]
