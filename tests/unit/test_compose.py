"""docker-compose.yml holds together: pinned images, health checks, mounts that exist, loopback ports, no secrets."""

import base64
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
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from st_common.config.home import Home
from st_common.loopback import SERVE_PORT
from st_common.operations.launcher import recorded
from st_common.operations.process import kill_session
from st_common.operations.status import read_exit, read_status
from tests.kit.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
VOLUME = "/var/lib/fairway-secrets"
SECRETS = ("postgres-password", "fernet-key", "api-secret", "jwt-secret", "page-token")
PASSWORDS = "/var/lib/airflow/simple_auth_manager_passwords.json.generated"
SECRET = re.compile(r"PASSWORD|SECRET|FERNET|TOKEN|SQL_ALCHEMY_CONN")
PINNED = re.compile(
    r"[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.-]+)?(@sha256:[0-9a-f]{64})?"
)


def test_airflow_and_spark_are_all_there():
    assert set(SERVICES) == {
        "secrets",
        "addresses",
        "postgres",
        "airflow-init",
        "airflow-api-server",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "airflow-cleaner",
        "serve",
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


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_container_prints_is_bounded(name: str):
    logging = SERVICES[name]["logging"]
    assert logging["driver"] == "json-file"
    assert logging["options"] == {"max-size": "10m", "max-file": "5"}


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
    assert len(published) == len(set(published)) == 4


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
        for name in SERVICES.keys() - {"postgres", "secrets", "addresses"}
    )


def test_secrets_come_from_files_of_the_volume_and_nothing_is_to_be_filled_in():
    named = set()
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"(?<!\$)\$(?!\$)", value), "it would be filled in"
            if SECRET.search(variable):
                assert variable.endswith(("_CMD", "_FILE")), variable
                files = re.findall(rf"{VOLUME}/([a-z-]+)", value)
                assert files, f"{variable} is from no file"
                named |= {*files}
    named |= {*re.findall(rf"{VOLUME}/([a-z-]+)", SERVICES["serve"]["command"][-1])}
    assert named == {*SECRETS}
    assert not (ROOT / ".env.example").exists()


def test_only_who_makes_secrets_writes_them_and_only_who_needs_them_sees_them():
    mounts = {
        name: mount
        for name, service in SERVICES.items()
        for mount in service["volumes"]
        if mount.startswith("fairway-secrets:")
    }
    assert mounts.keys() == SERVICES.keys() - {"spark-master", "spark-worker"}
    assert mounts.pop("secrets") == f"fairway-secrets:{VOLUME}"
    assert {*mounts.values()} == {f"fairway-secrets:{VOLUME}:ro"}


def test_one_service_supervises():
    supervising = [
        name
        for name, service in SERVICES.items()
        if re.search("fairway (serve|supervise)", " ".join(service.get("command", ())))
    ]
    assert supervising == ["serve"]
    assert "--no-engines" not in SERVICES["serve"]["command"][-1]


