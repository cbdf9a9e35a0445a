"""A replay of what is no such file: refused with the reason and the likely mend, and nothing in the log."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.log.log import Log

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
time_unit = "s"

[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
time_unit = "s"
"""
HEADER = "id,t,lon,lat\n"
GOOD = "a,1700000000,24.9,60.2\n"
JSON = '{"id": "a", "t": 1700000000, "lon": 24.9, "lat": 60.2}\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / "conf").mkdir(parents=True)
    (tmp_path / "home" / "conf" / "streams.toml").write_text(CONF)
    return Home(tmp_path / "home")


def replay(home: Home, content: bytes, *options: str, stream: str = "cars"):
    file = home.root.parent / "records"
    file.write_bytes(content)
    args = ["--home", str(home.root), "replay", stream, str(file), *options]
    return CliRunner().invoke(app, args, prog_name="fairway"), Log(
        home.log(stream)
    ).end()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            (HEADER + GOOD * 3).replace(",", ";").encode(),
            ("missing_column", 'by a semicolon: delimiter = ";"'),
        ),
        (
            (HEADER + GOOD.replace("1700000000", "1700000000000") * 3).encode(),
            ("bad_time", "time_unit says how"),
        ),
        (
            (HEADER + "a,1700000000,60.2,124.9\n" * 3).encode(),
            ("out_of_crs", "are they exchanged?"),
        ),
        (
            (HEADER.replace("lon", "longitude") + GOOD * 3).encode(),
            ("missing_column", "spelled as in the header"),
        ),
        (
            (JSON + JSON.replace("a", "b") * 2).encode(),
            ("missing_column", 'format = "ndjson"'),
        ),
        (
            (HEADER + GOOD * 4 + "b,,1,1\n" * 3 + "b,1,,1\n" * 2).encode(),
            ("5 of the 9 records", "mostly missing_time"),
        ),
        (
            (HEADER + "\u00e9,1,1,1\n" * 3).encode("latin-1"),
            ("bad_utf8", 'encoding = "windows-1252"'),
        ),
    ],
    ids=[
        "semicolons",
        "ms",
        "exchanged",
        "names",
        "json",
        "half",
        "latin1",
    ],
)
def test_a_file_that_is_something_else_is_refused(
    home: Home, content: bytes, words: tuple[str, ...]
):
    done, end = replay(home, content)
    assert (done.exit_code, end) == (2, 0)
    said = " ".join(done.output.split())
    assert all(word in said for word in words), said
    assert said.count("error:") == 1
    forced, end = replay(home, content, "--force")
    assert forced.exit_code == 0
    assert end > 0


@pytest.mark.parametrize(
    "content",
    [
        (HEADER + GOOD).encode(),
        b"\xef\xbb\xbf" + (HEADER + GOOD).replace("\n", "\r\n").encode(),
        (HEADER + GOOD * 5 + "b,,1,1\n" * 5).encode(),
        HEADER.encode(),
        b"",
    ],
    ids=["good", "mark", "half", "header", "empty"],
)
def test_a_file_of_which_half_can_be_read_is_taken(home: Home, content: bytes):
    assert replay(home, content)[0].exit_code == 0


def test_lines_and_areas_are_told_where_they_belong(home: Home):
    conf = home.root / "conf" / "streams.toml"
    places = CONF.replace('x = "lon", y = "lat"', 'place = "geom"', 1)
    conf.write_text(places, encoding="utf-8")
    lines = 'a,1700000000,"LINESTRING (1 2, 3 4)"\n' * 3
    done, end = replay(home, f"id,t,geom\n{lines}".encode())
    assert (done.exit_code, end) == (2, 0)
    said = " ".join(done.output.split())
    assert "mostly no_point" in said
    assert "fairway layer load takes lines and areas" in said


def test_lines_of_json_too(home: Home):
    assert replay(home, (JSON * 2).encode(), stream="ships")[0].exit_code == 0
    done, _ = replay(home, (HEADER + GOOD * 3).encode(), stream="ships")
    assert done.exit_code == 2
    assert "format says what the file is" in " ".join(done.output.split())
