"""Checks closed days against their data contracts and writes a report that opens without a network.

Without a day: every closed day that has not been checked. The report is in `HOME/reports/quality/`, the results in the
table `quality`. The run is red when a rule of severity error does not hold; the report is written all the same.
"""

from airflow.sdk import Asset, Param

from st_common.airflow.dag import fairway_dag
from st_common.airflow.operator import job_task

QUALITY = Asset(name="fairway_quality", uri="fairway://home/tables/quality")

with fairway_dag(
    "dq_report",
    doc=__doc__,
    tags=("quality", "batch"),
    schedule="0 3 * * *",
    params={
        "day": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Day",
            description="None: all unchecked",
        )
    },
) as dag:
    job_task(
        "report", "report_quality", "--day={{ params.day or '' }}", outlets=[QUALITY]
    )
