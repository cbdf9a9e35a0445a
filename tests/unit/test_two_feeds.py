"""A stream that several queries feed goes by the one that is furthest behind, however fast the others are."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.errors import QueryError
from st_common.operations.awaited import awaited_us
from st_common.query.registry import drop
from tests.kit.log_writer import bare_log
from tests.kit.two_feeds import (
    Place,
    came,
    expected,
    feeder,
    home_of,
    ran,
    told,
)

FAST = [Place("a", second, second % 50) for second in range(1, 100, 3)]
SLOW = [Place("b", second, 50 - second % 50) for second in range(2, 100, 9)]


def fed(home: Home) -> list[tuple[str, float]]:
    """The records of the fed stream in the order of its log: of which source, and of which second."""
    log = bare_log(home.log("both"))
    lines = (
        json.loads(line)
        for segment in log.segments(0)
        if not segment.control
        for line in log.read(segment).splitlines()
    )
    return [(line["stream"], line["event_ts"] / 1e6) for line in lines]


def captured(home: Home, query: str) -> str:
    """What the command says that feeds a query once."""
    args = ["--home", str(home.root), "capture", "both", "--query", query]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.spec("S1", "W6")
@pytest.mark.parametrize("lateness_s", [0, 5])
def test_fixes_of_the_slower_source_are_not_late(tmp_path: Path, lateness_s: int):
    home = home_of(tmp_path, lateness_s=lateness_s)
    for query in ("f", "s"):
        assert captured(home, query).startswith("both: 0 records")
    came(home, "fast", FAST)
    came(home, "slow", SLOW[:5])
    assert "later records wait for slow.s" in captured(home, "f")
    captured(home, "s")
    # The source is at 38 s, and takes in what is 3 s late: the fast one goes no further.
    assert max(second for _, second in fed(home)) <= 35
    came(home, "slow", SLOW[5:], end=True)
    came(home, "fast", [], end=True)
    for query in ("f", "s", "f"):
        said = captured(home, query)
    assert said == "both: 0 records of query f on stream fast\n"  # all is written
    summary = ran(home)
    assert (summary.fixes, summary.late, summary.double) == (44, 0, 0)
    assert fed(home) == sorted(fed(home), key=lambda record: record[1])
    assert told(home) == expected(FAST, SLOW)


@pytest.mark.spec("S1", "W6")
def test_what_was_captured_of_a_query_that_was_dropped_comes_and_nobody_waits_for_it(
    tmp_path: Path,
):
    home = home_of(tmp_path, lateness_s=0)
    feeds = [feeder(home, "f"), feeder(home, "s")]
    came(home, "slow", SLOW[:5])
    feeds[1].run()
    assert fed(home) == []  # the fast one has said nothing yet
    drop(home, "s")
    came(home, "fast", FAST)
    feeder(home, "f").run()
    seconds = [second for _, second in fed(home)]
    assert [source for source, _ in fed(home)].count("slow") == 4
    assert seconds == sorted(seconds)
    assert max(seconds) > 90


@pytest.mark.spec("S1", "W6")
def test_a_source_that_is_over_holds_nobody_back(tmp_path: Path):
    home = home_of(tmp_path, lateness_s=0)
    feeds = [feeder(home, "f"), feeder(home, "s")]
    came(home, "slow", SLOW[:2], end=True)
    came(home, "fast", FAST)
    for feed in (*feeds, *feeds):
        feed.run()
    assert (
        len(fed(home)) == 2 + 31
    )  # what the lateness of the fast one holds is to come
    log = bare_log(home.log("both"))
    rows = [log.read(one) for one in log.segments(0) if one.control]
    assert not any(b'"end"' in row for row in rows)


@pytest.mark.spec("S1", "W6")
def test_a_query_without_a_place_stops_itself_and_nobody_else(tmp_path: Path):
    home = home_of(tmp_path, lateness_s=0)
    feeds = [feeder(home, "f"), feeder(home, "s")]
    came(home, "slow", SLOW[:2], end=True)
    came(home, "fast", FAST, end=True)
    feeds[1]._own._problem = QueryError("has no place")
    with pytest.raises(QueryError):
        feeds[1].run()
    feeds[0].run()
    assert {source for source, _ in fed(home)} == {"fast"}
    assert len(fed(home)) == len(FAST)


@pytest.mark.spec("S1", "W6")
def test_a_live_source_that_is_quiet_is_asked_to_come_to_the_next_time(tmp_path: Path):
    home = home_of(tmp_path, lateness_s=0)
    feeds = [feeder(home, "f"), feeder(home, "s")]
    came(home, "slow", [Place("b", 10, 1), Place("b", 20, 1)])
    came(home, "fast", FAST)
    for feed in (*feeds, feeds[0]):
        feed.run()
    folder, clock_us = home.stream("slow"), 17_000_000
    assert awaited_us(folder, clock_us) == 19_000_000  # the next fix of the fast one
    assert awaited_us(folder, 19_000_000) is None
    assert feeds[0].waits_for == ("slow.s",)
