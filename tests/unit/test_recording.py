"""Reports of a home as one file: which moments and tiles are recorded, and what cannot be reported."""

import base64
import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.processes.report_streams import main as report_streams
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.server.recording import MOMENTS, moments_of, path_of, tiles_of
from tests.kit.log_writer import bare_log

SINCE = datetime(2026, 6, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
engine = "local"
"""
CARS = (
    CONF
    + """
max_ahead_s = "off"
[streams.boats]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
engine = "local"
"""
)
QUERIES = """
REGISTER QUERY west AS SELECT * FROM cars INSIDE (0, 0, 5, 10);
REGISTER QUERY how_many AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 5, 10);
"""
FIXES = b"""id,t,x,y
a,2026-06-20T08:00:00Z,1,1
b,2026-06-20T08:00:00Z,8,8
b,2026-06-20T08:00:20Z,4,4
a,2026-06-20T08:00:30Z,9,1
"""


def test_moments_begin_and_end_with_the_report_and_are_fewer_for_many_objects():
    few = moments_of(SINCE, SINCE + HOUR, 100)
    assert (few[0], few[-1], len(few)) == (SINCE, SINCE + HOUR, MOMENTS)
    assert few == sorted(set(few))
    many = moments_of(SINCE, SINCE + HOUR, 100_000)
    assert (many[0], many[-1], len(many)) == (SINCE, SINCE + HOUR, 6)
    assert len(moments_of(SINCE, SINCE + HOUR, 10_000_000)) == 2


def test_tiles_cover_a_box_as_far_in_as_they_are_few():
    zoom, tiles = tiles_of([(24.93, 60.16, 24.96, 60.18)])
    assert (0, 0, 0) in tiles
    assert (14, 9326, 4743) in tiles  # Helsinki's centre, as any map of the web has it
    assert max(z for z, _, _ in tiles) == zoom
    assert len(tiles) == len(set(tiles)) <= 300
    world, all_tiles = tiles_of([(-180, -85, 180, 85)])
    assert world == 3
    assert len(all_tiles) == sum(4**z for z in range(4))


def test_addresses_are_escaped():
    assert path_of("v1", "why", "a/b", object="x&y") == "/v1/why/a%2Fb?object=x%26y"


def test_a_home_without_streams_is_told_how_one_comes_to_be(tmp_path: Path):
    page, home = tmp_path / "day.html", str(tmp_path)
    (tmp_path / "streams.toml").write_text("")
    done = CliRunner().invoke(
        app, ["--home", home, "--conf", home, "streams", "report", str(page)]
    )
    assert done.exit_code == 2
    assert "there is no stream to report about (fairway check FILE" in done.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "no stream has a fix yet"),
        (["--stream", "boats"], "there is no stream 'boats'"),
        (["--from", "yesterday"], "from is 'yesterday' (a day such as"),
        (["--to", "soon"], "to is 'soon' (a day such as"),
        (["--from", "2026-06-20", "--to", "2026-06-19"], "is not before"),
    ],
)
def test_what_cannot_be_reported_is_said(tmp_path: Path, options: list[str], told: str):
    home = Home(tmp_path / "home")
    (home.root / "conf").mkdir(parents=True)
    (home.root / "conf" / "streams.toml").write_text(CONF)
    page = tmp_path / "day.html"
    done = CliRunner().invoke(
        app, ["--home", str(home.root), "streams", "report", str(page), *options]
    )
    assert done.exit_code == 2
    assert told in done.stderr
    assert not page.exists()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with half a minute of two cars, and boats that have never sent anything."""
    home = Home(tmp_path_factory.mktemp("home"))
    conf = home.root / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(CARS)
    streams = load_streams(conf)
    register(home, streams, parse(QUERIES), owner="me", now_us=1_000_000)
    bare_log(home.log("cars")).append(FIXES, arrival_us=2_000_000)
    run(home, streams["cars"], until_idle=True)
    return home


def recorded(page: Path) -> dict[str, Any]:
    """What a page holds in the place of a server."""
    _, _, rest = page.read_text().partition('id="recording">')
    told: dict[str, Any] = json.JSONDecoder().raw_decode(rest)[0]
    return told


def said(told: dict[str, Any], path: str) -> str:
    """The body of an answer that was recorded."""
    return gzip.decompress(base64.b64decode(told["replies"][path][1])).decode()


@pytest.mark.spec("S11")
def test_a_report_begins_a_second_before_the_first_fix_and_ends_with_the_newest(
    home: Home, tmp_path: Path
):
    page = tmp_path / "day.html"
    done = CliRunner().invoke(
        app, ["--home", str(home.root), "streams", "report", str(page)]
    )
    assert done.exit_code == 0, done.stderr
    assert "2026-06-20 07:59:59 to 2026-06-20 08:00:30 UTC" in done.stdout
    told = recorded(page)
    assert told["since"].startswith("2026-06-20T07:59:59")
    assert told["until"].startswith("2026-06-20T08:00:30")
    events = [line for line in said(told, "/v1/changes/west").splitlines() if "data: " in line]  # fmt: skip
    changes = [json.loads(line.removeprefix("data: ")) for line in events]
    assert [(one["object"], one["sign"]) for one in changes] == [("a", 1), ("b", 1), ("a", -1)]  # fmt: skip


@pytest.mark.spec("S11")
def test_a_report_of_a_time_without_fixes_says_when_there_are_some(
    home: Home, tmp_path: Path
):
    options = ["--from", "2024-05-01T00:00:00Z", "--to", "2024-05-01T01:00:00Z"]
    page = tmp_path / "empty.html"
    place = ["--home", str(home.root)]
    done = CliRunner().invoke(app, [*place, "streams", "report", str(page), *options])
    assert done.exit_code == 0
    assert done.stderr == (
        "note: no fix lies in that time; there are some from 2026-06-20 08:00:00 to 2026-06-20 08:00:30 UTC\n"
    )


@pytest.mark.spec("C9")
def test_the_job_writes_the_page_of_each_stream_with_fixes_and_names_the_others(
    home: Home, capsys: pytest.CaptureFixture[str]
):
    assert report_streams(["--home", str(home.root)]) == 0
    summary = json.loads(capsys.readouterr().out)
    ((page,), empty) = (summary["pages"], summary["without_fixes"])
    assert (page["stream"], empty) == ("cars", ["boats"])
    told = recorded(Path(page["path"]))
    state = json.loads(said(told, "/page/state"))
    assert [one["name"] for one in state["streams"]] == ["cars"]
    assert report_streams(["--home", str(home.root), "--stream", "boats"]) == 0
    nothing = json.loads(capsys.readouterr().out)
    assert nothing == {"pages": [], "without_fixes": ["boats"]}
