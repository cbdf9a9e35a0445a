"""Airflow beside the demo: one process that runs DAGs one after the other, without a server."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from tests.kit.local_airflow.setup import connection

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv-airflow" / "bin" / "python"


class DemoError(Exception):
    """A step of the demo that did not succeed."""


class Runs(Protocol):
    """A place where DAGs can be run."""

    def run(self, dag: str, **form: Any) -> None:
        """Runs a DAG with the values of its form and waits for its end; a DemoError when it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Airflow:
    """A running process of `demo/run_dags.py`; `log` holds what Airflow and the tasks say."""

    questions: IO[str]
    answers: IO[str]
    log: Path

    def run(self, dag: str, **form: Any) -> None:
        """Runs a DAG with the values of its form and waits for its end.

        Raises:
            DemoError: it failed; the message names the log.
        """
        self.questions.write(json.dumps({"dag": dag, "conf": form}) + "\n")
        self.questions.flush()
        line = self.answers.readline()
        if not line:
            raise DemoError(f"Airflow ended while {dag} ran: see {self.log}")
        answer = json.loads(line)
        if answer["state"] != "success":
            raise DemoError(
                f"{dag} ended as {answer['state']} (tasks: {answer['tasks']}): see {self.log}"
            )


@contextmanager
def airflow(folder: Path, *, home: Path, conf: Path) -> Iterator[Airflow]:
    """Airflow with its home in `folder`, whose tasks work on `home` with the settings in `conf`."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "airflow.log"
    given = {
        "FAIRWAY_HOME": str(home),
        "FAIRWAY_CONF": str(conf),
        "AIRFLOW_CONN_FAIRWAY": connection(),
    }
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            [str(PYTHON), str(ROOT / "demo" / "run_dags.py"), str(folder)],
            cwd=ROOT,
            env={**os.environ, **given},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        if process.stdin is None or process.stdout is None:
            raise DemoError("Airflow has no pipes")
        with process:
            yield Airflow(questions=process.stdin, answers=process.stdout, log=log)
            process.stdin.close()
