"""Processes yesterday again, each night: its fixes in the order of their times, late ones too, into `visits`.

The same as the engines' step over a day that is closed, beside streams that run; `changes` stays as it is, and nothing
is delivered. A backfill over older days (*Trigger, Backfill*, or `POST /api/v2/backfills`) does the same for each of
them; doing a day again writes the same rows. A stream for which the day is still open is left out, and named in the
summary.
"""

from airflow.sdk import CronDataIntervalTimetable

from st_common.airflow.dag import fairway_dag, stream_param
from st_common.airflow.operator import job_task

with fairway_dag(
    "reprocess",
    doc=__doc__,
    tags=("history", "batch"),
    backfill=True,
    # At two, so that the day is closed, and `dq_report` finds what comes of it. The interval of a run begins on the day
    # that it is about, and ends on the next one.
    schedule=CronDataIntervalTimetable("0 2 * * *", timezone="UTC"),
    params={"stream": stream_param()},
) as dag:
    job_task(
        "reprocess",
        "reprocess",
        "--stream={{ params.stream }}",
        "--from={{ data_interval_start | ds }}",
        "--to={{ data_interval_end | ds }}",
    )
