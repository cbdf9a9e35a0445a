"""Draws each stream as it is: a map with its queries and their answers, layers, regions, rejects.

Each morning, and by hand for one stream. The pages are in `HOME/reports/streams/`, and under *Fairway* in Airflow;
they need no network. A run reads all changes of a stream.
"""

from st_common.airflow.dag import fairway_dag, stream_param
from st_common.airflow.operator import job_task

with fairway_dag(
    "stream_report",
    doc=__doc__,
    tags=("stream", "batch"),
    schedule="0 4 * * *",
    params={"stream": stream_param()},
) as dag:
    job_task("draw", "report_streams", "--stream={{ params.stream }}")
