"""Checks closed days against their data contracts, and draws the last day of each stream, as pages without a network.

Scheduled and by hand without a day: every day that is due and has not been checked. A backfill reports the day at which
each of its intervals begins, anew: three days make three reports. The report is in `HOME/reports/quality/`, the results
in the table `quality`. The run is red when a rule of severity error does not hold, and the asset `fairway_quality` is
not told; the report is written all the same.

The pages in `HOME/reports/streams/` show objects, answers and changes on a map at any moment of a stream's last day, as
`fairway streams report` writes them; a task for each stream draws its own.
"""

from airflow.sdk import CronDataIntervalTimetable

from st_common.airflow.assets import QUALITY
from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.mapped import streams
from st_common.airflow.operator import JobOperator
from st_common.programs import REPORT_QUALITY, REPORT_STREAMS

DAY = "{{ params.day or (data_interval_start | ds if dag_run.run_type == 'backfill' else '') }}"

with fairway_dag(
    "dq_report",
    doc=__doc__,
    tags=("quality", "batch"),
    backfill=True,
    schedule=CronDataIntervalTimetable("0 3 * * *", timezone="UTC"),
    params={
        **form_of(REPORT_QUALITY, "day", "engine"),
        **form_of(REPORT_STREAMS, "stream"),
    },
) as dag:
    JobOperator(
        task_id="report",
        job="report_quality",
        arguments=[f"--day={DAY}", *words_of(REPORT_QUALITY, "engine")],
        engine="{{ params.engine }}",
        outlets=[QUALITY],
    )
    JobOperator.partial(
        task_id="draw",
        job="st_common.processes.report_streams",
        map_index_template="{{ task.label }}",
    ).expand(more=streams("--stream="))
