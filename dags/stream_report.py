"""Writes the page of the last day of each stream: objects, answers and changes on a map, at any moment of it.

Each morning, and by hand for one stream. The pages are in `HOME/reports/streams/`, and under *Fairway* in Airflow;
each is one file that needs no network, as `fairway report` writes it.
"""

from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import job_task
from st_common.programs import REPORT_STREAMS

with fairway_dag(
    "stream_report",
    doc=__doc__,
    tags=("stream", "batch"),
    schedule="0 4 * * *",
    params=form_of(REPORT_STREAMS, "stream"),
) as dag:
    module = "st_common.processes.report_streams"
    job_task("draw", module, *words_of(REPORT_STREAMS, "stream"))
