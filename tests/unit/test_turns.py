"""What left and what came over all ticks of a step, whose turns come in parts that each count ticks from 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.arrays.turns import Turns

KEYS = range(6)


def turns_of(flips: list[list[int]], held: set[int]) -> Turns:
    """The turns of some ticks, given which keys flip at each; `held` is what holds, and is kept up."""
    tick, key, comes = [], [], []
    for number, flipped in enumerate(flips):
        for one in flipped:
            tick.append(number)
            key.append(one)
            comes.append(one not in held)
            held ^= {one}
    return Turns(
        tick=np.array(tick, np.int64),
        key=np.array(key, np.int64),
        comes=np.array(comes, bool),
    )


@pytest.mark.spec("X1")
@given(
    before=st.sets(st.sampled_from(KEYS)),
    parts=st.lists(
        st.lists(st.lists(st.sampled_from(KEYS), unique=True), min_size=1, max_size=3),
        max_size=3,
    ),
)
def test_what_left_and_what_came_is_the_difference_of_the_answers(before, parts):
    held = set(before)
    turns = [turns_of(flips, held) for flips in parts]
    left, came = Turns.net_of(turns)
    assert left.tolist() == sorted(before - held)
    assert came.tolist() == sorted(held - before)


def test_a_key_that_comes_in_one_part_and_goes_in_the_next_did_neither():
    held: set[int] = set()
    turns = [turns_of([[3]], held), turns_of([[3]], held)]
    assert [part.tolist() for part in Turns.net_of(turns)] == [[], []]
