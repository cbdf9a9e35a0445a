"""Maintains everything that is stored, each night and beside running streams.

Small files become large ones, those of closed days are put in order, rows that are older than the retention of their
data contract go, and so do commits and files of old versions that no reader can want any more. A run that is killed
loses nothing: the next one does the rest.
"""

from airflow.sdk import Param

from st_common.airflow.dag import fairway_dag
from st_common.airflow.operator import job_task

with fairway_dag(
    "maintenance",
    doc=__doc__,
    tags=("history", "batch"),
    schedule="30 2 * * *",
    params={
        "purge": Param(
            True,  # noqa: FBT003 - the default
            type="boolean",
            title="Purge",
            description="Take out rows that are older than their retention",
        )
    },
) as dag:
    job_task("maintain", "maintain", "{{ '' if params.purge else '--no-purge' }}")
