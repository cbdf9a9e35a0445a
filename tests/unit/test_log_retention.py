"""Records of a log that no reader needs go after `log_days`; what reads them is refused by name (SPEC S4)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.checks.audit import audit
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.delivery.feeding_query import feed_folder
from st_common.engine.archive import READER
from st_common.engine.committing import APP
from st_common.errors import LogError
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.log_purging import purge_records, to_cut
from st_common.log.reader import pieces
from st_common.maintenance.held import held
from st_common.maintenance.log_retention import LogRetained, retain_logs
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.storage import LocalStorage
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.spec("S4"), pytest.mark.spec("C5")]

US = 1_000_000
DAY_US = 86_400 * US
CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
log_days = 3
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
DAYS = 6
NOW_US = DAYS * DAY_US


def fairway(root: Path, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["--home", str(root), *args], prog_name="fairway")
    assert done.exit_code == code, done.output
    return done.output


def arrive(home: Home, day: int) -> None:
    """One segment: two objects cross the border of the query each day."""
    side = 9 * (day % 2)
    body = f"id,t,x,y\na,{day * 86_400},{side},1\nb,{day * 86_400},{9 - side},1\n"
    bare_log(home.log("grid")).append(body.encode(), arrival_us=day * DAY_US)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A stream that has run for six days."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    text = "REGISTER QUERY west AS SELECT * FROM grid INSIDE (0, 0, 5, 5)"
    home, streams = Home(tmp_path), load_streams(tmp_path / "conf")
    register(home, streams, parse(text), owner="t", now_us=0)
    for day in range(DAYS):
        arrive(home, day)
    fairway(tmp_path, "run", "grid", "--until-idle")
    return home


def retained(home: Home, *, purge: bool = True) -> LogRetained:
    streams = load_streams(home.root / "conf")
    (done,) = retain_logs(home, streams, now_us=NOW_US, purge=purge)
    return done


def numbers_left(home: Home) -> list[int]:
    """The segments of records whose records are still there."""
    log = Log(home.log("grid"))
    left = []
    for segment in (*log.kept(), *log.segments(log.first())):
        try:
            log.read(segment)
        except LogError:
            continue
        left += [] if segment.control else [segment.number]
    return left


def test_a_stream_goes_on_behind_records_that_are_gone_and_answers_are_the_same(home):
    changes = fairway(home.root, "changes", "west", "--format", "csv")
    before = numbers_left(home)
    done = retained(home)
    assert (done.cut.segments, done.held_by) == (len(before) - 3, "")
    assert numbers_left(home) == before[-3:]
    assert fairway(home.root, "changes", "west", "--format", "csv") == changes
    assert "west" in fairway(home.root, "query", "list")
    arrive(home, DAYS)
    fairway(home.root, "run", "grid", "--until-idle")
    after = fairway(home.root, "changes", "west", "--format", "csv")
    assert after.startswith(changes)
    assert len(after.splitlines()) == len(changes.splitlines()) + 2
    assert retained(home).cut.segments == 0


def test_a_reader_behind_is_refused_by_name_and_numbers_and_statements_stay(home):
    log = Log(home.log("grid"))
    end, statements = log.end(), log.control_segments(0)
    retained(home)
    log = Log(home.log("grid"))
    assert log.end() == end
    assert log.control_segments(0) == statements
    assert all(len(control_rows(log, one)) for one in statements)
    stream = load_streams(home.root / "conf")["grid"]
    said = "of stream 'grid' were purged, as all before segment"
    with pytest.raises(LogError, match=said):
        list(pieces(log, log.segments(0), stream))
    assert "was purged before segment" in fairway(
        home.root, "streams", "reset", "grid", "--yes", code=2
    )
    assert "records were purged" in fairway(
        home.root, "streams", "skip", "grid", "1", "--why", "gone", code=2
    )
    findings = list(audit(home, stream))
    assert [each.problem for each in findings if each.problem] == []
    assert "which were purged" in findings[0].unchecked


def test_who_has_not_read_holds_the_log(home):
    log = Log(home.log("grid"))
    log.publish(READER, 2)
    assert retained(home).held_by == f"{READER} stands at segment 2"
    assert min(numbers_left(home)) == 2
    log.publish(READER, log.end())
    note = feed_folder(home, "grid") / "other.q.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"segment": 3}))
    assert retained(home).held_by == "feed other.q stands at segment 3"
    note.write_text("torn")
    assert retained(home).held_by == "feed other.q stands at segment 0"


def test_a_stream_that_never_ran_or_says_nothing_keeps_its_log(home):
    for path in (home.log("grid") / "readers").glob(f"{APP}.json"):
        path.unlink()
    assert retained(home).held_by == f"{APP} stands at segment 0"
    streams = dict(load_streams(home.root / "conf"))
    silent = {"grid": replace(streams["grid"], log_days=None)}
    assert list(retain_logs(home, silent, now_us=NOW_US)) == []


def test_doctor_says_what_a_log_without_an_end_has_kept_for_long(home):
    conf = home.root / "conf" / "streams.toml"
    conf.write_text(CONF.replace("log_days = 3\n", ""))
    streams = load_streams(conf.parent)
    assert not [line for line in held(home, streams, now_us=NOW_US) if "log" in line]
    month_us = 30 * DAY_US
    (line,) = held(home, streams, now_us=NOW_US - 3 * DAY_US + month_us)
    old = to_cut(Log(home.log("grid")), numbers_left(home)[-2])
    assert old.segments > 0
    said = f"{old.bytes / (1 << 20):,.1f} MiB of records are older than 30 days"
    assert line == f"log of grid: {said}; none go without log_days"


@contextmanager
def dying_at(step: int) -> Iterator[None]:
    """The step-th write of an object is the last thing that the process does."""
    own, count = LocalStorage.put, [0]

    def put(self: LocalStorage, *args: object, **options: object) -> None:
        own(self, *args, **options)
        count[0] += 1
        if count[0] == step:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "put", put)
        yield


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_a_purge_that_is_killed_is_brought_to_its_end_by_the_next(home, step: int):
    log = Log(home.log("grid"))
    before = numbers_left(home)
    whole = to_cut(log, before[-2])
    with dying_at(step):
        try:
            purge_records(log, before[-2])
        except KeyboardInterrupt:
            said = "were purged, as all before segment"
            for number in set(before) - set(numbers_left(home)):
                with pytest.raises(LogError, match=said):
                    log.read(log.segment(number))
    purge_records(log, before[-2])
    assert numbers_left(home) == before[-2:]
    assert to_cut(log, before[-2]).segments == 0
    assert whole.segments == len(before) - 2


def test_doctor_and_maintain_say_what_could_go_and_what_went(home):
    streams = load_streams(home.root / "conf")
    lines = list(held(home, streams, now_us=NOW_US))
    assert len([line for line in lines if line.startswith("log of grid: ")]) == 1
    assert numbers_left(home)[0] == 1, "nothing has gone yet"
    assert (
        "kept  log of grid: "
        in CliRunner().invoke(app, ["--home", str(home.root), "doctor"]).output
    )
    said = fairway(home.root, "maintain")
    assert "log of grid: 6 segments" in said
    left = list(held(home, streams, now_us=NOW_US))
    assert [line for line in left if "could go" in line and "log" in line] == []
