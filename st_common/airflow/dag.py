"""What every DAG of this project has in common."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, AssetOrTimeSchedule

OWNER = "fairway"
BATCHES = "fairway_batches"
"""The pool of what takes minutes and memory: few at once, whatever the number of DAGs."""

TICKS = "fairway_ticks"
"""The pool of what takes seconds and must not wait behind batches."""

_START = datetime(2024, 1, 1, tzinfo=UTC)


def fairway_dag(
    dag_id: str,
    *,
    doc: str | None,
    tags: tuple[str, ...],
    backfill: bool = False,
    pool: str = BATCHES,
    **options: Any,
) -> DAG:
    """A DAG with the project's defaults: no catching up, one run at a time, two retries with growing pauses.

    Args:
        dag_id: the same as the name of its file.
        doc: its text in the Airflow page, Markdown; the file's docstring, whose first line is the DAG's description.
        tags: beside `fairway`, which all carry.
        backfill: a run does the work of its interval, so that a backfill over older ones means something; one of any
            other DAG is refused.
        pool: whose slots its tasks take, one of `conf/pools.json`.
        **options: what Airflow's DAG takes: `schedule` (default: only by hand), `params`, `dagrun_timeout`, ...
    """
    schedule = options.pop("schedule", None)
    return DAG(
        dag_id,
        description=(doc or "").partition("\n")[0],
        doc_md=doc,
        tags=["fairway", *tags],
        start_date=_START,
        catchup=False,
        max_active_runs=1,
        schedule=schedule,
        allowed_run_types=_run_types(schedule, backfill=backfill),
        default_args={
            "owner": OWNER,
            "pool": pool,
            "retries": 2,
            "retry_delay": timedelta(seconds=30),
            "retry_exponential_backoff": True,
        },
        **options,
    )


def _run_types(schedule: Any, *, backfill: bool) -> set[str]:
    """How a run may come about."""
    if isinstance(schedule, list):  # of assets
        return {"manual", "asset_triggered"}
    if schedule is None:
        return {"manual", "asset_materialization"}
    by_assets = (
        {"asset_triggered"} if isinstance(schedule, AssetOrTimeSchedule) else set()
    )
    return {"manual", "scheduled", *by_assets} | ({"backfill"} if backfill else set())
