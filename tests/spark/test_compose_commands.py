"""The commands of docker-compose.yml that start Spark's master and worker, on loopback and free ports."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.jvm import QUICK_TO_START
from tests.kit.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())[
    "services"
]
BIN = Path(sys.executable).parent


def on_loopback(words: list[str], ports: dict[str, str]) -> list[str]:
    """A command with its hosts on loopback, its ports replaced, and its programs from here."""
    text = "\n".join(words).replace("spark-master", "127.0.0.1")
    for port, free in ports.items():
        text = re.sub(rf"(?<!\d){port}(?!\d)", free, text)
    return [
        str(BIN / Path(word).name) if word.startswith(".venv/") else word
        for word in text.split("\n")
    ]


@contextmanager
def started(name: str, ports: dict[str, str], folder: Path) -> Iterator[Path]:
    service = SERVICES[name]
    own = {
        **service["environment"],
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": " ".join(QUICK_TO_START),
    }
    own["SPARK_MASTER_OPTS"] = (
        f"{own.get('SPARK_MASTER_OPTS', '')} -Dspark.master.rest.port={free_port()}"
    )
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            on_loopback(service["command"], ports),
            env={**os.environ, **own},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield log
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def is_well(name: str, ports: dict[str, str]) -> bool:
    """What the health check of a service says."""
    _, python, *words = on_loopback(SERVICES[name]["healthcheck"]["test"], ports)
    assert python == "python3"
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, check=False, capture_output=True, timeout=60
    )
    return done.returncode == 0


def wait_until_well(name: str, ports: dict[str, str], log: Path) -> None:
    deadline = time.monotonic() + 300
    while not is_well(name, ports):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.3)


@pytest.mark.spec("C4")
def test_master_and_worker_start_and_find_each_other_and_their_checks_notice(
    tmp_path: Path,
):
    of_master = {"7077": str(free_port()), "8080": str(free_port())}
    of_worker = {**of_master, "8080": str(free_port())}
    assert not is_well("spark-master", of_master)
    with started("spark-master", of_master, tmp_path) as log:
        wait_until_well("spark-master", of_master, log)
        with started("spark-worker", of_worker, tmp_path) as own:
            wait_until_well("spark-worker", of_worker, own)
            deadline = time.monotonic() + 300
            while "Registering worker" not in log.read_text():
                assert time.monotonic() < deadline, log.read_text() + own.read_text()
                time.sleep(0.3)
        assert not is_well("spark-worker", of_worker)
