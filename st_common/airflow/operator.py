"""Runs a job as a task of Airflow, by spark-submit or the jobs' own Python, and says in its terms how that ended."""

import json
import os
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from st_common.airflow.installation import (
    CONNECTION,
    Installation,
    find_installation,
    job_environment,
)
from st_common.airflow.links import PageLink, ReportLink
from st_common.airflow.notes import NOTE, line_of
from st_common.config.environment import OUTCOME_VARIABLE, PARENT_VARIABLE
from st_common.config.redaction import redacted
from st_common.errors import ConfigError

_FINAL = {
    2: "wrong settings",
    3: "data below what its contract promises",
    4: "taken over by another process",
}
_KEPT_LINES = 50


class JobOperator(SparkSubmitOperator):
    """A task that runs a program of `jobs/`, or another module, and hands on the summary that it leaves.

        engine      the program is run
        spark       by spark-submit, on the master of the Connection `fairway`
        local       by the Python that the Connection names

        exit code   the task
        0           succeeds
        2, 3, 4     fails for good: settings, data or another owner; trying again cannot help
        others      fails the attempt, which Airflow repeats as often as `retries` says (75: it may help; 1: a crash)

    Args:
        job: the program, a file of `jobs/`, or a module with its dots.
        arguments: words of its command line, which may hold templates; home and conf are added. An option is one word,
            `--group={{ params.group }}`, so that a value from a form can never become an option of its own; one whose
            value is empty is left out.
        engine: what runs it, which may be a template.
        more: words before them, which hold no templates: what a mapped task is about.
        may_pass: wrong settings are no end: whoever mends them finds the task going on with its next attempt.
        **kwargs: what Airflow's operators take: `outlets`, `retries`, `execution_timeout`, ...
    """

    template_fields = ("arguments", "engine")
    operator_extra_links = (ReportLink(), PageLink())

    def __init__(
        self,
        *,
        job: str,
        arguments: Sequence[str] = (),
        more: Sequence[str] = (),
        engine: str = "local",
        may_pass: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(conn_id=CONNECTION, **kwargs)
        self.job = job
        self.arguments = list(arguments)
        self.more = list(more)
        self.engine = engine
        self.may_pass = may_pass
        self.summary: dict[str, Any] = {}
        self.submitted: str | None = None
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the job to its end.

        Args:
            context: of the run, as Airflow gives it.

        Returns:
            The job's summary; the event of each outlet carries it too.

        Raises:
            AirflowFailException: the job failed for good, there is no installation, or the run has a value that the
                form does not have.
            AirflowException: it failed, and another attempt may help.
        """
        refuse_unknown(context)
        try:
            place = find_installation()
        except ConfigError as error:
            raise AirflowFailException(str(error)) from None
        with _outcome_in(place.home) as outcome:
            given = {
                "FAIRWAY_HOME": str(place.home),
                "FAIRWAY_CONF": str(place.conf),
                OUTCOME_VARIABLE: str(outcome),
                PARENT_VARIABLE: parent(context),
            }
            run = self._on_spark if self.engine == "spark" else self._here
            code, last = run(place, given, context)
            ended = _read(outcome)
        # Also of one that failed: a day that breaks its contract has its report.
        summary: dict[str, Any] = ended.get("summary", {})
        self.summary = summary
        code = ended.get("code", code)
        why = redacted(ended.get("error") or last)
        failure = (
            f"{_FINAL.get(code, f'ended with code {code}')}: {why}" if code else ""
        )
        line = line_of(summary, failure)
        about = f"{self.label}: " if self.label and line else ""
        context["ti"].xcom_push(key=NOTE, value=about + line)
        if code:
            is_final = code in _FINAL and not (code == 2 and self.may_pass)
            raised = AirflowFailException if is_final else AirflowException
            raise raised(f"{self.module}: {failure}")
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = summary
        return summary

    def on_kill(self) -> None:
        """Ends the job and what it started, but no stream: those live in sessions of their own."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        if self.submitted is not None:
            # The provider kills the JVM, and the job's Python would live on until it asks that for something.
            processes = list(_told_of(self.submitted))
            super().on_kill()
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    @property
    def module(self) -> str:
        """What Python runs."""
        return self.job if "." in self.job else f"jobs.{self.job}"

    @property
    def label(self) -> str:
        """What a mapped task is about: a stream or a layer; "" of any other task."""
        first = self.more[0] if self.more else ""
        return first.partition("=")[2] or first

    def words(self, place: Installation) -> list[str]:
        """The words of the job's command line; no shell reads them.

            ("--group=a", "--source=")   ->   --home HOME --conf CONF --group=a

        Args:
            place: the installation.
        """
        given = map(str, (*self.more, *self.arguments))
        return [
            *place.places,
            *(word for word in given if word and not _is_empty(word)),
        ]

    def _on_spark(
        self, place: Installation, given: Mapping[str, str], context: Mapping[str, Any]
    ) -> tuple[int, str]:
        """Submits the job; gives its exit code, as far as spark-submit says it, and the reason."""
        own = job_environment(os.environ)
        python = str(place.python)
        self.application = str(place.root / "jobs" / f"{self.job}.py")
        self.application_args = self.words(place)
        self.name = f"fairway {self.job}"
        self.jars = ",".join(map(str, place.jars))
        self.properties_file = str(place.properties)
        is_here = place.master.startswith("local")
        self.conf = {**_QUIET, **(_LOOPBACK if is_here else {}), **place.spark}
        self.env_vars = {
            **dict.fromkeys(os.environ.keys() - own.keys(), ""),
            **({"SPARK_LOCAL_IP": "127.0.0.1"} if is_here else {}),
            **given,
            "PATH": f"{place.spark_submit.parent}{os.pathsep}{own.get('PATH', os.defpath)}",
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
        }
        self.submitted = given[OUTCOME_VARIABLE]
        try:
            super().execute(context)
        except AirflowFailException:
            raise
        except (AirflowException, OSError) as error:
            return 1, str(error)
        return 0, ""

    def _here(
        self, place: Installation, given: Mapping[str, str], _: Mapping[str, Any]
    ) -> tuple[int, str]:
        """Runs the job by the jobs' Python; gives its exit code and its last line."""
        argv = [str(place.python), "-m", self.module, *self.words(place)]
        self.log.info("%s", " ".join(argv))
        lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process = subprocess.Popen(  # noqa: S603 - words, never a shell
            argv,
            cwd=place.root,
            env={**job_environment(os.environ), **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            # So that `on_kill` reaches whatever the job has started.
            start_new_session=True,
        )
        with self._process as process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                self.log.info("%s", redacted(line.rstrip()))
        return process.returncode, lines[-1] if lines else "no output"


_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Nobody else can reach the driver, where no executor lies on another machine."""


@contextmanager
def _outcome_in(home: Path) -> Iterator[Path]:
    """A file of the home, which every machine that runs a job can write, in which that leaves how it ended."""
    path = home / "logs" / f".outcome-{uuid4().hex}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _read(outcome: Path) -> dict[str, Any]:
    """How a job ended; {} of one that was killed or crashed before it could say so."""
    try:
        return dict(json.loads(outcome.read_text()))
    except (FileNotFoundError, ValueError):
        return {}


def _told_of(outcome: str) -> Iterator[psutil.Process]:
    """The processes below this one that were told to leave how they ended in a file: those of one job."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.environ().get(OUTCOME_VARIABLE) == outcome:
                yield process


def _is_empty(word: str) -> bool:
    """Whether a word is an option whose value a form left empty."""
    return word.startswith("--") and word.endswith("=")


def refuse_unknown(context: Mapping[str, Any]) -> None:
    """Airflow takes any further value of a run and hands it to nobody: a name that was mistyped would pass unseen.

    Args:
        context: of the run, as Airflow gives it.

    Raises:
        AirflowFailException: the run has a value that the form does not have.
    """
    run, dag = context["dag_run"], context["dag"]
    unknown = sorted(set(run.conf or {}) - set(dag.params))
    if unknown:
        named, has = ", ".join(map(repr, unknown)), ", ".join(sorted(dag.params))
        said = f"DAG {dag.dag_id} has no parameter {named} (it has: {has or 'none'})"
        context["ti"].xcom_push(key=NOTE, value=said)
        raise AirflowFailException(said)


def parent(context: Mapping[str, Any]) -> str:
    """The task that runs, as a JSON object: of all that its run ids in OpenLineage are made of.

    Args:
        context: of the run, as Airflow gives it.
    """
    task, run = context["ti"], context["dag_run"]
    due = run.logical_date or run.run_after
    described = {
        "namespace": conf.get("openlineage", "namespace", fallback="default"),
        "dag": task.dag_id,
        "task": task.task_id,
        "instant": due.isoformat(),
        "try_number": task.try_number,
        "map_index": task.map_index,
        "clear_number": run.clear_number,
    }
    return json.dumps(described)
