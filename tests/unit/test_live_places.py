"""One reader for all who look: what it begins with, how far it reads at once, when it is let go."""

from dataclasses import replace

import numpy as np
import pytest

from st_common.answers import live_places as reader
from st_common.answers.live_places import LivePlaces
from st_common.engine.run import run
from st_common.history.latest import flush_latest
from st_common.log.control import write_clock
from st_common.log.record_settings import log_for
from st_common.log.stored_log import StoredLog
from st_common.position import position_of
from st_common.server.page import readers as lives
from st_common.server.page.readers import Lives, live_places
from st_common.server.page.tiles import Recent
from st_common.server.parameters import Kept, Parameters
from tests.kit.server_http import Engine
from tests.kit.server_page import fix, place_in

pytestmark = pytest.mark.spec("P10")


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def stream(place):
    return place.stream("ships")


def append(place, stream, *lines):
    log_for(place.home, stream).append("".join(lines).encode(), arrival_us=1_000_000)


def shown(look, names):
    moved = look.moved
    return dict(
        zip(names[moved.index], zip(moved.x, moved.y, strict=True), strict=True)
    )


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("flushed", [0, 1, 2])
def test_it_begins_with_whatever_the_archive_has_made_of_the_log(
    place, stream, every, flushed
):
    """Each of three steps may lie in `latest`, in positions or in the log alone."""
    stream = replace(stream, latest_every=every)
    engine = Engine(place, "ships")
    try:
        for step in range(3):
            lines = [fix(f"s{n}", 10 * step + n, n + 1, step) for n in range(step, 5)]
            append(place, stream, *lines)
            if step < 2:
                engine.work()
            if step < flushed:
                flush_latest(place.home, stream)
    finally:
        engine.close()
    places = LivePlaces(place.home, stream)
    look = places.look()
    assert look.is_whole
    assert shown(look, look.names) == {f"s{n}": (n + 1, min(n, 2)) for n in range(5)}
    assert look.newest_us == 24_000_000
    for n in range(5):
        assert places.position_of(f"s{n}") & 0xFFFFFF == n - min(n, 2)


def test_a_look_reads_on_for_a_while_and_says_what_it_left(place, stream, monkeypatch):
    monkeypatch.setattr(reader, "_BATCH_SEGMENTS", 1)
    for t in range(3):
        append(place, stream, fix("a", t, t, t))
    passing = iter(np.arange(0, 100, 0.4).tolist())
    places = LivePlaces(place.home, stream, clock_s=lambda: next(passing))
    seen = []
    for _ in range(10):
        look = places.look()
        seen.append(look.newest_us)
        if look.unread_since_us is None:
            break
        assert look.unread_since_us >= 1_000_000
    assert seen[-1] == 2_000_000
    assert len(seen) > 1


@pytest.mark.parametrize("parts", [1, 256])
def test_the_newest_fixes_are_kept_for_ways_and_older_ones_are_not(
    place, stream, monkeypatch, parts
):
    monkeypatch.setattr(reader, "_RECENT_ROWS", 3)
    monkeypatch.setattr(reader, "_RECENT_PARTS", parts)
    places = LivePlaces(place.home, stream)
    for t in range(3):
        append(place, stream, fix("a", t, t, t), fix("b", t, 9, 9))
        places.look()
    end = StoredLog(place.home.log("ships")).end()
    newest = position_of(end - 1, 0)
    assert places.behind(newest, "a")["x"].to_pylist() == [2.0]
    assert places.behind(newest, "none").num_rows == 0
    assert parts == 1 or places.behind(0, "a") is None


def test_a_log_that_began_anew_is_read_anew(place, stream, tmp_path):
    append(place, stream, fix("a", 1, 1, 1))
    append(place, stream, fix("b", 1, 1, 1))
    places = LivePlaces(place.home, stream)
    first = places.look()
    place.home.stream("ships").rename(tmp_path / "gone")
    append(place, stream, fix("c", 1, 3, 3))
    again = places.look(first.epoch, first.serial, len(first.names))
    assert (again.is_whole, again.names.tolist()) == (True, ["c"])


def test_a_reader_is_kept_for_who_looks_and_let_go_when_nobody_does(
    place, stream, monkeypatch
):
    asked = Parameters(place=place, path={}, params={}, kept=Kept())
    first = live_places(asked, stream)
    assert live_places(asked, stream) is first
    asked.kept.rest()
    assert asked.kept.of(Lives).held("ships") is first
    other = replace(stream, silence_s=5.0)
    assert live_places(asked, other) is not first
    monkeypatch.setattr(lives, "_KEPT_S", -1.0)
    asked.kept.rest()
    assert asked.kept.of(Lives).held("ships") is None


def test_what_was_asked_for_last_is_kept_up_to_a_bound():
    made = []

    def value_of(key):
        return lambda: made.append(key) or key

    recent = Recent(10, len)
    for key in ("aaaa", "bbbb", "aaaa", "cccc", "bbbb", "aaaa"):
        assert recent.of(key, value_of(key)) == key
    assert made == ["aaaa", "bbbb", "cccc", "bbbb", "aaaa"]
    assert recent.of("x" * 50, value_of("x" * 50)) == "x" * 50
    recent.of("aaaa", value_of("aaaa"))
    assert made[-1] == "aaaa"


def test_who_is_silent_by_a_clock_row_is_taken_off_though_no_fix_comes(place, stream):
    places = LivePlaces(place.home, stream)
    append(place, stream, fix("a", 0, 1, 1), fix("b", 50, 2, 2))
    seen = places.look()
    log = log_for(place.home, stream)
    write_clock(log, 100_000_000, arrival_us=1_000_000)  # a: silent for just 100 s
    assert len(places.look(seen.epoch, seen.serial).moved.index) == 0
    write_clock(log, 100_000_001, arrival_us=1_000_000)
    look = places.look(seen.epoch, seen.serial)
    assert (look.moved.index.tolist(), np.isnan(look.moved.x).tolist()) == ([0], [True])
    assert look.newest_us == 50_000_000
    assert places.seen == (1, 50_000_000)
    append(place, stream, fix("a", 101, 3, 3))
    back = places.look(look.epoch, look.serial)
    assert shown(back, np.array(["a", "b"])) == {"a": (3, 3)}


def test_a_reader_that_begins_at_the_archive_knows_the_clock_rows_in_it(place, stream):
    append(place, stream, fix("a", 0, 1, 1), fix("b", 50, 2, 2))
    write_clock(log_for(place.home, stream), 120_000_000, arrival_us=1_000_000)
    run(place.home, stream, until_idle=True)
    look = LivePlaces(place.home, stream).look()
    assert shown(look, look.names) == {"b": (2, 2)}
