"""Processes closed days again, in the order of their fixes' times, late ones too, into `visits`.

Each night, and as soon as late fixes have come for a day that was processed: the days that are due, by a task for each
stream. Due are days that closed since, and those that other fixes, settings or statements belong to by now. The task
`plan` says which, and which streams are left out because a day is open. The same as the engines' step over a day that
is closed, beside streams that run; `changes` stays as it is, and nothing is delivered.

A backfill over older days (*Trigger, Backfill*, or `POST /api/v2/backfills`) processes each of them; doing a day again
writes the same rows. A run by hand may say another interval: the whole days that it touches are processed.
"""

from airflow.sdk import AssetOrTimeSchedule, CronDataIntervalTimetable

from st_common.airflow.assets import LATE
from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.mapped import runs
from st_common.airflow.operator import JobOperator
from st_common.programs import REPROCESS

# The interval of a backfill's run begins on the day that it is about, and ends on the next one.
FROM = "{{ params.from_ or (data_interval_start | ds if dag_run.run_type == 'backfill' else '') }}"
TO = "{{ params.to or (data_interval_end | ds if dag_run.run_type == 'backfill' else '') }}"

with fairway_dag(
    "reprocess",
    doc=__doc__,
    tags=("history", "batch"),
    backfill=True,
    # At two, so that the day is closed, and `dq_report` finds what comes of it.
    schedule=AssetOrTimeSchedule(
        timetable=CronDataIntervalTimetable("0 2 * * *", timezone="UTC"), assets=[LATE]
    ),
    params=form_of(REPROCESS, "stream", "from", "to", "wait", "engine"),
) as dag:
    plan = JobOperator(
        task_id="plan",
        job="reprocess",
        arguments=[
            "--plan",
            *words_of(REPROCESS, "stream", "wait", "engine"),
            f"--from={FROM}",
            f"--to={TO}",
        ],
    )
    JobOperator.partial(
        task_id="reprocess",
        job="reprocess",
        arguments=words_of(REPROCESS, "engine"),
        map_index_template="{{ task.label }}",
    ).expand_kwargs(runs(plan.output))
