"""Runs DAGs as a person does: on a local Airflow, by its REST interface."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_runs import DagRun, DemoError

from tests.kit.local_airflow.rest import Rest

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A local Airflow as a place to run DAGs; `page` is where a person would look."""

    rest: Rest

    def run(self, dag: str, **form: Any) -> DagRun:
        """Triggers a DAG with the values of its form and waits for its end.

        Raises:
            DemoError: it failed; the message says where to look.
            TransientError: Airflow refuses, or it takes too long.
        """
        started = time.monotonic()
        run = self.rest.trigger(dag, **form)
        state = self.rest.ended(dag, run, within_s=PATIENCE_S)
        if state != "success":
            where = f"{self.rest.url}/dags/{dag}/runs/{run}"
            raise DemoError(f"{dag} ended as {state}: see {where}")
        seconds = time.monotonic() - started
        return DagRun(dag=dag, seconds=seconds, summaries=self._summaries(dag, run))

    def _summaries(self, dag: str, run: str) -> Mapping[str, Any]:
        path = f"dags/{dag}/dagRuns/{run}/taskInstances"
        tasks = [each["task_id"] for each in self.rest.get(path)["task_instances"]]
        return {task: self._summary(f"{path}/{task}") for task in tasks}

    def _summary(self, task: str) -> Any:
        answer = self.rest.call("GET", f"{task}/xcomEntries/return_value")
        return answer.json()["value"] if answer.is_success else None
