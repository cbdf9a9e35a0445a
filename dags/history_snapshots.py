"""Takes the snapshots that are due, every hour, and brings the table `latest` up to date.

An engine that runs takes its snapshots itself; this is for streams that do not run, for a `snapshot_s` that was set
later, and for the rest of a long replay. A snapshot depends on the log alone: whoever comes second finds it taken.
"""

from st_common.airflow.dag import fairway_dag, stream_param
from st_common.airflow.operator import job_task

with fairway_dag(
    "history_snapshots",
    doc=__doc__,
    tags=("history", "batch"),
    schedule="10 * * * *",
    params={"stream": stream_param()},
) as dag:
    job_task("snapshot", "snapshot", "--stream={{ params.stream }}")
