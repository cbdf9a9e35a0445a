"""A query over two streams as a user runs it: served, fed by HTTP, quiet, and with killed processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import httpx
import psutil
import pytest

from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from tests.kit.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

JOINT = "cars-and-police"
SETTINGS = """
[streams.%s]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
"""
ROUNDS = 23
FEEDER = ("st_common.processes.deliver", f"feed-{JOINT}")
ENGINE = ("st_common.processes.run_stream", JOINT)
KILLS = {4: FEEDER, 8: ENGINE, 12: FEEDER, 16: ENGINE, 17: FEEDER}


@pytest.fixture
def served(tmp_path):
    """The address of a server, and its home."""
    port, conf = free_port(), tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS % "cars" + SETTINGS % "police")
    command = [sys.executable, "-m", "st_common.cli", "--home", tmp_path / "home"]
    command += ["--conf", conf, "serve", "--port", str(port)]
    url = f"http://127.0.0.1:{port}/v1"
    with (tmp_path / "serve.log").open("ab") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        try:
            until(lambda: answers(url))
            yield url, Home(tmp_path / "home")
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            process.kill()
            process.wait()
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


def answers(url):
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/status").status_code == 200
    return False


def until(is_so, seconds=120):
    end_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def post(url, stream, second, x):
    record = json.dumps({"id": "7", "t": second, "x": x, "y": 0})
    done = httpx.post(f"{url}/streams/{stream}/fixes", content=record, timeout=60)
    assert done.status_code == 202, done.text


def kill(home, *words):
    """Kills the process of these words, if it has been started again; how many these are."""
    victims = [
        one
        for one in psutil.process_iter(["cmdline"])
        if str(home.root) in " ".join(one.info["cmdline"] or ())
        and all(word in one.info["cmdline"] for word in words)
    ]
    for victim in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
    return len(victims)


def told(home):
    return [
        (row["object"], row["partner"], row["sign"], round(row["event_ts"].timestamp()))
        for row in stream_changes(home, JOINT, "near").to_pylist()
    ]


@pytest.mark.spec("G4", "B9", "X7", "S1")
def test_what_two_live_streams_tell_together_is_told_once_whoever_is_killed(served):
    url, home = served
    select = "SELECT * FROM cars c JOIN police p ON ST_DWithin(c, p, 10 m)"
    done = httpx.put(f"{url}/queries/near", content=select, timeout=60)
    assert done.status_code == 201, done.text
    start = time.time_ns() // 1_000_000_000 - 3600
    post(url, "cars", start, 0)
    post(url, "police", start + 1, 1)
    # Both are quiet now: their clocks bring the tick.
    until(lambda: told(home) == [("cars/7", "police/7", 1, start + 1)])
    kills = 0
    # Each second brings 30 of event time, so no clock row comes before the fix of its time.
    for number in range(1, ROUNDS):
        post(url, "cars", start + 30 * number, 100 * (number % 2))
        if number in KILLS:
            kills += kill(home, *KILLS[number])
        post(url, "police", start + 30 * number, 1)
        time.sleep(0.5)
    for stream in ("cars", "police"):
        post(url, stream, start + 30 * ROUNDS, 500)
    until(lambda: len(told(home)) >= ROUNDS, 60)
    assert kills >= 2
    assert told(home)[:ROUNDS] == [("cars/7", "police/7", 1, start + 1)] + [
        ("cars/7", "police/7", -1 if number % 2 else 1, start + 30 * number)
        for number in range(1, ROUNDS)
    ]
    (state,) = (
        one
        for one in httpx.get(f"{url}/status", timeout=60).json()["streams"]
        if one["stream"] == JOINT
    )
    assert state["state"] in ("running", "idle")
