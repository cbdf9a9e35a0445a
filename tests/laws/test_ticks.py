"""The laws of queries that are judged at ticks, on the pure step: every kind against brute force."""

from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.ahead import ahead
from st_common.operators.runtime import ticks
from tests.kit import oracle
from tests.kit.by_hand import end
from tests.kit.effort import tries
from tests.kit.laws import holds, run_course, run_steps
from tests.kit.random_plans import KINDS
from tests.kit.strategies import Segmentation, case_of, cases, courses

SECOND_US = 1_000_000
SEEDS = st.integers(0, (1 << 48) - 1)


@st.composite
def run_cases(draw, kind=None):
    case = draw(cases(kind=kind, rows=40))
    return case, draw(courses(len(case.rows))), draw(courses(len(case.rows)))


@pytest.mark.spec(
    "X1",
    "X2",
    "X4",
    "X6",
    "G1",
    "G2",
    "G3",
    "G4",
    "G5",
    "G6",
    "G7",
    "G8",
    "G9",
    "P1",
    "P5",
    "P7",
    "P8",
)
@pytest.mark.parametrize("kind", KINDS)
@tries(10)
@given(data=st.data())
def test_a_kind_tells_what_brute_force_tells_however_it_is_run(kind, data):
    case, course, other = data.draw(run_cases(kind))
    assert holds(case, course) == holds(case, other)


@pytest.mark.spec("X1", "P8", "P7")
@tries(15)
@given(run_cases())
def test_queries_of_all_kinds_beside_each_other_tell_what_brute_force_tells(drawn):
    case, course, _ = drawn
    holds(case, course)


@pytest.mark.spec("X1", "P8")
@pytest.mark.parametrize("kind", KINDS)
@tries(5)
@given(data=st.data())
def test_ticks_that_are_judged_together_tell_what_they_tell_one_by_one(kind, data):
    case, course, _ = data.draw(run_cases(kind))
    together, _, _ = run_course(case, course)
    with patch.object(ahead, "MOST_PAIRS", 0), patch.object(ticks, "MOST_TICKS", 1):
        alone, _, _ = run_course(case, course)
    assert together.equals(alone)


@pytest.mark.spec("G6")
@tries(30)
@given(
    data=st.data(), kind=st.sampled_from(("moving", "moving", "neighbours", "counting"))
)
def test_caches_that_stay_in_memory_tell_what_brute_force_tells(kind, data):
    case = data.draw(cases(kind=kind, rows=40))
    course = data.draw(courses(len(case.rows), margins=(0.5, 1.5, 4.0), shards=(1, 2)))
    holds(case, replace(course, restarts=frozenset()))


def shuffled(case, rng, within_us):
    """The same fixes in another order: none comes more than the lateness after a later one. Queries come first."""
    plans = [
        row
        for row in case.rows
        if isinstance(row, oracle.Control) and row.row["op"] == "register"
    ]
    fixes = [row for row in case.rows if isinstance(row, oracle.Fix)]
    fixes = list(
        {(fix.object, fix.event_us): fix for fix in fixes}.values()
    )  # of doubles, the first in the log stays
    fixes.sort(key=lambda fix: (fix.event_us + rng.randint(0, within_us), rng.random()))
    return replace(
        case,
        rows=tuple(
            replace(r, position=n) for n, r in enumerate([*plans[:3], *fixes, end()])
        ),
    )


@pytest.mark.spec("X2")
@tries(10)
@given(SEEDS, SEEDS, SEEDS)
def test_with_lateness_changes_do_not_depend_on_the_order_of_arrival(seed, one, other):
    case = case_of(seed)
    case = replace(case, rules=replace(case.rules, lateness_us=5 * SECOND_US))
    orders = [
        shuffled(case, Random(number), 5 * SECOND_US - 1) for number in (one, other)
    ]
    found = []
    for rows in orders:
        changes, counters, _ = run_steps(rows, cut_at(rows, seed), shards=1)
        assert counters.late == 0
        found.append(
            [
                (
                    r["query"],
                    r["object"],
                    r["partner"],
                    r["sign"],
                    r["cause"],
                    r["event_ts"],
                    r["value"],
                )
                for r in changes.to_pylist()
            ]
        )
    assert sorted(found[0], key=repr) == sorted(found[1], key=repr)


def cut_at(case, seed):
    rng, rows = Random(seed), len(case.rows)
    return Segmentation(
        cuts=tuple(sorted(rng.sample(range(1, rows), rows // 3))), batches=(1, 2, 3)
    )
