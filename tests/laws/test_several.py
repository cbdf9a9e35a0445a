"""Several values of each group: in any batching, shards and restarts what brute force tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.effort import tries
from tests.kit.laws import holds
from tests.kit.strategies import Case, Course, cases, courses


@st.composite
def cases_of_several(draw: st.DrawFn) -> tuple[Case, Course]:
    """Cases whose queries have several values, and a way to run each."""
    case = draw(cases(kind="several", rows=40))
    return case, draw(courses(len(case.rows)))


@pytest.mark.spec("G9", "X1", "X2", "X6")
@tries(40)
@given(cases_of_several())
def test_several_values_of_groups_are_what_brute_force_tells(drawn):
    holds(*drawn)
