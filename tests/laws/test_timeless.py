"""A feed without times: each record counts once, in its order, however it is cut into segments and batches."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.log.log import Log
from st_common.operations.status import read_status
from st_common.replay.files import replay

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", x = "x", y = "y" }
crs = "planar"
engine = "local"
attributes = { speed = "double" }
nulls = ["NA"]
"""
CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    columns=Columns(object="id", x="x", y="y"),
    engine="local",
)
CENTRE = "REGISTER QUERY centre AS SELECT * FROM cars INSIDE (0, 0, 4, 10)"


def home_of(folder: Path) -> Home:
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(CONF)
    return Home(folder)


def fairway(home: Home, *args: str) -> str:
    done = CliRunner().invoke(
        app, ["--home", str(home.root), *args], prog_name="fairway"
    )
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.spec("P1")
def test_a_feed_without_times_loses_no_record(tmp_path: Path):
    """30,000 records of 30 objects, replayed twice as fast as the disk takes them."""
    home, file = home_of(tmp_path / "home"), tmp_path / "cars.csv"
    file.write_text(
        "id,x,y\n"
        + "".join(f"car-{n % 30},{n * 7 % 11},{n % 10}\n" for n in range(30_000))
    )
    conf = tmp_path / "home" / "conf" / "streams.toml"
    conf.write_text(CONF.replace('attributes = { speed = "double" }\n', ""))
    fairway(home, "query", "register", "--text", CENTRE)
    fairway(home, "replay", "cars", str(file))
    fairway(home, "replay", "cars", str(file))
    said = fairway(home, "run", "cars", "--until-idle")
    assert "60,000 fixes" in said
    assert "0 rejects, 0 late, 0 double" in said
    last = {f"car-{n % 30}": n * 7 % 11 for n in range(30_000)}
    assert answer(home, "centre")["object"].to_pylist() == sorted(
        name for name, x in last.items() if x <= 4
    )


RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 8)), min_size=1, max_size=60
)


@given(records=RECORDS, cut=st.integers(1, 20), pause_us=st.integers(0, 5))
def test_instants_rise_with_the_log_and_are_never_ahead_of_the_arrival(
    records, cut, pause_us, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("home")
    home, file = Home(folder), folder / "cars.csv"
    clock = (
        iter(range(1_000_000, 10**9, max(pause_us, 1)))
        if pause_us
        else iter([1_000_000] * 1000)
    )
    for start in range(0, len(records), cut):
        lines = [f"{name},{x},1\n" for name, x in records[start : start + cut]]
        file.write_text("id,x,y\n" + "".join(lines))
        replay(
            Log(home.log("cars")), file, CARS, end_mark=False, clock=lambda: next(clock)
        )
    log = Log(home.log("cars"))
    found = [
        decode(log.read(one), CARS, arrival_us=one.arrival_us).fixes
        for one in log.segments(0)
    ]
    assert [name for fixes in found for name in fixes["object"].to_pylist()] == [
        name for name, _ in records
    ]
    instants = [ts for fixes in found for ts in fixes["event_ts"].to_pylist()]
    assert all(after > before for before, after in pairwise(instants))
    assert all(
        ts <= segment.arrival_us
        for fixes, segment in zip(found, log.segments(0), strict=True)
        for ts in fixes["event_ts"].to_pylist()
    )


def test_what_could_not_be_read_in_attributes_is_told_by_run_and_status(tmp_path: Path):
    home, file = home_of(tmp_path / "home"), tmp_path / "cars.csv"
    file.write_text("id,x,y,speed\na,1,1,fast\na,2,1,NA\nb,1,1,7\nb,2,2,-\n")
    fairway(home, "replay", "cars", str(file))
    line = "cars: attributes that are null because their text was of another type: speed in 2 fixes\n"
    assert line in fairway(home, "run", "cars", "--until-idle")
    assert line in fairway(home, "status")
    fairway(home, "replay", "cars", str(file))
    fairway(home, "run", "cars", "--until-idle")
    assert "speed in 4 fixes\n" in fairway(home, "status")
    found = read_status(home.stream("cars"))
    assert found is not None
    assert (found.fixes, found.rejects, found.nulled) == (8, 0, {"speed": 4})
