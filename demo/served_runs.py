"""Runs DAGs as a person does: on a local Airflow, by its REST interface."""

from dataclasses import dataclass
from typing import Any

from airflow_runs import DemoError

from tests.kit.local_airflow.rest import Rest

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A local Airflow as a place to run DAGs; `page` is where a person would look."""

    rest: Rest

    def run(self, dag: str, **form: Any) -> None:
        """Triggers a DAG with the values of its form and waits for its end.

        Raises:
            DemoError: it failed; the message says where to look.
            TransientError: Airflow refuses, or it takes too long.
        """
        run = self.rest.trigger(dag, **form)
        state = self.rest.ended(dag, run, within_s=PATIENCE_S)
        if state != "success":
            where = f"{self.rest.url}/dags/{dag}/runs/{run}"
            raise DemoError(f"{dag} ended as {state}: see {where}")
