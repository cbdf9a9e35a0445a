"""`fairway serve` as a user runs it: a process that runs engines, is killed, starts again, and ends at Ctrl-C."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import psutil
import pytest

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.operations.supervisor import job_supervisor, tick
from tests.kit.ports import free_port
from tests.kit.server_http import events

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.spec("S8"),
    pytest.mark.timeout(240),
]

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
latest_flush_s = 1

[streams.ships.sources.harbour]
kind = "tcp"
listen = ":{port}"
"""
SENDERS, EACH = 5, 60


@contextlib.contextmanager
def serving(folder, port):
    """A server in a process of its own; killed when this is left and it has not ended."""
    command = [sys.executable, "-m", "st_common.cli", "--home", folder / "home"]
    command += ["--conf", folder / "conf", "serve", "--port", str(port)]
    with (folder / "serve.log").open("ab") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        try:
            answered(port, process)
            yield process
        finally:
            process.kill()
            process.wait()


def answered(port, process):
    """Waits until it answers."""
    while True:
        assert process.poll() is None
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/v1/status").status_code == 200:
                return
        time.sleep(0.1)


def until(is_so, seconds=100):
    end_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def lives(process):
    """Whether a process has not ended; one that nobody has collected yet has."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


class Listener:
    """Listens to a query for as long as it is asked to, wherever the server is, by the id of the last change."""

    def __init__(self, port):
        self.got, self._port, self._is_over = [], port, False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        while not self._is_over:
            headers = {"Last-Event-ID": self.got[-1][0]} if self.got else {}
            start = {} if self.got else {"since": 0}
            with (
                contextlib.suppress(httpx.HTTPError),
                httpx.stream(
                    "GET",
                    f"http://127.0.0.1:{self._port}/v1/changes/all",
                    params=start,
                    headers=headers,
                    timeout=100,
                ) as response,
            ):
                for one in events(response):
                    self.got.append(one)
            time.sleep(0.1)

    def close(self):
        self._is_over = True


def send_all(port, sender):
    """Sends fixes one by one, each until the server has said that it is durable."""
    url = f"http://127.0.0.1:{port}/v1/streams/ships/fixes"
    with httpx.Client(timeout=100) as client:
        for number in range(EACH):
            record = {"id": f"s{sender}-{number}", "t": number, "x": 1, "y": 1}
            headers = {"Idempotency-Key": f"{sender}-{number}"}
            while not is_taken(client, url, json.dumps(record), headers):
                time.sleep(0.1)


def is_taken(client, url, content, headers):
    """Whether the server has said that it is durable."""
    with contextlib.suppress(httpx.HTTPError):
        return client.post(url, content=content, headers=headers).status_code == 202
    return False


def test_nothing_is_lost_or_told_twice_while_the_server_is_killed_and_ctrl_c_ends_all(
    tmp_path,
):
    port, harbour = free_port(), free_port()
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS.format(port=harbour))
    with serving(tmp_path, port):
        select = "SELECT * FROM ships INSIDE (0, 0, 9, 9)"
        url = f"http://127.0.0.1:{port}/v1/queries/all"
        assert httpx.put(url, content=select, timeout=60).status_code == 201
        listener = Listener(port)
        senders = [
            threading.Thread(target=send_all, args=(port, n)) for n in range(SENDERS)
        ]
        for one in senders:
            one.start()
        until(lambda: len(listener.got) > SENDERS * EACH // 4)
    with serving(tmp_path, port) as process:
        home = Home(tmp_path / "home")
        streams = load_streams(conf)
        now_us = time.time_ns() // 1000
        assert (
            tick(job_supervisor(home, conf), streams, now_us=now_us) == []
        )  # it would stop the engine
        with socket.create_connection(("127.0.0.1", harbour)) as ship:
            ship.sendall(b'{"id": "by-tcp", "t": 99, "x": 1, "y": 1}\n')
        for one in senders:
            one.join()
        until(lambda: len(listener.got) > SENDERS * EACH)
        engines = [
            one
            for one in psutil.process_iter(["cmdline"])
            if str(tmp_path) in " ".join(one.info["cmdline"] or ())
            and "st_common.processes.run_stream" in (one.info["cmdline"] or ())
        ]
        assert len(engines) == 1
        listener.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=100) == 0
    assert not any(lives(one) for one in engines)
    told = [data["object"] for _, data in listener.got]
    expected = {f"s{s}-{n}" for s in range(SENDERS) for n in range(EACH)} | {"by-tcp"}
    assert len(told) == len(set(told)) == len(expected)
    assert set(told) == expected
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


def test_an_engine_that_cannot_start_is_named_and_starts_once_its_settings_are_mended(
    tmp_path,
):
    port, harbour = free_port(), free_port()
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS.format(port=harbour))
    (conf / "operations.toml").write_text('[lineage]\nto = "http"\n')
    log, errors = tmp_path / "serve.log", tmp_path / "home/streams/ships/engine.log"

    def is_in(state):
        (told,) = httpx.get(f"http://127.0.0.1:{port}/v1/status").json()["streams"]
        return told["state"] in state and (told["why"] or "url is missing")

    def tries():
        return errors.read_text().count("error:") if errors.exists() else 0

    with serving(tmp_path, port) as server:
        lines = log.read_text()
        assert "ships: engine local, waits for its first fix or query" in lines
        assert "; sources: harbour (tcp)" in lines
        fix = json.dumps({"id": "a", "t": 1, "x": 1, "y": 1})
        httpx.post(f"http://127.0.0.1:{port}/v1/streams/ships/fixes", content=fix)
        until(lambda: is_in(("bad_config",)))
        (why,) = {is_in(("bad_config",))}
        assert "url" in why
        assert log.read_text().count("ships: bad_config: ") == 1
        time.sleep(3)  # a look later it is not tried again
        assert tries() == 1
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=100) == 0
    with serving(tmp_path, port):
        until(lambda: tries() == 2)  # whoever starts a server may have mended it
        until(lambda: is_in(("bad_config",)))
        (conf / "operations.toml").unlink()
        until(lambda: is_in(("running", "idle")))
        assert tries() == 2
