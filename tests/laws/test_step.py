"""The laws on the pure step: no log, no table, no Spark."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_common.testing import oracle
from st_common.testing.laws import in_row_order, run_steps, told, told_by_oracle
from st_common.testing.strategies import Case, Segmentation, cases, segmentations

WHAT_HAPPENED = ("fixes", "late", "double", "gone", "expired", "stays", "leaves", "enters")


@st.composite
def cut_cases(draw: st.DrawFn, layers: bool | None = None) -> tuple[Case, Segmentation, Segmentation]:
    case = draw(cases(layers=layers))
    return case, draw(segmentations(len(case.rows))), draw(segmentations(len(case.rows)))


@pytest.mark.spec("X1", "X2", "X4", "G2", "P1")
@settings(max_examples=60)
@given(cut_cases(), st.integers(1, 3))
def test_any_batching_and_shards_tell_what_brute_force_tells(drawn, shards):
    case, cut, _ = drawn
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    changes, counters, order = run_steps(case, cut, shards=shards)
    assert told(changes, order) == told_by_oracle(expected.changes)
    assert (counters.late, counters.double) == (expected.late, expected.double)


@pytest.mark.spec("X1")
@given(cut_cases(), st.integers(1, 3), st.integers(1, 3))
def test_the_sequence_of_changes_does_not_depend_on_batches_or_shards(drawn, shards, other_shards):
    case, cut, other_cut = drawn
    changes, _, order = run_steps(case, cut, shards=shards)
    again, _, other_order = run_steps(case, other_cut, shards=other_shards)
    assert in_row_order(changes, order) == in_row_order(again, other_order)


@pytest.mark.spec("X1", "X6")
@given(cut_cases(), st.integers(1, 2))
def test_a_state_written_and_read_back_anywhere_changes_nothing(drawn, shards):
    case, cut, _ = drawn
    changes, counters, order = run_steps(case, cut, shards=shards)
    again, other_counters, _ = run_steps(case, cut, shards=shards, through_bytes=True)
    assert in_row_order(changes, order) == in_row_order(again, order)
    for name in WHAT_HAPPENED:  # how much was looked at depends on what was still in memory
        assert getattr(counters, name) == getattr(other_counters, name)
