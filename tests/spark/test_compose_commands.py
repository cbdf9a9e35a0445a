"""The commands of docker-compose.yml that start Spark's master and worker, on loopback and free ports."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.jvm import of_spark
from tests.kit.ports import free_port

PRINTS_MUCH = """
import sys
from pyspark import SparkContext

def prints(_):
    for _ in range(100):
        sys.stderr.write("." * (1 << 20) + "\\n")
    return [1]

with SparkContext(sys.argv[1], "prints") as context:
    print(context.parallelize([0], 1).mapPartitions(prints).count())
"""
MIB = 1 << 20

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
def started(
    name: str, ports: dict[str, str], folder: Path, **more: str
) -> Iterator[Path]:
    service = SERVICES[name]
    own = {
        **service["environment"],
        **more,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": " ".join(of_spark()),
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
    wait_for(lambda: is_well(name, ports), log)


def wait_for(holds: Callable[[], object], *logs: Path) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, "".join(log.read_text() for log in logs)
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
            wait_for(lambda: "Registering worker" in log.read_text(), log, own)
        assert not is_well("spark-worker", of_worker)


def test_the_worker_deletes_folders_of_what_ended_and_bounds_what_executors_print(
    tmp_path: Path,
):
    ports = {"7077": str(free_port()), "8080": str(free_port())}
    of_worker = {**ports, "8080": str(free_port())}
    work = tmp_path / "work"
    for name, days_ago in {"app-old": 8, "driver-old": 8, "app-young": 6}.items():
        folder = work / name / "0"
        folder.mkdir(parents=True)
        (folder / "stderr").write_text("said\n")
        at_s = time.time_ns() / 1e9 - days_ago * 86_400
        for path in (folder / "stderr", folder, folder.parent):
            os.utime(path, (at_s, at_s))
    options = SERVICES["spark-worker"]["environment"]["SPARK_WORKER_OPTS"]
    often = options.replace("cleanup.interval=1800", "cleanup.interval=1")
    assert often != options
    with (
        started("spark-master", ports, tmp_path) as log,
        started("spark-worker", of_worker, tmp_path, SPARK_WORKER_OPTS=often) as own,
    ):
        wait_for(lambda: "Registering worker" in log.read_text(), log, own)
        wait_for(lambda: not {*work.glob("*-old")}, own)
        assert (work / "app-young" / "0" / "stderr").exists()
        subprocess.run(
            [sys.executable, "-c", PRINTS_MUCH, f"spark://127.0.0.1:{ports['7077']}"],
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            check=True,
            timeout=300,
        )
        (executor,) = work.glob("app-2*/0")
        wait_for((executor / "stderr").exists, own)
        printed = [*executor.glob("stderr*")]
        assert 2 <= len(printed) <= 5
        assert sum(path.stat().st_size for path in printed) < 90 * MIB
