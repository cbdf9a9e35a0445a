"""The laws on the pure step: no log, no table, no Spark."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.by_hand import end
from tests.kit.effort import tries
from tests.kit.laws import holds, in_row_order, run_course
from tests.kit.strategies import Case, Course, cases, courses

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
