"""What every DAG of this project has in common."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

OWNER = "fairway"
_START = datetime(2024, 1, 1, tzinfo=UTC)


def fairway_dag(
    dag_id: str, *, doc: str | None, tags: tuple[str, ...], **options: Any
) -> DAG:
    """A DAG with the project's defaults: no catching up, one run at a time, two retries with growing pauses.

    Args:
        dag_id: the same as the name of its file.
        doc: its text in the Airflow page, Markdown; the file's docstring.
        tags: beside `fairway`, which all carry.
        **options: what Airflow's DAG takes: `schedule` (default: only by hand), `params`, `dagrun_timeout`, ...
    """
    return DAG(
        dag_id,
        doc_md=doc,
        tags=["fairway", *tags],
        start_date=_START,
        catchup=False,
        max_active_runs=1,
        schedule=options.pop("schedule", None),
        default_args={
            "owner": OWNER,
            "retries": 2,
            "retry_delay": timedelta(seconds=30),
            "retry_exponential_backoff": True,
        },
        **options,
    )


def stream_param() -> Param:
    """What a form asks for one stream or all: the empty text."""
    return Param(
        "",
        type="string",
        pattern="^([a-z][a-z0-9_-]{0,62})?$",
        title="Stream",
        description="None: all",
    )
