"""A query FROM a layer beside a server that supervises: loads are told as they come, also when its engine is killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from tests.kit.ports import free_port
from tests.kit.server_http import events

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.spec("P3", "P13", "S2"),
    pytest.mark.timeout(400),
]

SETTINGS = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
INSIDE = "SELECT fid, brand FROM stations INTERSECTS (24, 60, 25, 61)"


def fairway(folder, *words):
    command = [sys.executable, "-m", "st_common.cli", "--home", folder / "home"]
    command += ["--conf", folder / "conf", *words]
    return list(map(str, command))


@pytest.fixture
def server(tmp_path):
    """The home of a server that supervises its streams, and its address."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(SETTINGS)
    port = free_port()
    with (tmp_path / "serve.log").open("ab") as log:
        command = fairway(tmp_path, "serve", "--port", str(port))
        process = subprocess.Popen(command, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: is_up(address))
        yield tmp_path, address
    finally:
        process.terminate()
        assert process.wait(timeout=240) == 0


def until(holds):
    while not holds():  # a test has a time limit
        time.sleep(0.2)


def is_up(address):
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{address}/v1/status").status_code == 200
    return False


def load(folder, **places):
    features = [
        {
            "type": "Feature",
            "id": fid,
            "properties": {"kind": "fuel", "brand": "north"},
            "geometry": {"type": "Point", "coordinates": place},
        }
        for fid, place in places.items()
    ]
    file = folder / "stations.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    command = fairway(folder, "layer", "load", "stations", str(file))
    subprocess.run(command, check=True, capture_output=True)


def members(address):
    rows = httpx.get(f"{address}/v1/answers/kept", timeout=60).json()["rows"]
    return [row["object"] for row in rows]


def test_loads_are_told_as_they_come_also_after_the_engine_is_killed(server):
    folder, address = server
    load(folder, a=[24.5, 60.5], b=[26, 60.5])
    done = httpx.put(f"{address}/v1/queries/kept", content=INSIDE, timeout=60)
    assert done.status_code == 201, done.text
    until(lambda: members(address) == ["a"])
    load(folder, a=[24.5, 60.5], b=[24.6, 60.5], c=[24.7, 60.7])
    until(lambda: members(address) == ["a", "b", "c"])
    engine = json.loads((folder / "home/streams/stations/engine.json").read_text())
    os.kill(engine["pid"], signal.SIGKILL)
    load(folder, b=[24.6, 60.5], c=[23, 60.7], d=[24.1, 60.1])
    until(lambda: members(address) == ["b", "d"])
    told = []
    since = f"{address}/v1/changes/kept?since=0"
    with httpx.stream("GET", since, timeout=60) as response:
        for _, change in events(response):
            told.append((change["object"], change["sign"], change["cause"]))
            if len(told) == 6:
                break
    assert told[0] == ("a", 1, "enter")
    assert sorted(told[1:]) == [
        ("a", -1, "gone"),
        ("b", 1, "enter"),
        ("c", -1, "leave"),
        ("c", 1, "enter"),
        ("d", 1, "enter"),
    ]
