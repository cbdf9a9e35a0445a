"""`reprocess` without an interval: what it does, what it plans, what it leaves out, and how it waits for archives."""

import json
import threading
from dataclasses import replace
from datetime import date, timedelta

import pytest
from typer.testing import CliRunner

from jobs.reprocess import main
from st_common import tables
from st_common.batch.processed import FILE, FOLDER, processed_days
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.history.told import begin_of
from st_common.operations.days import archive_behind, open_since
from st_common.operations.records import read_record, write_record
from st_common.operations.status import read_all_status, read_status, write_status
from st_common.position import start_of
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("C6")

STREAM = """
[streams.{name}]
format = "csv"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
crs = "planar"
max_ahead_s = "off"
engine = "local"
"""
DAY = timedelta(days=1)
OPEN = date(2024, 3, 12)


@pytest.fixture
def home(tmp_path):
    """Taxis of which 9 to 11 March are closed, and bikes that never ran."""
    home, conf = Home(tmp_path), tmp_path / "conf"
    conf.mkdir()
    text = "".join(STREAM.format(name=name) for name in ("taxis", "bikes"))
    (conf / "streams.toml").write_text(text)
    query = "REGISTER QUERY near AS SELECT * FROM taxis INSIDE (0, 0, 5, 5)"
    register(home, load_streams(conf), parse(query), owner="t")
    days = [f"a,2024-03-{day:02}T08:00:00Z,{day % 3},1" for day in (9, 10, 11, 12)]
    arrive(home, *days)
    return home


def arrive(home, *rows):
    text = "\n".join(["id,t,x,y", *rows])
    bare_log(home.log("taxis")).append(text.encode(), arrival_us=0)
    run(home, load_streams(home.root / "conf")["taxis"], until_idle=True)


def late(home, *days):
    arrive(home, *(f"b,2024-03-{day:02}T09:00:00Z,1,1" for day in days))


def fairway(home, *words):
    done = CliRunner().invoke(app, ["--home", str(home.root), "reprocess", *words])
    return done.exit_code, done.output.splitlines()


def job(home, capsys, *words):
    code = main(["--home", str(home.root), *words])
    told = capsys.readouterr()
    return code, json.loads(told.out.splitlines()[-1]) if told.out else told.err


def processed(home):
    return [day.day for day in processed_days(home, "taxis")]


def leave_archive_behind(home, clock, segments=3):
    """The archive says that it has come to a time, and that the engine has read so many segments more."""
    folder = home.stream("taxis")
    (archive,) = (one for one in read_all_status(folder) if one.job == "archive")
    path = folder / "status-archive.json"
    path.unlink()  # its clock does not go back
    engine = read_status(folder)
    ahead = replace(engine, position=archive.position + start_of(segments))
    write_status(folder, ahead)
    at_us = round(begin_of(clock).timestamp() * 1e6) - 1
    write_status(folder, replace(archive, now_ts=at_us))
    return archive


BEHIND = "the archive is 3 segments behind the engine"


def test_without_an_interval_the_days_that_are_due_are_processed(home, capsys):
    assert job(home, capsys)[0] == 0
    assert processed(home) == [11], "none was processed before: the newest closed day"
    job(home, capsys, "--from=2024-03-09", "--to=2024-03-12")
    assert job(home, capsys, "taxis")[1]["streams"] == {}
    late(home, 10, 10)
    code, summary = job(home, capsys)
    days = summary["streams"]["taxis"]["days"]
    assert (code, summary["open"], summary["failed"]) == (0, ["bikes"], {})
    assert [day["day"] for day in days] == ["2024-03-10", "2024-03-11"]
    assert days[0]["late"] == 2
    assert job(home, capsys)[1]["streams"] == {}


def test_a_plan_says_what_is_due_and_processes_nothing(home, capsys):
    job(home, capsys, "--from=2024-03-09", "--to=2024-03-12")
    before = tables.version(home.table("visits", "taxis"))
    late(home, 10, 10)
    known = read_record(home.stream("taxis") / FOLDER / FILE)
    why = "2 late fixes came for 2024-03-10"
    days = {"from": "2024-03-10", "to": "2024-03-12"}
    of_taxis = {"stream": "taxis", **days, "why": why, "engine": "local"}
    wanted = {"runs": [of_taxis], "open": ["bikes"], "left_out": {}}
    assert job(home, capsys, "--plan") == (0, wanted)
    assert fairway(home, "--plan") == (
        0,
        [
            f"taxis: 2024-03-10 to 2024-03-11 are due: {why}",
            "bikes: left out, a day is open",
        ],
    )
    assert read_record(home.stream("taxis") / FOLDER / FILE) == known
    assert tables.version(home.table("visits", "taxis")) == before


def test_a_command_says_why_days_are_due_and_that_none_is(home):
    code, lines = fairway(home, "taxis")
    assert code == 0
    assert lines[0] == "taxis: 2024-03-11 is due: no day was processed before"
    assert lines[1].startswith("taxis: 2024-03-11: 1 fixes (0 late), ")
    assert fairway(home, "taxis") == (0, ["taxis: no day is due"])


