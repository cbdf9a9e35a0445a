"""Commands that are killed (-9) at a step or a moment do what they were to do when they are run again, and once."""

import pytest

from tests.kit.command_kills import backtested, resharded, spread


@pytest.mark.spec("X1", "X6")
def test_a_stream_goes_over_to_other_engines_with_the_changes_of_brute_force(tmp_path):
    assert resharded(tmp_path, kills=4, seed=2, rows=100).counted > 10


@pytest.mark.spec("C2")
def test_layers_are_spread_over_new_regions_and_told_once(tmp_path):
    assert spread(tmp_path, kills=6, seed=5).kills >= 6


@pytest.mark.spec("X10")
def test_a_backtest_leaves_the_home_as_it_is_and_counts_right(tmp_path):
    assert backtested(tmp_path, kills=2, seed=3, days=1).counted > 10
