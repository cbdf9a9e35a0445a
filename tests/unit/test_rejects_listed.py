"""Records that could not be read are named: where they stand, why, and how they begin."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app

SETTINGS = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
engine = "local"
"""
LINES = [
    "id,t,x,y",
    "a,1700000009,1,1",
    "bad\x1b[31m,line",
    "b,1700000001,500,1",
    "c,1700000005,1,1",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    home: Path = tmp_path_factory.mktemp("home")
    (home / "conf").mkdir()
    (home / "conf" / "streams.toml").write_text(SETTINGS)
    path = home / "cars.csv"
    path.write_text("\n".join(LINES) + "\n")
    fairway(home, "replay", "cars", str(path))
    said = fairway(home, "run", "cars", "--until-idle")
    assert "cars: rejects: 1 out_of_crs, 1 ragged; fairway quality rejects cars" in said
    return home


def fairway(home: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--home", str(home)])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.spec("X14", "X15")
def test_rejects_are_named_by_their_lines_in_a_file_that_was_sorted(home):
    assert fairway(home, "quality", "rejects", "cars").splitlines() == [
        "segment  row  line  reason      record",
        "0        0    4     out_of_crs  b,1700000001,500,1",
        "0        3    3     ragged      bad\\x1b[31m,line",
        "cars: 1 are out_of_crs",
        "cars: 1 are ragged",
    ]


def test_rejects_of_one_reason_are_listed_for_programs(home):
    (line,) = fairway(
        home, "quality", "rejects", "cars", "--reason", "ragged", "--json"
    ).splitlines()
    assert '"line": 3' in line
    assert '"raw": "bad\\u001b[31m,line"' in line
