"""Reports of a home as one file: which moments and tiles are recorded, and what cannot be reported."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.home import Home
from st_common.server.recording import MOMENTS, moments_of, path_of, tiles_of

SINCE = datetime(2026, 6, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
engine = "local"
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
    assert path_of("why", "a/b", object="x&y") == "/why/a%2Fb?object=x%26y"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "no stream has a fix yet"),
        (["--stream", "boats"], "there is no stream 'boats'"),
        (["--from", "yesterday"], "no stream has a fix yet"),
        (["--to", "soon"], "'soon' is no time"),
        (["--from", "2026-06-20", "--to", "2026-06-19"], "is not before"),
    ],
)
def test_what_cannot_be_reported_is_said(tmp_path: Path, options: list[str], told: str):
    home = Home(tmp_path / "home")
    (home.root / "conf").mkdir(parents=True)
    (home.root / "conf" / "streams.toml").write_text(CONF)
    page = tmp_path / "day.html"
    done = CliRunner().invoke(
        app, ["--home", str(home.root), "report", str(page), *options]
    )
    assert done.exit_code == 2
    assert told in done.stderr
    assert not page.exists()
