"""The rule that places the spatial operator below or above a selection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.order import PREDICATE_COST, PROBE_COST, choose, flow

shares = st.floats(0, 1)


@pytest.mark.spec("G10")
@pytest.mark.parametrize(
    ("region", "chosen"),
    [
        (0.02, "space_first"),
        (0.04, "space_first"),
        (0.08, "space_first"),
        (0.16, "space_first"),
        (0.31, "space_first"),
        (0.33, "select_first"),
        (0.64, "select_first"),
        (1.0, "select_first"),
    ],
)
def test_a_selection_of_5_percent_crosses_over_at_32_percent_as_in_the_paper(
    region: float, chosen: str
):
    assert choose(0.05, region) == chosen


@pytest.mark.spec("G10")
@pytest.mark.parametrize("known", [(None, None), (0.0, None), (None, 1.0)])
def test_what_is_unknown_leaves_the_spatial_operator_below(
    known: tuple[float | None, float | None],
):
    assert choose(*known) == "space_first"


@given(where=shares, space=shares)
def test_the_chosen_order_costs_no_more_than_the_other(where: float, space: float):
    below = PROBE_COST + space * PREDICATE_COST
    above = PREDICATE_COST + where * PROBE_COST
    cheaper = below if choose(where, space) == "space_first" else above
    assert cheaper == pytest.approx(min(below, above))


@given(objects=st.integers(0, 10**6), where=shares, space=shares)
def test_both_orders_let_the_same_tuples_out(objects: int, where: float, space: float):
    first, second = (
        flow(objects, order, where, space) for order in ("space_first", "select_first")
    )
    assert first.out == second.out
    assert (first.probed, second.evaluated) == (objects, objects)
    assert first.evaluated <= objects
    assert second.probed <= objects


def test_tuples_are_counted_at_both_operators():
    assert flow(1000, "space_first", 0.05, 0.32).tuples == 1320
    assert flow(1000, "select_first", 0.05, 0.32).tuples == 1050
    assert flow(1000, "space_first", 0.05, 0.32).out == 16