def test_an_interval_by_hand_makes_later_days_due_and_says_so(home, capsys):
    """So that what is stored from the first processed day on is what all fixes give."""
    code, lines = fairway(home, "taxis", "--from=2024-03-09", "--to=2024-03-10")
    why = "2 days from 2024-03-10 on were not processed before"
    due = f"taxis: 2024-03-10 to 2024-03-11 are due: {why}"
    assert code == 0
    assert lines[-1] == f"{due}; the next run without --from and --to processes them"
    assert fairway(home, "taxis", "--plan") == (0, [due])
    assert job(home, capsys)[0] == 0
    assert processed(home) == [9, 10, 11]
    _, lines = fairway(home, "taxis", "--from=2024-03-09", "--to=2024-03-10")
    assert not [line for line in lines if "due" in line]


def test_a_plan_of_an_interval_has_a_run_for_each_stream_whose_days_are_closed(
    home, capsys
):
    days = ("--from", "2024-03-09T10:00Z", "--to", "2024-03-11")
    code, summary = job(home, capsys, *days, "--plan")
    (one,) = summary["runs"]
    assert (code, one["from"], one["to"], one["why"]) == (
        0,
        "2024-03-09",
        "2024-03-11",
        "asked for",
    )
    assert (summary["open"], summary["left_out"]) == (["bikes"], {})
    whole = "2024-03-09T10:00Z to 2024-03-11T00:00Z lies in 2024-03-09 to 2024-03-10"
    assert fairway(home, *days, "--plan") == (
        0,
        [
            f"taxis: {whole}, this one too: the whole days",
            "taxis: 2024-03-09 to 2024-03-10 are asked for",
            "bikes: left out, a day is open",
        ],
    )
    assert processed(home) == []


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--from", "2024-03-09"], "--from is given without --to"),
        (["--to", "2024-03-09"], "--to is given without --from"),
        (["taxis", "--into", "other"], "a trial has no days that are due"),
        (["--wait", "-1"], "wait is '-1'"),
    ],
)
def test_half_an_interval_and_a_trial_of_none_are_refused(home, words, wrong):
    code, lines = fairway(home, *words)
    assert code == 2
    assert wrong in " ".join(lines)


def test_a_day_that_the_archive_has_not_passed_is_named_and_left_out(home, capsys):
    leave_archive_behind(home, OPEN)
    assert (open_since(home, "taxis"), archive_behind(home, "taxis")) == (OPEN - DAY, 3)
    why = f"2024-03-11 is open: {BEHIND}"
    code, summary = job(home, capsys)
    assert (code, summary["open"]) == (0, ["taxis", "bikes"])
    assert summary["left_out"] == {"taxis": why}
    assert summary["behind_segments"] == {"taxis": 3}
    assert processed(home) == [10]
    assert fairway(home, "taxis", "--plan") == (
        0,
        ["taxis: left out, " + why],
    )
    days = ("--from=2024-03-11", "--to=2024-03-12")
    assert job(home, capsys, *days)[1] == {
        "streams": {},
        "open": ["taxis", "bikes"],
        "failed": {},
        "left_out": {"taxis": why},
    }
    code, lines = fairway(home, "taxis", *days)
    assert code == 2
    assert f"2024-03-11 is not closed (open since 2024-03-11: {BEHIND})" in lines[-1]


def test_of_closed_days_it_is_said_that_late_fixes_may_be_on_their_way(home):
    leave_archive_behind(home, OPEN + DAY)
    assert fairway(home, "taxis", "--plan") == (
        0,
        [
            "taxis: 2024-03-11 is due: no day was processed before",
            f"taxis: {BEHIND}, in which late fixes may lie",
        ],
    )


def test_an_archive_is_waited_for_and_no_longer_than_it_takes(home, capsys):
    archive = leave_archive_behind(home, OPEN)
    come = threading.Timer(0.3, write_status, (home.stream("taxis"), archive))
    come.start()
    code, summary = job(home, capsys, "taxis", "--wait=600")
    come.join()
    assert (code, summary["open"], processed(home)) == (0, [], [11])
    assert "left_out" not in summary


def test_an_archive_that_does_not_come_is_named_when_the_wait_is_over(home, capsys):
    leave_archive_behind(home, OPEN)
    _, summary = job(home, capsys, "taxis", "--wait=0.2")
    assert summary["left_out"] == {"taxis": f"2024-03-11 is open: {BEHIND}"}
    assert processed(home) == [10]


def test_a_stream_of_which_it_cannot_be_said_what_is_due_has_a_run_that_says_why(
    home, capsys
):
    job(home, capsys)
    topology = home.stream("taxis") / "topology.json"
    write_record(topology, read_record(topology) | {"lateness_s": 99.0})
    (planned,) = job(home, capsys, "--plan")[1]["runs"]
    assert (planned["from"], planned["to"]) == ("2024-03-11", "2024-03-12")
    code, summary = job(home, capsys)
    assert (code, summary["streams"], summary["open"]) == (2, {}, ["bikes"])
    assert summary["failed"] == {"taxis": planned["why"]}
    code, error = job(home, capsys, "taxis")
    assert (code, error) == (2, f"error: {planned['why']}\n")


def test_a_plan_is_no_run_that_lineage_tells_of(home, capsys):
    (home.root / "conf" / "operations.toml").write_text('[lineage]\nto = "file"\n')
    assert job(home, capsys, "--plan")[0] == fairway(home, "--plan")[0] == 0
    assert not list((home.root / "lineage").glob("*.jsonl"))
    assert job(home, capsys)[0] == 0
    assert list((home.root / "lineage").glob("*.jsonl"))
