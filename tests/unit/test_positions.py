"""Places in a log."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.errors import ConfigError
from st_common.position import (
    parsed,
    position_of,
    printed,
    row_of,
    segment_of,
    segments_of,
    start_of,
)

PLACES = st.tuples(st.integers(0, 1 << 38), st.integers(0, (1 << 24) - 1))


@given(PLACES, PLACES)
def test_positions_order_like_the_log_and_can_be_read_back(one, other):
    first, second = position_of(*one), position_of(*other)
    assert (first < second) == (one < other)
    assert (segment_of(first), row_of(first)) == one
    assert start_of(one[0]) <= first < start_of(one[0] + 1)
    assert parsed(printed(first)) == parsed(str(first)) == first
    assert segments_of(np.array([first, second])).tolist() == [one[0], other[0]]


@pytest.mark.parametrize("text", ["", "x", "5.", ".5", "5.17.1", "-3", "5.16777216"])
def test_what_is_no_position_is_named(text):
    with pytest.raises(ConfigError, match="is no position in a log"):
        parsed(text)
