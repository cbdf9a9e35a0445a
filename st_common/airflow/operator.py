"""Runs a job as an Airflow task, in the jobs' own environment, and turns its exit code into Airflow's terms."""

import json
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from st_common.airflow.links import PageLink, ReportLink
from st_common.airflow.notes import NOTE, line_of
from st_common.airflow.place import Place, find_place, job_environment
from st_common.config.environment import PARENT_VARIABLE
from st_common.config.redaction import redacted
from st_common.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One call of a job.

    Attributes:
        name: the task's id.
        job: the program, a file of `jobs/`, or a module with its dots.
        arguments: words of its command line, which may hold templates. An option is one word,
            `--group={{ params.group }}`, so that a value from a form can never become an option of its own; one whose
            value is empty is left out.
    """

    name: str
    job: str
    arguments: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """What Python runs."""
        return self.job if "." in self.job else f"jobs.{self.job}"

    def argv(self, place: Place) -> list[str]:
        """The command line, word by word; no shell reads it.

            partition, ("--group=a", "--source=")   ->   PYTHON -m jobs.partition --home HOME --conf CONF --group=a

        Args:
            place: the installation.
        """
        given = [
            word
            for word in self.arguments
            if word and not (word.startswith("--") and word.endswith("="))
        ]
        places = ["--home", str(place.home), "--conf", str(place.conf)]
        return [str(place.python), "-m", self.module, *places, *given]


def summary_of(lines: Sequence[str]) -> dict[str, Any]:
    """The summary that a job printed: its last line that is a JSON object; {} when there is none.

    Args:
        lines: the last lines of its output, in order.
    """
    for line in reversed(lines):
        if line.startswith("{"):
            try:
                return dict(json.loads(line))
            except ValueError:
                continue
    return {}


_FINAL = {
    2: "wrong settings",
    3: "data below what its contract promises",
    4: "taken over by another process",
}
_KEPT_LINES = 50


class JobOperator(BaseOperator):
    """A task that runs `python -m jobs.NAME`, or another module, and hands on the summary that the job prints last.

        exit code   the task
        0           succeeds
        2, 3, 4     fails for good: settings, data or another owner; trying again cannot help
        others      fails the attempt, which Airflow repeats as often as `retries` says (75: it may help; 1: a crash)

    Args:
        task: the job and its arguments, in which templates may stand.
        **kwargs: what Airflow's operators take.
    """

    template_fields = ("arguments",)
    operator_extra_links = (ReportLink(), PageLink())

    def __init__(self, *, task: Task, **kwargs: Any) -> None:
        super().__init__(task_id=task.name, **kwargs)
        self.job = task.job
        self.arguments = list(task.arguments)
        self.summary: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the job to its end.

        Args:
            context: of the run, as Airflow gives it.

        Returns:
            The job's summary; the event of each outlet carries it too.

        Raises:
            AirflowFailException: the job failed for good, there is no home folder, or the run has a value that the form
                does not have.
            AirflowException: it failed, and another attempt may help.
        """
        _refuse_unknown(context)
        try:
            place = find_place()
        except ConfigError as error:
            raise AirflowFailException(str(error)) from None
        task = Task(
            name=self.task_id, job=self.job, arguments=tuple(map(str, self.arguments))
        )
        environment = {**job_environment(os.environ), PARENT_VARIABLE: parent(context)}
        code, lines = self._run(task.argv(place), str(place.root), environment)
        last = redacted(lines[-1]) if lines else "no output"
        # Also of one that failed: a day that breaks its contract has its report.
        summary = self.summary = summary_of(lines)
        failure = (
            f"{_FINAL.get(code, f'ended with code {code}')}: {last}" if code else ""
        )
        context["ti"].xcom_push(key=NOTE, value=line_of(summary, failure))
        if code:
            raised = AirflowFailException if code in _FINAL else AirflowException
            raise raised(f"{task.module}: {failure}")
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = summary
        return summary

    def on_kill(self) -> None:
        """Ends the job and what it started, but no stream: those live in sessions of their own."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)

    def _run(
        self, argv: list[str], cwd: str, environment: Mapping[str, str]
    ) -> tuple[int, list[str]]:
        self.log.info("%s", " ".join(argv))
        lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process = subprocess.Popen(  # noqa: S603 - words from a Task, never a shell
            argv,
            cwd=cwd,
            env=environment,
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
        return process.returncode, list(lines)


def _refuse_unknown(context: Mapping[str, Any]) -> None:
    """Airflow takes any further value of a run and hands it to nobody: a name that was mistyped would pass unseen."""
    run, dag = context["dag_run"], context["dag"]
    unknown = sorted(set(run.conf or {}) - set(dag.params))
    if unknown:
        named, has = ", ".join(map(repr, unknown)), ", ".join(sorted(dag.params))
        said = f"DAG {dag.dag_id} has no parameter {named} (it has: {has or 'none'})"
        context["ti"].xcom_push(key=NOTE, value=said)
        raise AirflowFailException(said)


def job_task(name: str, job: str, *arguments: str, **options: Any) -> JobOperator:
    """A task of the present DAG that runs a job with these arguments (templates may stand in them).

    Args:
        name: The task's id.
        job: The program, a file of `jobs/`, or a module with its dots.
        *arguments: Words of its command line; home and conf are added.
        **options: What Airflow's operators take: `outlets`, `retries`, `execution_timeout`, ...
    """
    return JobOperator(task=Task(name=name, job=job, arguments=arguments), **options)


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
