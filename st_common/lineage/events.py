"""Runs of jobs as events of OpenLineage: one when a run begins, one when it ends.

START      now            jobs.maintain, run 0198..    what is known before: of a stream its log and its tables
COMPLETE   an hour later  the same                     what was read and written
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from openlineage.client.event_v2 import Job, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    error_message_run,
    job_type_job,
    parent_run,
)
from openlineage.client.serde import Serde
from openlineage.client.uuid import generate_new_uuid, generate_static_uuid

from st_common.config.environment import PARENT_VARIABLE
from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.installed import own_version
from st_common.lineage.datasets import inputs_of, outputs_of
from st_common.observed import Observed

set_producer(f"urn:fairway:{own_version()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRun:
    """One run of a job, as all of its events name it.

    Attributes:
        namespace: of the job.
        job: its name: `maintain`, `run_stream.taxis`.
        is_stream: it follows a stream until somebody stops it, and is no batch.
        run_id: a UUID of its own.
        parent: the task of Airflow that started it, as `FAIRWAY_LINEAGE_PARENT` describes it; "" for none.
    """

    namespace: str
    job: str
    is_stream: bool
    run_id: str
    parent: str = ""


def new_run_id() -> str:
    """A run id that nobody else has."""
    return str(generate_new_uuid())


def event_of(
    home: Home,
    run: ToldRun,
    state: str,
    seen: Observed,
    *,
    at_us: int,
    error: str = "",
) -> dict[str, Any]:
    """An event of a run, as JSON values.

    Args:
        home: the home folder, by which tables have their contracts.
        run: the run.
        state: `START`, `COMPLETE`, `FAIL` or `ABORT`.
        seen: what it reads and writes, as far as it is known.
        at_us: now, us UTC.
        error: why it failed, without secrets; "" for nothing.
    """
    event = RunEvent(
        eventTime=datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(),
        eventType=RunState[state],
        run=Run(run.run_id, facets=_run_facets(run, error)),
        job=Job(run.namespace, run.job, facets=_job_facets(run)),
        inputs=inputs_of(home, seen),
        outputs=outputs_of(home, seen),
    )
    return Serde.to_dict(event)


def _run_facets(run: ToldRun, error: str) -> dict[str, RunFacet]:
    facets: dict[str, RunFacet] = {}
    if run.parent:
        facets["parent"] = parent_facet(run.parent)
    if error:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "PYTHON")
    return facets


def _job_facets(run: ToldRun) -> dict[str, JobFacet]:
    kind = job_type_job.JobTypeJobFacet(
        processingType="STREAMING" if run.is_stream else "BATCH",
        integration="FAIRWAY",
        jobType="JOB",
    )
    return {"jobType": kind}


# Airflow's provider for OpenLineage makes run ids out of what a task is called and when it is due. The ids here are
# made alike, so where that provider tells of a DAG's run, the job's run hangs below its task.


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
