"""Takes the snapshots that are due, every hour, and brings the table `latest` up to date.

An engine that runs takes its snapshots itself; this is for streams that do not run, for a `snapshot_s` that was set
later, and for the rest of a long replay. A snapshot depends on the log alone: whoever comes second finds it taken.
"""

from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import job_task
from st_common.programs import MAINTAIN

with fairway_dag(
    "history_snapshots",
    doc=__doc__,
    tags=("history", "batch"),
    schedule="10 * * * *",
    params=form_of(MAINTAIN, "stream"),
) as dag:
    job_task("snapshot", "maintain", "--levels", *words_of(MAINTAIN, "stream"))
