"""The laws of queries that are judged at ticks, on the pure step: every kind against brute force."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_common.testing import oracle
from st_common.testing.laws import in_row_order, run_steps, told, told_by_oracle
from st_common.testing.random_plans import KINDS
from st_common.testing.strategies import Segmentation, case_of, cases, segmentations

SECOND_US = 1_000_000
SEEDS = st.integers(0, (1 << 48) - 1)


@st.composite
def cut_cases(draw, kind=None):
    case = draw(cases(kind=kind, rows=40))
    return case, draw(segmentations(len(case.rows))), draw(segmentations(len(case.rows)))


def holds(case, cut, *, shards):
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    changes, counters, order = run_steps(case, cut, shards=shards)
    assert told(changes, order) == told_by_oracle(expected.changes)
    assert (counters.late, counters.double) == (expected.late, expected.double)
    return in_row_order(changes, order)


@pytest.mark.spec("X1", "X2", "X4", "G1", "G2", "G3", "G4", "G5", "G7", "G8", "G9", "P1", "P5", "P7", "P8")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_a_kind_tells_what_brute_force_tells_in_one_shard_as_in_seven(kind, data):
    case, cut, other_cut = data.draw(cut_cases(kind))
    assert holds(case, cut, shards=1) == holds(case, other_cut, shards=7)


@pytest.mark.spec("X1", "P8", "P7")
@settings(max_examples=15)
@given(cut_cases(), st.integers(1, 3))
def test_queries_of_all_kinds_beside_each_other_tell_what_brute_force_tells(drawn, shards):
    case, cut, _ = drawn
    holds(case, cut, shards=shards)


@pytest.mark.spec("X1", "X6")
@settings(max_examples=15)
@given(cut_cases(), st.integers(1, 3))
def test_a_state_with_ticks_written_and_read_back_anywhere_changes_nothing(drawn, shards):
    case, cut, other_cut = drawn
    changes, counters, order = run_steps(case, cut, shards=shards)
    again, other_counters, other_order = run_steps(case, other_cut, shards=shards, through_bytes=True)
    assert in_row_order(changes, order) == in_row_order(again, other_order)
    assert (counters.late, counters.double) == (other_counters.late, other_counters.double)


def shuffled(case, rng, within_us):
    """The same fixes in another order: none comes more than the lateness after a later one. Queries come first."""
    plans = [row for row in case.rows if isinstance(row, oracle.Control) and row.row["op"] == "register"]
    fixes = [row for row in case.rows if isinstance(row, oracle.Fix)]
    fixes = list({(fix.object, fix.event_us): fix for fix in fixes}.values())  # of doubles, the first in the log stays
    fixes.sort(key=lambda fix: (fix.event_us + rng.randint(0, within_us), rng.random()))
    end = oracle.Control(position=0, row={"op": "end"})
    return replace(case, rows=tuple(replace(r, position=n) for n, r in enumerate([*plans[:3], *fixes, end])))


@pytest.mark.spec("X2")
@settings(max_examples=10)
@given(SEEDS, SEEDS, SEEDS)
def test_with_lateness_changes_do_not_depend_on_the_order_of_arrival(seed, one, other):
    case = case_of(seed)
    case = replace(case, rules=replace(case.rules, lateness_us=5 * SECOND_US))
    orders = [shuffled(case, Random(number), 5 * SECOND_US - 1) for number in (one, other)]
    found = []
    for rows in orders:
        changes, counters, _ = run_steps(rows, cut_at(rows, seed), shards=1)
        assert counters.late == 0
        found.append([(r["query"], r["object"], r["partner"], r["sign"], r["cause"], r["event_ts"], r["value"])
                      for r in changes.to_pylist()])  # fmt: skip
    assert sorted(found[0], key=repr) == sorted(found[1], key=repr)


def cut_at(case, seed):
    rng, rows = Random(seed), len(case.rows)
    return Segmentation(cuts=tuple(sorted(rng.sample(range(1, rows), rows // 3))), batches=(1, 2, 3))
