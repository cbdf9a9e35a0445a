"""Idioms over runs of rows, against loops."""

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from st_common.runs import (
    firsts,
    highest_before,
    is_first,
    is_last,
    last_set,
    ranges,
    ranks_of,
    shifted,
    starts_of,
)

COLUMNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12)
FLAGS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12)


def columns(rows):
    return tuple(np.array([row[at] for row in rows], np.int64) for at in (0, 1))


@given(COLUMNS)
def test_runs_begin_and_end_where_a_column_changes(rows):
    one, other = columns(rows)
    begins = [at == 0 or rows[at] != rows[at - 1] for at in range(len(rows))]
    ends = [at == len(rows) - 1 or begins[at + 1] for at in range(len(rows))]
    first = is_first(one, other)
    assert first.tolist() == begins
    assert is_last(one, other).tolist() == ends
    assert firsts(one, other).tolist() == [
        at for at, begin in enumerate(begins) if begin
    ]
    starts = [max(b for b in range(at + 1) if begins[b]) for at in range(len(rows))]
    assert starts_of(first).tolist() == starts
    ranks = [at - start for at, start in enumerate(starts)]
    assert ranks_of(first).tolist() == ranks


@given(FLAGS)
def test_the_last_that_is_set_is_found_also_within_runs(rows):
    is_set = np.array([row[0] for row in rows], bool)
    first = np.array([row[1] or at == 0 for at, row in enumerate(rows)], bool)
    places = [at for at, row in enumerate(rows) if row[0]]
    anywhere = [
        max((p for p in places if p <= at), default=-1) for at in range(len(rows))
    ]
    assert last_set(is_set).tolist() == anywhere
    start = starts_of(first)
    within = [p if p >= start[at] else -1 for at, p in enumerate(anywhere)]
    assert last_set(is_set, start).tolist() == within


@given(st.lists(st.lists(st.integers(-3, 9), min_size=1, max_size=6), max_size=4))
def test_the_highest_before_each_row_of_a_group_counts_what_the_group_began_with(
    groups,
):
    expected, initial = [], []
    for number, values in enumerate(groups):
        expected += [max(number, *values[:at], number) for at in range(len(values))]
        initial += [number] * len(values)
    group = [7 - number for number, values in enumerate(groups) for _ in values]
    arrays = [
        np.array(column, np.int64) for column in (group, list(chain(*groups)), initial)
    ]
    assert highest_before(*arrays).tolist() == expected


@given(st.lists(st.integers(-5, 5), max_size=6))
def test_values_move_by_one(values):
    moved = shifted(np.array(values, np.int64), 7)
    assert moved.tolist() == [7, *values][: len(values)]


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4)), max_size=6))
def test_ranges_follow_each_other(pairs):
    starts, counts = columns(pairs)
    expected = [start + at for start, count in pairs for at in range(count)]
    assert ranges(starts, counts).tolist() == expected
