"""What `fairway status` says of engines that live, ended in order, or were killed."""

import json
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.operations.process import this_host

STREAMS = """[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
columns = {object = "id", event_ts = "t", x = "x", y = "y"}
"""


@pytest.fixture
def told(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(STREAMS)
    rows = tmp_path / "rows.csv"
    rows.write_text("id,t,x,y\na,1,5,5\n")
    args = ["--home", str(tmp_path / "home"), "--conf", str(tmp_path / "conf")]

    def run(*words):
        found = CliRunner().invoke(app, [*words, *args], prog_name="fairway")
        assert found.exit_code == 0, found.output
        return found.stdout

    run("replay", "cars", str(rows))
    run.arguments = args
    return run


def columns(text):
    head, row = text.splitlines()[:2]
    starts = [
        head.index(name)
        for name in ("stream", "state", "process", "last beat", "engine", "segments")
    ]
    return [
        row[start:stop].strip()
        for start, stop in zip(starts, [*starts[1:], len(row)], strict=True)
    ][1:5]


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.spec("X6")
def test_an_engine_that_was_killed_is_dead_with_its_process_and_its_age(told):
    process = subprocess.Popen(
        [sys.executable, "-m", "st_common.cli", "run", "cars", *told.arguments]
    )
    try:
        wait_for(lambda: columns(told("status"))[0] in ("running", "idle"))
        state, owner, age, engine = columns(told("status"))
        assert (owner, engine) == (f"{process.pid} on {this_host()}", "local")
        assert age.endswith("ago")
    finally:
        process.kill()
        process.wait()
    state, owner, age, engine = columns(told("status"))
    assert (state, owner, engine) == (
        "dead",
        f"{process.pid} on {this_host()}",
        "local",
    )
    assert age.endswith("ago")


@pytest.mark.spec("X6")
def test_an_engine_that_ended_in_order_is_not_dead_and_nobody_runs_it(told):
    assert columns(told("status"))[0] == "never run"
    told("run", "cars", "--until-idle")
    state, owner, _, engine = columns(told("status"))
    assert (state, owner, engine) == ("ended", "", "local")


def test_a_log_that_cannot_be_read_is_said_of_its_stream_and_of_no_other(
    told, tmp_path
):
    told("run", "cars", "--until-idle")
    settings = tmp_path / "conf" / "streams.toml"
    settings.write_text(STREAMS + STREAMS.replace("cars", "vans"))
    told("replay", "vans", str(tmp_path / "rows.csv"))
    segments = Home(tmp_path / "home").log("cars") / "segments" / "00000000"
    (segments / "000000000005.seg").write_bytes(
        (segments / "000000000001.seg").read_bytes()
    )
    lines = told("status").splitlines()
    assert lines[1].split()[:2] == ["cars", "unreadable"]
    assert lines[2].split()[:3] == ["vans", "never", "run"]
    (said,) = [line for line in lines if line.startswith("cars: unreadable: ")]
    assert "segment" in said
    cars, vans = map(json.loads, told("status", "--json").splitlines())
    assert (cars["lag_s"], cars["lag_segments"]) == (None, None)
    assert vans["lag_segments"] == vans["segments"] > 0
    assert vans["lag_s"] > 0
