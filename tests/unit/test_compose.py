"""docker-compose.yml holds together: pinned images, health checks, mounts that exist, loopback ports, no secrets."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from st_common.config.home import Home
from st_common.operations.launcher import recorded
from st_common.operations.process import kill_session
from st_common.operations.status import read_exit, read_status

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD|SECRET|FERNET|TOKEN|SQL_ALCHEMY_CONN")
PINNED = re.compile(
    r"[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.-]+)?(@sha256:[0-9a-f]{64})?"
)


def test_airflow_and_spark_are_all_there():
    assert set(SERVICES) == {
        "postgres",
        "airflow-init",
        "airflow-api-server",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "airflow-cleaner",
        "streams",
        "spark-master",
        "spark-worker",
    }


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned_to_a_version(name: str):
    assert PINNED.fullmatch(SERVICES[name]["image"])


def test_the_image_that_is_built_starts_from_a_pinned_one():
    dockerfile = ROOT / SERVICES["spark-master"]["build"]["dockerfile"]
    bases = re.findall(r"^FROM (\S+)", dockerfile.read_text(), re.MULTILINE)
    assert bases
    assert all(PINNED.fullmatch(base) for base in bases)


def test_what_the_image_copies_is_in_the_repository_and_not_ignored():
    dockerfile = (ROOT / SERVICES["spark-master"]["build"]["dockerfile"]).read_text()
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for line in re.findall(r"^COPY (.+)", dockerfile, re.MULTILINE):
        *sources, _ = (word for word in line.split() if not word.startswith("--"))
        for source in sources:
            assert (ROOT / source).exists(), source
            assert Path(source).parts[0] in kept, source


@pytest.mark.parametrize("name", SERVICES)
def test_whoever_stays_up_is_watched(name: str):
    service = SERVICES[name]
    if service["restart"] == "no":
        assert "healthcheck" not in service
    else:
        assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
        assert {"interval", "timeout", "retries"} <= set(service["healthcheck"])


@pytest.mark.parametrize("name", SERVICES)
def test_mounts_exist(name: str):
    for mount in SERVICES[name]["volumes"]:
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (ROOT / source).is_dir(), mount
        else:
            assert source in COMPOSE["volumes"], mount


def test_no_volume_is_forgotten():
    used = {
        mount.split(":")[0]
        for service in SERVICES.values()
        for mount in service["volumes"]
    }
    assert set(COMPOSE["volumes"]) <= used


def test_ports_are_on_loopback_and_each_is_given_once():
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)
    published = [port.split(":")[1] for port in ports]
    assert len(published) == len(set(published)) == 3


def test_waiting_is_for_services_that_can_be_waited_for():
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            ends = SERVICES[other]["restart"] == "no"
            assert how["condition"] == (
                "service_completed_successfully" if ends else "service_healthy"
            )


def test_drivers_and_workers_see_the_same_home():
    home = {
        mount
        for mount in SERVICES["spark-worker"]["volumes"]
        if mount.startswith("fairway-home:")
    }
    assert home
    assert all(
        home <= set(SERVICES[name]["volumes"])
        for name in SERVICES
        if name != "postgres"
    )


def test_secrets_come_from_the_environment_and_have_no_default():
    named = {}
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if SECRET.search(variable):
                secrets = re.findall(r"\$\{([A-Z_]+):\?[^}]+\}", value)
                assert secrets, f"{variable} is not from the environment"
                named |= dict.fromkeys(secrets)
            else:
                assert "${" not in value
    example = dict(
        re.findall(
            r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE
        )
    )
    assert set(example) == set(named)
    assert not any(example.values())


def test_the_file_of_secrets_is_kept_out_of_git_and_out_of_the_image():
    assert ".env" in (ROOT / ".gitignore").read_text().split()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert "*" in ignored
    assert not any(line.startswith("!.") for line in ignored)


# --- what services run, on this machine ---------------------------------------------------------------------------


@contextmanager
def answering(*, health: dict[str, Any], code: int = 200) -> Iterator[str]:
    """A server on loopback that answers each request as Airflow's API server does when it is asked how it is."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(health).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def asked(name: str, place: str) -> int:
    """The exit code of a service's health check, asked at another place."""
    _, python, *words = SERVICES[name]["healthcheck"]["test"]
    assert python == "python3"
    words = [re.sub(r"http://[^/]+", f"http://{place}", word) for word in words]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0 or done.stderr
    return done.returncode


COMPONENTS = {
    "airflow-api-server": "metadatabase",
    "airflow-scheduler": "scheduler",
    "airflow-dag-processor": "dag_processor",
    "airflow-triggerer": "triggerer",
}


@pytest.mark.parametrize(("name", "component"), COMPONENTS.items())
def test_a_component_of_airflow_is_well_when_the_server_says_so_of_it_alone(
    name: str, component: str
):
    others = {each: {"status": "unhealthy"} for each in COMPONENTS.values()}
    with answering(health=others | {component: {"status": "healthy"}}) as place:
        assert asked(name, place) == 0
    with answering(health=others) as place:
        assert asked(name, place) == 1
    well = {each: {"status": "healthy"} for each in COMPONENTS.values()}
    with answering(health=well | {component: {"status": "unhealthy"}}) as place:
        assert asked(name, place) == 1
    with answering(health=well, code=500) as place:
        assert asked(name, place) == 1
    assert asked(name, place) == 1, "nobody answers any more"


STREAM = """
[streams.s]
format = "csv"
crs = "planar"
engine = "local"
columns = {{ object = "id", x = "x", y = "y" }}
running = {running}
"""


def wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.spec("C4")
def test_the_service_of_streams_starts_one_and_stops_it_and_ends_when_asked(
    tmp_path: Path,
):
    conf, beat = tmp_path / "conf", tmp_path / "beat"
    conf.mkdir()
    (conf / "streams.toml").write_text(STREAM.format(running="true"))
    service = SERVICES["streams"]
    words = {".venv/bin/python": sys.executable, "60": "0.5", "/tmp/supervised": beat}
    command = [str(words.get(word, word)) for word in service["command"]]
    own = {"FAIRWAY_HOME": str(tmp_path / "home"), "FAIRWAY_CONF": str(conf)}
    assert set(own) == set(service["environment"])
    folder = Home(tmp_path / "home").stream("s")
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **own}, stdout=subprocess.DEVNULL
    ) as running:
        try:
            wait_for(lambda: beat.exists() and read_status(folder) is not None)
            (conf / "streams.toml").write_text(STREAM.format(running="false"))
            wait_for(lambda: read_exit(folder) is not None)
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=240) == 0
        finally:
            running.kill()
            engine = recorded(folder)
            if engine is not None:
                kill_session(engine)
