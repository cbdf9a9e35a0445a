"""Keeps the streams of `conf/streams.toml` as they should be: every minute one look, and what it asks for is done.

A stream is no task: it runs in a process of its own and outlives this DAG, its run and Airflow itself. The tick starts
what should run and does not, restarts what is dead or stuck, stops what should not run, and gives up on what crashes
again and again. A run is red only when a stream's condition became worse in it; all alerts are in `HOME/alerts.jsonl`.

To let a stream that was given up start again, trigger this DAG with its name in `reset`; a delivery's name there is
`deliveries/NAME`.
"""

from datetime import timedelta

from st_common.airflow.alerts import raise_alerts
from st_common.airflow.dag import TICKS, fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import job_task
from st_common.programs import SUPERVISE

with fairway_dag(
    "stream_supervisor",
    doc=__doc__,
    tags=("stream", "operations"),
    schedule="* * * * *",
    pool=TICKS,
    dagrun_timeout=timedelta(minutes=10),
    params=form_of(SUPERVISE, "retry"),
) as dag:
    tick = job_task(
        "tick",
        "st_common.processes.supervise",
        *words_of(SUPERVISE, "retry"),
        retries=0,
        execution_timeout=timedelta(minutes=5),
    )
    raise_alerts(tick.output)