def test_browsers_and_airflow_reach_the_page_by_the_same_address():
    place = urlsplit(SERVICES["airflow-api-server"]["environment"]["FAIRWAY_PAGE_URL"])
    assert str(place.hostname).endswith(".localhost"), "browsers ask their own machine"
    assert place.hostname in SERVICES["serve"]["networks"]["default"]["aliases"]
    assert f"127.0.0.1:{place.port}:{place.port}" in SERVICES["serve"]["ports"]
    assert place.port == SERVE_PORT


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


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command of a service, with `folder` in the place of /."""
    python, *words = SERVICES[name]["command"]
    assert python == "python3"
    return subprocess.run(
        [sys.executable, *(re.sub("^/", f"{folder}/", word) for word in words)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def volumes(tmp_path: Path) -> Path:
    """A folder in the place of /, with volumes as they are at the first start."""
    for path in (VOLUME, PASSWORDS):
        folder = tmp_path / path.strip("/")
        (folder if path == VOLUME else folder.parent).mkdir(parents=True)
    return tmp_path


def secret_files(volumes: Path) -> dict[str, Path]:
    folder = volumes / VOLUME.strip("/")
    return {
        **{name: folder / name for name in SECRETS},
        "passwords": volumes / PASSWORDS.strip("/"),
    }


def test_secrets_are_made_once_each_another_one_and_for_their_owner_alone(
    volumes: Path,
):
    made = run("secrets", volumes)
    assert made.returncode == 0, made.stderr
    files = secret_files(volumes)
    first = {name: path.read_text() for name, path in files.items()}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files.values())
    assert len(set(first.values())) == len(files)
    assert all(
        len(secret) >= 24 and secret.strip() == secret for secret in first.values()
    )
    assert len(base64.urlsafe_b64decode(first["fernet-key"])) == 32
    assert not any(secret in made.stdout + made.stderr for secret in first.values())
    assert {path.name for path in files["fernet-key"].parent.iterdir()} == {*SECRETS}
    files["jwt-secret"].unlink()
    files["api-secret"].chmod(0o644)
    again = run("secrets", volumes)
    assert again.stdout == f"made {files['jwt-secret']}\n"
    second = {name: path.read_text() for name, path in files.items()}
    assert {name for name in first if first[name] != second[name]} == {"jwt-secret"}
    assert files["api-secret"].stat().st_mode & 0o777 == 0o600


def test_an_empty_secret_is_refused_and_a_start_that_was_cut_off_is_made_up_for(
    volumes: Path,
):
    files = secret_files(volumes)
    files["fernet-key"].touch()
    (files["api-secret"].parent / ".postgres-password.part").write_text("half")
    refused = run("secrets", volumes)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"error: {files['fernet-key']} is empty (delete it, and a new one is made)\n"
    )
    assert files["postgres-password"].read_text() != "half"
    files["fernet-key"].unlink()
    assert run("secrets", volumes).returncode == 0


def test_the_key_of_connections_is_changed_as_the_docs_say(volumes: Path):
    run("secrets", volumes)
    key = secret_files(volumes)["fernet-key"]
    old = key.read_text()
    page = (ROOT / "docs" / "operations.md").read_text()
    moved, joined, shortened = re.findall("^in_volume '(.+)'$", page, re.MULTILINE)

    def in_volume(command: str) -> str:
        subprocess.run(["sh", "-c", command], cwd=key.parent, check=True)
        run("secrets", volumes)
        return key.read_text()

    new = in_volume(moved)
    assert new != old
    assert in_volume(joined) == f"{new},{old}"
    assert in_volume(shortened) == new
    assert key.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in key.parent.iterdir()} == {*SECRETS}


def test_addresses_are_printed_with_the_password_and_the_token(volumes: Path):
    assert run("addresses", volumes).returncode == 2, "there are no secrets yet"
    run("secrets", volumes)
    said = run("addresses", volumes).stdout
    files = secret_files(volumes)
    assert f"password {json.loads(files['passwords'].read_text())['admin']}\n" in said
    assert f"token {files['page-token'].read_text()}\n" in said
    published = {
        port.rpartition(":")[0]
        for service in SERVICES.values()
        for port in service.get("ports", ())
    }
    assert {*re.findall(r"http://([\d.:]+)", said)} == published


STREAM = """
[streams.s]
format = "ndjson"
crs = "planar"
engine = "local"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
"""


def wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def here(text: str, volumes: Path, port: int) -> str:
    """A text of compose as it is on this machine: loopback, a free port, programs from here, volumes in a folder."""
    text = text.replace("$$", "$").replace("0.0.0.0", "127.0.0.1")
    text = re.sub(rf"(?<!\d){SERVE_PORT}(?!\d)", str(port), text)
    text = text.replace(".venv/bin/fairway", f"{Path(sys.executable).parent}/fairway")
    return text.replace("/var/lib/", f"{volumes}/var/lib/")


@pytest.mark.slow
@pytest.mark.spec("C4")
def test_the_service_of_streams_starts_one_and_stops_it_and_ends_when_asked(
    volumes: Path,
):
    run("secrets", volumes)
    port, service = free_port(), SERVICES["serve"]
    conf = volumes / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(STREAM)
    own = {
        name: here(value, volumes, port)
        for name, value in service["environment"].items()
    } | {"FAIRWAY_CONF": str(conf)}
    folder = Home(Path(own["FAIRWAY_HOME"])).stream("s")
    check = here(service["healthcheck"]["test"][1], volumes, port)
    token = secret_files(volumes)["page-token"].read_text()

    def is_well() -> bool:
        words = ["sh", "-c", check]
        done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True)
        return done.returncode == 0

    assert not is_well()
    with (
        subprocess.Popen(
            [here(word, volumes, port) for word in service["command"]],
            cwd=ROOT,
            env={**os.environ, **own},
            stdout=subprocess.DEVNULL,
        ) as running,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        try:
            wait_for(is_well)
            assert "<title>Fairway</title>" in client.get("/").text
            assert client.get("/v1/status").status_code == 401
            client.headers["Authorization"] = f"Bearer {token}"
            assert client.get("/v1/status").status_code == 200
            fix = {"id": "a", "x": 1, "y": 1, "t": 1}
            sent = client.post("/v1/streams/s/fixes", json=[fix])
            assert sent.json()["accepted"] == 1
            wait_for(lambda: read_status(folder) is not None)
            assert recorded(folder) is not None
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=240) == 0
            assert read_exit(folder) is not None, "its engine has ended too"
            assert not is_well()
        finally:
            running.kill()
            engine = recorded(folder)
            if engine is not None:
                kill_session(engine)


def test_where_nobody_looks_after_the_streams_the_service_is_not_well(volumes: Path):
    run("secrets", volumes)
    judged = volumes / "var/lib/fairway/home/judged.json"
    judged.parent.mkdir(parents=True)
    judged.touch()
    with answering(health={}) as place:
        port = int(place.rpartition(":")[2])
        words = here(SERVICES["serve"]["healthcheck"]["test"][1], volumes, port)

        def code() -> int:
            return subprocess.run(["sh", "-c", words], cwd=ROOT, check=False).returncode

        assert code() == 0
        long_ago_s = time.time_ns() / 1e9 - 600
        os.utime(judged, (long_ago_s, long_ago_s))
        assert code() != 0
