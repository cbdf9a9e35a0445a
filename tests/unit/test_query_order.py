"""The rule that places the spatial operator below or above a selection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.order import EVALUATION_NS, HIT_NS, PROBE_NS, choose, flow

shares = st.floats(0, 1)


@pytest.mark.spec("G10")
def test_the_larger_a_region_the_sooner_the_selection_stands_below():
    shares = [0.02 * 2**n for n in range(6)]
    chosen = [choose(0.05, share) for share in shares]
    assert set(chosen) == {"space_first", "select_first"}
    assert chosen == sorted(chosen, reverse=True)


@pytest.mark.spec("G10")
def test_queries_that_share_a_selection_evaluate_it_once_where_it_stands_below():
    assert choose(0.05, 0.02) == "space_first"
    assert choose(0.05, 0.02, alike=1000) == "select_first"
    first, second = (
        flow(1000, order, 0.05, 0.32, alike=2)
        for order in ("space_first", "select_first")
    )
    assert (first.evaluated, first.probed, first.pairs) == (640, 1000, 640)
    assert (second.evaluated, second.probed, second.pairs) == (1000, 50, 32)
    assert first.out == second.out == 32


@pytest.mark.spec("G10")
@pytest.mark.parametrize("known", [(None, None), (0.0, None), (None, 1.0)])
def test_what_is_unknown_leaves_the_spatial_operator_below(
    known: tuple[float | None, float | None],
):
    assert choose(*known) == "space_first"


@given(where=shares, space=shares)
def test_the_chosen_order_costs_no_more_than_the_other(where: float, space: float):
    below = PROBE_NS + space * (EVALUATION_NS + HIT_NS)
    above = EVALUATION_NS + where * PROBE_NS + where * space * HIT_NS
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
