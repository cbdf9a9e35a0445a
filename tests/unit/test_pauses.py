"""How often an engine looks for news: seldom where nothing has come for long."""

import pytest

from st_common.engine.run import MOST_POLL_S, POLL_S, pause_s


@pytest.mark.parametrize(
    ("quiet_s", "expected_s"),
    [(0.0, POLL_S), (0.4, POLL_S), (3.0, 0.03), (60.0, MOST_POLL_S)],
)
def test_the_pause_is_a_hundredth_of_how_long_it_was_quiet(quiet_s, expected_s):
    assert pause_s(quiet_s) == pytest.approx(expected_s)
