"""A live feed that pauses, by the command line: what time brings is told though no fix comes."""

import json
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]
FAIRWAY = [sys.executable, "-m", "st_common.cli"]
SETTINGS = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "us"
crs = "planar"
silence_s = 5
engine = "local"
"""
STATEMENTS = """
REGISTER QUERY box AS SELECT * FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY many AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM cars KNN (1, 0, 0);
"""


def fairway(home, *args):
    done = subprocess.run(
        [*FAIRWAY, "--home", str(home), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(home):
    rows = [
        json.loads(line) for line in fairway(home, "changes", "--json").splitlines()
    ]
    return {(row["query"], row["object"], row["sign"], row["cause"]) for row in rows}


def wait_for(home, wanted):
    until_s = time.monotonic() + 300
    while not wanted <= (seen := told(home)):
        assert time.monotonic() < until_s, seen
        time.sleep(0.5)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(SETTINGS)
    (tmp_path / "queries.sql").write_text(STATEMENTS)
    fairway(tmp_path, "query", "register", tmp_path / "queries.sql")
    return tmp_path


@pytest.fixture
def engine(home):
    with subprocess.Popen(
        [*FAIRWAY, "--home", str(home), "run", "cars"], stdout=subprocess.DEVNULL
    ) as process:
        yield process
        process.terminate()


def put(home, event_us, *options):
    (home / "fix.csv").write_text(f"id,t,x,y\ntruck,{event_us},5,5\n")
    fairway(home, "replay", "cars", home / "fix.csv", *options)


@pytest.mark.spec("S1", "G7")
def test_one_live_fix_is_counted_found_near_and_expires_while_nothing_else_comes(
    home, engine
):
    put(home, time.time_ns() // 1000, "--live")
    wait_for(
        home,
        {
            ("box", "truck", 1, "enter"),
            ("box", "truck", -1, "expired"),
            ("near", "truck", 1, "enter"),
            ("near", "truck", -1, "expired"),
        },
    )
    values = [
        json.loads(line)
        for line in fairway(home, "changes", "many", "--json").splitlines()
    ]
    assert [row["value"] for row in values if row["sign"] > 0] == [1.0, 0.0]


@pytest.mark.spec("S1")
def test_after_a_replay_time_stands_still_however_old_it_is(home):
    put(home, time.time_ns() // 1000 - 3_600_000_000, "--no-end")
    for _ in range(2):
        fairway(home, "run", "cars", "--until-idle")
        assert told(home) == {("box", "truck", 1, "enter")}


@pytest.mark.spec("S1")
def test_an_engine_that_the_system_ends_leaves_in_order(home, engine):
    put(home, time.time_ns() // 1000, "--live")
    wait_for(home, {("box", "truck", 1, "enter")})
    engine.terminate()
    assert engine.wait(timeout=120) == 0
    assert "stopped" in fairway(home, "status")
