"""Places in a log, and the order of several logs as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.errors import ConfigError, LogError
from st_common.joint_order import JointOrder, JointRow
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


@st.composite
def joint_rows(draw):
    """Rows of three logs, each of which goes on where it was."""
    reached, rows = dict.fromkeys("abc", 0), []
    for log in draw(st.lists(st.sampled_from("abc"), max_size=8)):
        end = reached[log] + draw(st.integers(1, 4))
        rows.append(JointRow(log=log, first=reached[log], end=end))
        reached[log] = end
    return rows


@given(joint_rows())
def test_a_joint_order_has_all_segments_once_and_keeps_each_logs_order(rows):
    expected = [
        (row.log, segment) for row in rows for segment in range(row.first, row.end)
    ]
    order = JointOrder(rows)
    assert [order.source_of(number) for number in range(len(order))] == expected
    assert [order.number_of(*source) for source in expected] == list(range(len(order)))
    for log in "abc":
        mine = [segment for name, segment in expected if name == log]
        assert mine == list(range(len(mine)))
        joint = [order.position_in(log, position_of(segment, 7)) for segment in mine]
        assert joint == sorted(joint)
        assert all(row_of(position) == 7 for position in joint)


@given(joint_rows())
def test_what_the_order_does_not_have_yet_is_an_error(rows):
    order = JointOrder(rows)
    with pytest.raises(LogError, match="none of the number"):
        order.source_of(len(order))
    end = max((row.end for row in rows if row.log == "a"), default=0)
    with pytest.raises(LogError, match=f"segment {end} of 'a' yet"):
        order.number_of("a", end)


@pytest.mark.parametrize(("first", "end"), [(1, 2), (0, 0), (3, 2)])
def test_rows_that_leave_out_or_repeat_are_refused(first, end):
    with pytest.raises(LogError, match="joint row 0: segments"):
        JointOrder([JointRow(log="a", first=first, end=end)])
    twice = JointRow(log="a", first=0, end=1)
    with pytest.raises(LogError, match="joint row 1"):
        JointOrder([twice, twice])
