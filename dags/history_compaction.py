"""Compacts the history of closed days, each night: many small files become few large ones, the rows stay as they are.

A day is closed when the clock of every job that writes it has passed its end; an open day is never touched, so a
running stream never meets this job.
"""

from airflow.sdk import Param

from st_common.airflow.dag import fairway_dag
from st_common.airflow.operator import job_task

with fairway_dag(
    "history_compaction",
    doc=__doc__,
    tags=("history", "batch"),
    schedule="30 2 * * *",
    params={
        "before": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Before",
            description="Only days before this one",
        )
    },
) as dag:
    job_task("compact", "compact_history", "--before={{ params.before or '' }}")
