"""Verify of windows along a way, where it matters at which ticks they move: answers found by hand."""

import pytest

from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Plan
from tests.kit.archived import run_through
from tests.kit.by_hand import clock, end, fix, log, register
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Rules

pytestmark = pytest.mark.spec("X1", "W2")

PARKED = Frame(sliding=(Sliding(range=Extent(by="space", amount=10.0)),))
LAST_10_S_ONCE_FULL = Frame(
    sliding=(Sliding(range=Extent(by="time", amount=10.0)),), full=True
)
LAST_16_S_EVERY_16_S = Frame(
    sliding=(
        Sliding(
            range=Extent(by="time", amount=16.0), slide=Extent(by="time", amount=16.0)
        ),
    )
)


def verified(folder, frame, *rows, tick_s=1):
    """What verify finds of a query with a frame after such rows of the log."""
    home = Home(folder)
    stream = settings_of("s", Rules(tick_us=tick_s * 1_000_000))
    told = log(register("q", Plan(stream="s", frame=frame)), *rows)
    write_log(home.log("s"), told, range(0, len(told), 3))
    run_through(home, stream)
    (found,) = verify(home, stream)
    return found.members, found.missing, found.extra


def test_a_window_without_a_slide_holds_every_fix_of_an_object_that_stands_still(
    tmp_path,
):
    rows = [fix("car", second, 5.0) for second in (1, 2, 3)]
    assert verified(tmp_path, PARKED, *rows, end()) == (3, 0, 0)


def test_a_window_that_gets_full_as_its_first_fix_gets_too_old(tmp_path):
    """The first fix is too old at 11, and then 10 seconds lie behind the object: the second is in the window."""
    rows = [fix("car", 0.5, 0.0), fix("car", 5, 1.0), clock(12)]
    assert verified(tmp_path, LAST_10_S_ONCE_FULL, *rows) == (1, 0, 0)


def test_a_window_that_moved_at_a_tick_that_an_end_mark_cut_short(tmp_path):
    """It moved at 18; what `slow` reported from 15 came after, at the tick at 20."""
    rows = [fix("slow", 3, 0.0), fix("fast", 18, 0.0), end(), fix("slow", 15, 1.0)]
    now = [clock(21)]
    assert verified(tmp_path, LAST_16_S_EVERY_16_S, *rows, *now, tick_s=10) == (1, 0, 0)
