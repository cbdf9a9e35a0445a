"""Fixes that came too late are told: how many, whose, what moved the watermark, and what takes them in."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.lateness import Warnings, lateness_of, warnings_of, words_of
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.log.control import write_end
from st_common.log.record_settings import log_for
from tests.kit.effort import tries

BASE = 1_700_000_000
CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    time_unit="s",
    max_jump_s=None,
    engine="local",
)


def told(folder: Path, stream: StreamSettings, *told: tuple[str, int]):
    """A home whose engine has read some fixes, and what it counted."""
    home = Home(folder)
    log = log_for(home, stream)
    lines = "".join(f"{name},{BASE + at},1,2\n" for name, at in told)
    log.append(b"id,t,x,y\n" + lines.encode(), arrival_us=(BASE + 10**9) * 1_000_000)
    write_end(log, arrival_us=(BASE + 10**9) * 1_000_000)
    return home, run(home, stream, until_idle=True)


@pytest.mark.spec("X14")
@tries(8)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 90)), max_size=25),
    st.sampled_from([0.0, 5.0, 40.0]),
    st.sampled_from([None, 10.0, 50.0]),
)
def test_as_many_are_late_as_the_engine_says(
    tmp_path_factory, fixes, lateness, silence
):
    stream = replace(CARS, lateness_s=lateness, silence_s=silence)
    home, counted = told(tmp_path_factory.mktemp("home"), stream, *fixes)
    seen = lateness_of(home, stream)
    assert (seen.fixes, seen.late) == (counted.fixes, counted.late)
    assert sum(one.late for one in seen.objects) == counted.late


@tries(8)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 90)), min_size=3, max_size=25
    )
)
def test_the_lateness_that_is_named_takes_all_of_them_in(tmp_path_factory, fixes):
    fixes = [("a", 0), ("b", 0), ("c", 0), *fixes]  # nobody is always late
    stream = replace(CARS, lateness_s=1.0)
    home, _ = told(tmp_path_factory.mktemp("home"), stream, *fixes)
    needed_s = lateness_of(home, stream).needed_s
    wider = replace(stream, lateness_s=float(max(needed_s, 1)))
    _, counted = told(tmp_path_factory.mktemp("home"), wider, *fixes)
    assert counted.late == 0


def test_who_moved_the_watermark_is_named(tmp_path):
    fixes = [("a", 0), ("b", 1), ("b", 900), *(("a", n) for n in range(2, 60))]
    stream = replace(CARS, lateness_s=10.0)
    home, counted = told(tmp_path / "home", stream, *fixes)
    mover = lateness_of(home, stream).mover
    assert mover is not None
    assert (mover.object, mover.position, mover.passed) == ("b", 2, 58)
    lines = warnings_of(home, stream, late=counted.late, fixes=counted.fixes)
    assert lines == [
        "58 of 61 fixes (95 %) came too late and changed no answer",
        "late are those of a 58",
        "b at 2023-11-14T22:28:20.000000Z (segment 0, row 2) moved the watermark past 58 of them",
        "lateness_s = 898 takes them in; fairway replay sorts a file, unless it is asked for --as-they-stand",
    ]
    assert Warnings().of(home, stream, late=58, fixes=61) == lines


def test_a_clock_1024_weeks_behind_is_named(tmp_path):
    week = 7 * 86_400
    fixes = [each for n in range(5) for each in (("good", n), ("old", n - 1024 * week))]
    stream = replace(CARS, silence_s=3600.0)
    home, _ = told(tmp_path / "home", stream, *fixes)
    (old,) = lateness_of(home, stream).objects
    assert words_of(old) == (
        "'old' sent 5 fixes, all late: the newest is of 2004-03-30T22:13:24.000000Z, 1,024 weeks behind the stream"
    )


def test_one_in_a_hundred_is_no_warning(tmp_path):
    assert warnings_of(Home(tmp_path), CARS, late=1, fixes=100) == []
    assert warnings_of(Home(tmp_path), CARS, late=0, fixes=0) == []
