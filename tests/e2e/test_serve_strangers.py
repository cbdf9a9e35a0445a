"""`fairway serve` among strangers: connections that say nothing, descriptors that run out, requests that never end."""

import contextlib
import json
import resource
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tests.kit.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.spec("S8"),
    pytest.mark.timeout(240),
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
FIX = json.dumps({"id": "a", "t": 1, "x": 1, "y": 1})
DESCRIPTORS = 256


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    (folder / "conf").mkdir()
    (folder / "conf" / "streams.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="module")
def server(home):
    """A server in a process of its own that may have few descriptors: the process, its address, its log."""
    port = free_port()
    command = [sys.executable, "-m", "st_common.cli", "--home", home / "home"]
    command += ["--conf", home / "conf", "serve", "--port", str(port)]

    with (home / "serve.log").open("ab") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        few = (DESCRIPTORS, DESCRIPTORS)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, few)  # before it looks
        try:
            while True:
                assert process.poll() is None
                with contextlib.suppress(httpx.HTTPError):
                    if httpx.get(f"http://127.0.0.1:{port}/v1/status").is_success:
                        break
                time.sleep(0.1)
            yield process, ("127.0.0.1", port), home / "serve.log"
        finally:
            process.terminate()  # so that it ends the engine that it began
            assert process.wait(timeout=240) == 0


def post(address):
    url = f"http://{address[0]}:{address[1]}/v1/streams/ships/fixes"
    return httpx.post(url, content=FIX, timeout=60)


def test_a_thousand_silent_connections_keep_nobody_out(server):
    process, address, log = server
    with contextlib.ExitStack() as stack:
        for _ in range(1100):
            silent = socket.create_connection(address, timeout=30)
            stack.callback(silent.close)
        for _ in range(5):
            assert post(address).status_code == 202
            assert httpx.get(f"http://{address[0]}:{address[1]}/v1/status").is_success
        assert process.poll() is None
    assert post(address).status_code == 202
    assert b"Traceback" not in log.read_bytes()


def test_connections_that_begin_a_request_and_never_end_it_keep_nobody_out(server):
    process, address, log = server
    begun = b"POST /v1/streams/ships/fixes HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    with contextlib.ExitStack() as stack:
        for number in range(2 * DESCRIPTORS):
            slow = socket.create_connection(address, timeout=30)
            stack.callback(slow.close)
            slow.sendall(begun if number % 2 else begun + b"content-length: 9\r\n\r\n{")
        assert post(address).status_code == 202
    assert process.poll() is None
    assert post(address).status_code == 202  # it has seen that they are gone
    assert b"a defect" not in log.read_bytes()


def test_a_server_that_can_open_no_file_says_503_and_goes_on_when_it_can(server):
    process, address, _ = server
    base = f"http://{address[0]}:{address[1]}"
    with httpx.Client(base_url=base, timeout=60) as client:
        assert client.get("/v1/status").is_success  # by a connection that stays
        known = client.get("/v1/queries").json()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (8, DESCRIPTORS))
        try:
            for _ in range(3):
                told = client.post("/v1/streams/ships/fixes", content=FIX)
                assert told.status_code == 503
                assert "short of files" in told.json()["error"]
                told = client.get("/v1/queries")  # which may need no file
                assert told.status_code == 503 or told.json() == known
        finally:
            resource.prlimit(
                process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)
            )
        assert process.poll() is None
        assert client.get("/v1/status").is_success
        assert client.post("/v1/streams/ships/fixes", content=FIX).status_code == 202
