"""Incidents tell what brute force tells, in any batches, after restarts, on any number of shards (SPEC X8, X1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.effort import tries
from tests.kit.laws import holds
from tests.kit.strategies import cases, courses


@st.composite
def lives(draw: st.DrawFn, *, layers: bool):
    """A log whose queries tell incidents, and how it is run."""
    case = draw(cases(kind="incidents", layers=layers))
    return case, draw(courses(len(case.rows)))


@pytest.mark.spec("X8", "X1")
@tries(20)
@given(lives(layers=False))
def test_incidents_tell_what_brute_force_tells(life):
    holds(*life)


@pytest.mark.spec("X8", "X1", "X4")
@tries(12)
@given(lives(layers=True))
def test_incidents_at_features_tell_what_brute_force_tells(life):
    """Also over versions of the layer, and where queries come, are replaced and go."""
    holds(*life)
