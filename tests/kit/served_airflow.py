"""A running Airflow, as tests ask it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.kit.installation import PATIENCE_S, Installation
from tests.kit.local_airflow.rest import Rest
from tests.kit.local_airflow.setup import Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running Airflow and the installation that its DAGs work on.

    Attributes:
        setup: its ports and passwords.
        rest: its REST interface, for `admin`.
        installation: a home with one stream.
        restart: starts what does not live; the names of what was started.
        page_url: where Airflow is told that the live page is; nothing serves it.
    """

    setup: Setup
    rest: Rest
    installation: Installation
    restart: Callable[[], list[str]]
    page_url: str

    def run(self, dag: str, **form: Any) -> str:
        """Triggers a DAG, waits for its end, and gives its state."""
        return self.rest.ended(
            dag, self.rest.trigger(dag, **form), within_s=2 * PATIENCE_S
        )

    def tasks(self, dag: str, run: str) -> dict[str, str]:
        """The states of a run's tasks; of mapped ones each, with its number: watch[0]."""
        path = f"dags/{dag}/dagRuns/{run}/taskInstances"
        tasks = self.rest.get(path)["task_instances"]
        named = ((f"{task['task_id']}[{task['map_index']}]", task) for task in tasks)
        return {name.removesuffix("[-1]"): task["state"] for name, task in named}
