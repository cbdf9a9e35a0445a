"""Maintains everything that is stored, each night and beside running streams.

First the snapshots that are due are taken and the table `latest` brought up to date: an engine that runs does that
itself, so this is for streams that do not run. Then small files become large ones, those of closed days are put in
order, rows that are older than the retention of their data contract go, and so do commits and files of old versions
that no reader can want any more. A run that is killed loses nothing: the next one does the rest.
"""

from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import job_task
from st_common.programs import MAINTAIN

with fairway_dag(
    "maintenance",
    doc=__doc__,
    tags=("history", "batch"),
    schedule="30 2 * * *",
    params=form_of(MAINTAIN, "purge", "engine"),
) as dag:
    snapshot = job_task("snapshot", "maintain", "--levels")
    snapshot >> job_task(
        "maintain",
        "maintain",
        *words_of(MAINTAIN, "purge", "engine"),
        trigger_rule="all_done",
    )
