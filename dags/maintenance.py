"""Maintains everything that is stored, each night and beside running streams.

First the snapshots that are due are taken and the table `latest` brought up to date, by a task for each stream: an
engine that runs does that itself, so this is for streams that do not run. Then small files become large ones, those of
closed days are put in order, rows that are older than the retention of their data contract go, and so do commits and
files of old versions that no reader can want any more. A run that is killed loses nothing: the next one does the rest.
"""

from airflow.providers.standard.operators.empty import EmptyOperator

from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.mapped import streams
from st_common.airflow.operator import JobOperator
from st_common.programs import MAINTAIN

with fairway_dag(
    "maintenance",
    doc=__doc__,
    tags=("history", "batch"),
    schedule="30 2 * * *",
    params=form_of(MAINTAIN, "purge", "engine"),
) as dag:
    snapshot = JobOperator.partial(
        task_id="snapshot",
        job="maintain",
        arguments=["--levels"],
        map_index_template="{{ task.label }}",
    ).expand(more=streams("--stream="))
    maintain = JobOperator(
        task_id="maintain",
        job="maintain",
        arguments=words_of(MAINTAIN, "purge", "engine"),
        engine="{{ params.engine }}",
        trigger_rule="all_done",
    )
    # A run is as its last tasks are: without one that waits for all streams it would be green where one failed.
    snapshot >> [maintain, EmptyOperator(task_id="all_taken")]
