"""The task of Airflow that started a job, as the parent of the job's run.

Airflow's provider for OpenLineage makes run ids out of what a task is called and when it is due. The ids here are made
alike, so where that provider tells of a DAG's run, the job's run hangs below its task.
"""

import json
from datetime import datetime
from typing import Any

from openlineage.client.facet_v2 import parent_run
from openlineage.client.uuid import generate_static_uuid

from st_common.errors import ConfigError
from st_common.settings import PARENT_VARIABLE


def parent_facet(described: str) -> parent_run.ParentRunFacet:
    """The facet that names the task, and its DAG's run as the root.

    Args:
        described: a JSON object: `namespace` of Airflow's jobs; `dag`, `task`; `instant`, when the run is due (ISO);
            `try_number`, `map_index` of the task, `clear_number` of the DAG's run.

    Raises:
        ConfigError: it is something else.
    """
    try:
        return _facet(json.loads(described))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{PARENT_VARIABLE} does not describe a task: {error!r}",
            hint="only Airflow's tasks set it",
        ) from None


def _facet(task: dict[str, Any]) -> parent_run.ParentRunFacet:
    namespace, dag = str(task["namespace"]), str(task["dag"])
    instant = datetime.fromisoformat(task["instant"])
    name = f"{dag}.{task['task']}"
    own = f"{namespace}.{name}.{task['try_number']}.{task['map_index']}"
    whole = f"{namespace}.{dag}.{task['clear_number']}"
    return parent_run.ParentRunFacet(
        run=parent_run.Run(str(generate_static_uuid(instant, own.encode()))),
        job=parent_run.Job(namespace, name),
        root=parent_run.Root(
            run=parent_run.RootRun(str(generate_static_uuid(instant, whole.encode()))),
            job=parent_run.RootJob(namespace, dag),
        ),
    )
