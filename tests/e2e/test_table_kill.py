"""kill -9 of a program that puts rows into a table: what it was told stays, and queries hear of it (SPEC B15)."""

import subprocess
import sys
from random import Random

import pytest
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.cli import app
from st_common.config.home import Home
from st_common.layers.table import read_rows
from tests.kit.log_writer import bare_log

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

SETTINGS = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
"""
CARS, KILLS = 400, 6
PROGRAM = """
import sys
from fairway import connect

with connect(sys.argv[1]) as client:
    zones = client.table("zones")
    for number in range(int(sys.argv[2]), 400):
        west, east = number - 0.25, number + 0.25  # the car is well inside
        ring = [[west, -1], [east, -1], [east, 1], [west, 1], [west, -1]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        zones.put({"type": "Feature", "geometry": shape, "properties": {"name": f"c{number}"}})
        print("put", number, flush=True)
        if number % 3 == 2:
            zones.delete(f"c{number - 1}")
            print("deleted", number - 1, flush=True)
"""


def says(home: Home, *words: str) -> str:
    done = CliRunner().invoke(app, words, env={"FAIRWAY_HOME": str(home.root)})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def home(tmp_path) -> Home:
    home = Home(tmp_path / "home")
    (home.root / "conf").mkdir(parents=True)
    (home.root / "conf" / "streams.toml").write_text(SETTINGS)
    says(home, "table", "create", "zones", "--key", "name")
    join = "SELECT * FROM cars c JOIN zones z ON ST_Intersects(c, z)"
    says(home, "query", "register", "--text", f"REGISTER QUERY met AS {join}")
    fixes = [f"c{number},1,{number},0" for number in range(CARS)]
    bare_log(home.log("cars")).append(
        "\n".join(["id,t,x,y", *fixes, ""]).encode(), arrival_us=1
    )
    return home


def killed_after(home: Home, first: int, lines: int, wait_s: float) -> list[str]:
    """What a program said that puts rows from a number on, until it was killed so long after so many lines."""
    command = [sys.executable, "-c", PROGRAM, str(home.root), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        said = [program.stdout.readline() for _ in range(lines)]
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(timeout=wait_s)
        program.kill()
        said += program.stdout.readlines()
    return [line.strip() for line in said if line.endswith("\n")]


@pytest.mark.spec("B15", "X4", "X7")
def test_rows_that_were_put_stay_and_are_told_whenever_the_program_is_killed(home):
    chance, first = Random(7), 0
    for _ in range(KILLS):
        said = killed_after(home, first, 5, chance.random() * 0.15)
        put, gone = (
            {int(line.split()[1]) for line in said if line.startswith(what)}
            for what in ("put", "deleted")
        )
        last = max(put)
        there = keys(home)
        assert not there & gone
        # The row before the last one may have been deleted without a word.
        assert put - gone - there <= {last - 1}
        # Whoever puts next tells what the one that was killed had no time for.
        first = last + 2
        where = ("--geometry", f"POINT ({first} 0)")
        says(home, "table", "put", "zones", f"name=c{first}", *where)
        says(home, "run", "cars", "--until-idle")
        inside = answer(home, "met")["object"].to_pylist()
        assert {int(one[1:]) for one in inside} == keys(home)
        first += 1
    assert len(keys(home)) > KILLS * 3
    says(home, "verify")


def keys(home):
    rows = read_rows(home, "zones", columns=["fid"])
    return {int(fid[1:]) for fid in rows["fid"].to_pylist()}
