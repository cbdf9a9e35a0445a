"""The image of docker/Dockerfile, built step by step from what git knows alone, does what docker-compose.yml asks.

There is no container engine: `tests.kit.dockerfile` carries the steps out in a folder for each stage. What runs here
runs from the last of them, by its own environments.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from st_common.loopback import SERVE_PORT
from tests.kit.dockerfile import Stage, build, context, tracked_files
from tests.kit.jvm import QUICK_TO_START
from tests.kit.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DAGS = {path.stem for path in (ROOT / "dags").glob("[a-z]*.py")}
READS_DELTA = """
import sys
import pyarrow as pa
from deltalake import write_deltalake
from st_common.config.spark import SparkSettings
from st_common.spark.session import session

write_deltalake(sys.argv[1], pa.table({"x": [1, 2, 3]}))
spark = session("image", place=SparkSettings(cores=1, memory="1g"))
print("rows:", spark.read.format("delta").load(sys.argv[1]).count())
spark.stop()
"""


@pytest.fixture(scope="module")
def image() -> Iterator[Stage]:
    """The last stage, built; its 100,000 files, 1.9 GB, lie in memory where TMPDIR does, and go at once."""
    folder = Path(tempfile.mkdtemp(prefix="fairway-image-"))
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    text = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    try:
        yield build(text, context(ignore, tracked_files()), folder)
    finally:
        shutil.rmtree(folder)


def run(image: Stage, words: list[str], **more: str) -> str:
    """What a command says in the image; it must succeed."""
    done = subprocess.run(
        [in_image(image, word) for word in words],
        cwd=image.here("."),
        env=image.environment() | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def in_image(image: Stage, text: str) -> str:
    """A word of docker-compose.yml with the image's folders where they lie here."""
    text = re.sub(
        r"/(?=(var/lib|opt)/)", lambda _: f"{image.root}/", text.replace("$$", "$")
    )
    return str(image.here(text)) if text.startswith(".venv") else text


def environment_of(image: Stage, service: str) -> dict[str, str]:
    return {
        name: in_image(image, value)
        for name, value in SERVICES[service]["environment"].items()
    }


@pytest.fixture(scope="module")
def secrets(image: Stage) -> Path:
    """The folder of secrets, as the service makes them."""
    run(image, SERVICES["secrets"]["command"])
    return image.here("/var/lib/fairway-secrets")


def test_every_program_that_compose_starts_is_in_the_image(image: Stage):
    for name, service in SERVICES.items():
        if "build" not in service:
            continue
        words = [*service["command"], *service.get("healthcheck", {}).get("test", ())]
        programs = re.findall(r"(?:\.venv[\w-]*/bin|docker)/[\w.-]+", " ".join(words))
        assert programs, name
        for program in programs:
            assert image.here(program).is_file(), f"{name}: {program}"


def test_nothing_of_the_image_lies_in_this_checkout(image: Stage):
    said = run(
        image,
        [
            ".venv/bin/python",
            "-c",
            "import st_common, sys; print(st_common.__file__, *sys.path)",
        ],
    )
    assert said.startswith(f"{image.here('st_common')}/")
    assert f"{ROOT}/" not in said
    assert not image.here("tests").exists()
    assert not list(image.here("/home/fairway").iterdir())


def test_the_command_line_and_jobs_start(image: Stage):
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(image, [".venv/bin/fairway", "--version"]) == f"fairway {told}\n"
    assert "usage: " in run(image, [".venv/bin/python", "-m", "jobs.maintain", "--help"])  # fmt: skip


def test_airflow_takes_its_secrets_from_the_volume(image: Stage, secrets: Path):
    own = environment_of(image, "airflow-scheduler")
    options = [
        name.removeprefix("AIRFLOW__").removesuffix("_CMD").lower().split("__")
        for name in own
        if name.endswith("_CMD")
    ]
    assert len(options) == 5
    program = (
        "import json, sys; from airflow.configuration import conf\n"
        "print(json.dumps([conf.get(*one) for one in json.loads(sys.argv[1])]))"
    )
    python = ".venv-airflow/bin/python"
    said = run(image, [python, "-c", program, json.dumps(options)], **own)
    found = dict(zip([name for _, name in options], json.loads(said), strict=True))

    def secret(name: str) -> str:
        return (secrets / name).read_text()

    password = secret("postgres-password")
    assert found == {
        "fernet_key": secret("fernet-key"),
        "secret_key": secret("api-secret"),
        "jwt_secret": secret("jwt-secret"),
        "sql_alchemy_conn": f"postgresql+psycopg2://airflow:{password}@postgres/airflow",
        "sql_alchemy_conn_async": f"postgresql+asyncpg://airflow:{password}@postgres/airflow",
    }


def test_airflow_knows_all_dags_and_its_cleaner_deletes_old_logs(
    image: Stage, secrets: Path
):
    own = environment_of(image, "airflow-scheduler")
    base = image.here("/var/lib/airflow")
    own |= {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{base}/airflow.db"}
    own.pop("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC_CMD")
    run(image, SERVICES["airflow-init"]["command"], **own)
    list_dags = [
        ".venv-airflow/bin/airflow",
        "dags",
        "list",
        "--local",
        "--output",
        "json",
    ]
    told = run(image, list_dags, **own)
    found = {dag["dag_id"] for dag in json.loads(told[told.index("[{") :])}
    assert found == DAGS, "a file that cannot be imported has none"
    old, new = base / "logs" / "dag_processor" / "old.log", base / "logs" / "new.log"
    old.parent.mkdir(parents=True, exist_ok=True)
    for path in (old, new):
        path.write_text("said\n")
    os.utime(old, (time.time_ns() / 1e9 - 91 * 86400,) * 2)
    command = SERVICES["airflow-cleaner"]["command"]
    assert command[-4:] == ["--every", "86400", "--beat", "/tmp/cleaned"]
    run(image, command[:-4], **own)
    assert new.exists()
    assert not old.exists()


def test_it_serves_the_page(image: Stage, secrets: Path):
    port, address = str(free_port()), "127.0.0.1"
    words = [
        word.replace(str(SERVE_PORT), port).replace("0.0.0.0", address)
        for word in SERVICES["serve"]["command"]
    ]
    words[-1] = in_image(image, words[-1]).replace("exec .venv", f"exec {image.here('.venv')}")  # fmt: skip
    own = image.environment() | environment_of(image, "serve")
    with subprocess.Popen(
        words, cwd=image.here("."), env=own, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == f"http://{address}:{port}\n"
            with httpx.Client(base_url=f"http://{address}:{port}") as client:
                page = client.get("/")
                assert page.status_code == 200
                assert "<title>Fairway</title>" in page.text
                scripts = re.findall(r'<script[^>]* src="([^"]+)"', page.text)
                assert scripts
                for script in scripts:
                    assert client.get(script).status_code == 200
            check = SERVICES["serve"]["healthcheck"]["test"][1]
            healthy = shlex.split(check.partition("&&")[0].replace(str(SERVE_PORT), port))  # fmt: skip
            run(image, healthy)
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=120) == 0
        finally:
            running.kill()


def test_spark_reads_a_delta_table_by_the_jars_of_the_image(
    image: Stage, tmp_path: Path
):
    python = ".venv/bin/python"
    quick = {"SPARK_SUBMIT_OPTS": " ".join(QUICK_TO_START)}
    said = run(image, [python, "-c", READS_DELTA, str(tmp_path / "table")], **quick)
    assert "rows: 3" in said
