"""Queries that end with who asked, beside a server that runs: their clients are killed, or leave."""

import os
import signal
import subprocess
import sys
import time

import pytest

import fairway
from tests.kit.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.spec("P14"),
    pytest.mark.timeout(400),
]

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
CLIENT = """
import sys, time
import fairway
client = fairway.connect(sys.argv[1])
client.register("SELECT * FROM ships INSIDE (0, 0, 5, 5)", sys.argv[2], ephemeral=10)
print("registered", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The home of a server that supervises its streams, and its address."""
    folder = tmp_path_factory.mktemp("ephemeral")
    (folder / "conf").mkdir()
    (folder / "conf" / "streams.toml").write_text(SETTINGS)
    port = free_port()
    command = [sys.executable, "-m", "st_common.cli", "--home", folder / "home"]
    command += ["--conf", folder / "conf", "serve", "--port", str(port)]
    with (folder / "serve.log").open("ab") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: is_up(address))
        yield folder, address
    finally:
        process.terminate()
        assert process.wait(timeout=240) == 0


def until(holds):
    while not holds():  # a test has a time limit
        time.sleep(0.2)


def is_up(address):
    try:
        with fairway.connect(address) as client:
            return bool(client.status())
    except fairway.FairwayError:
        return False


def names(address):
    import httpx

    listed = httpx.get(f"{address}/v1/queries", timeout=60).json()["queries"]
    return {one["name"] for one in listed}


@pytest.mark.parametrize("kind", ["home", "http"])
def test_a_query_goes_with_its_client_that_is_killed_and_stays_while_it_lives(
    server, kind
):
    folder, address = server
    where = address if kind == "http" else str(folder / "home")
    name, told = f"of_{kind}", {**os.environ, "FAIRWAY_CONF": str(folder / "conf")}
    with fairway.connect(address) as other:
        other.register("SELECT * FROM ships", f"stays_{kind}")
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, where, name],
            stdout=subprocess.PIPE,
            env=told,
        )
        try:
            assert client.stdout.readline() == b"registered\n"
            time.sleep(13)  # longer than its lease
            assert {name, f"stays_{kind}"} <= names(address)
            client.send_signal(signal.SIGKILL)
            until(lambda: name not in names(address))
        finally:
            client.kill()
            client.wait()
    assert f"stays_{kind}" in names(address)


def test_a_client_that_leaves_takes_its_queries_along(server):
    _, address = server
    with fairway.connect(address) as client:
        client.register("SELECT * FROM ships", "leaves", ephemeral=86_400)
        assert "leaves" in names(address)
    until(lambda: "leaves" not in names(address))
