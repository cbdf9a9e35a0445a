"""Processes yesterday again, each night: its fixes in the order of their times, late ones too, into `visits`.

The same as the engines' step over a day that is closed, beside streams that run; `changes` stays as it is, and nothing
is delivered. A backfill over older days (*Trigger, Backfill*, or `POST /api/v2/backfills`) does the same for each of
them; doing a day again writes the same rows. A run by hand may say another interval: the whole days that it touches
are processed. A stream for which one is still open is left out, and named in the summary.
"""

from airflow.sdk import CronDataIntervalTimetable

from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import job_task
from st_common.programs import REPROCESS

with fairway_dag(
    "reprocess",
    doc=__doc__,
    tags=("history", "batch"),
    backfill=True,
    # At two, so that the day is closed, and `dq_report` finds what comes of it. The interval of a run begins on the day
    # that it is about, and ends on the next one.
    schedule=CronDataIntervalTimetable("0 2 * * *", timezone="UTC"),
    params=form_of(REPROCESS, "stream", "from", "to", "engine", known=("from", "to")),
) as dag:
    job_task(
        "reprocess",
        "reprocess",
        *words_of(REPROCESS, "stream", "engine"),
        "--from={{ params.from_ or (data_interval_start | ds) }}",
        "--to={{ params.to or (data_interval_end | ds) }}",
    )
