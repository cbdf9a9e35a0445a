"""How a task describes itself to its job, which tells of lineage: the job cannot ask Airflow."""

import json
from collections.abc import Mapping
from typing import Any

from airflow.sdk import conf


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
