"""Keeps the streams of `conf/streams.toml` as they should be: a run looks, acts, and watches until there is more to do.

A stream is no task: it runs in a process of its own and outlives this DAG, its run and Airflow itself. The task `tick`
starts what should run and does not, restarts what is dead or stuck, stops what should not run, and gives up on what
crashes again and again. Then a task for each stream waits, without a worker, until something must be done: a look each
twenty seconds by the triggerer finds that, all of them end, and the next run does it. A run lasts an hour at most.

A task of a stream whose condition became worse is red, and with it the run; all alerts are in `HOME/alerts.jsonl`.
While `fairway serve` or `fairway supervise` looks after the home, this DAG only watches: leave it paused then.

To let a stream that was given up start again, trigger this DAG with its name in `retry`; a delivery's name there is
`deliveries/NAME`. What runs by hand looks once and does not wait; the run that watches ends, and makes room for it.
"""

from datetime import timedelta

from st_common.airflow.dag import TICKS, fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import JobOperator
from st_common.airflow.watching import WatchOperator, wards
from st_common.programs import SUPERVISE

with fairway_dag(
    "stream_supervisor",
    doc=__doc__,
    tags=("stream", "operations"),
    schedule="@continuous",
    pool=TICKS,
    params=form_of(SUPERVISE, "retry"),
) as dag:
    tick = JobOperator(
        task_id="tick",
        job="st_common.processes.supervise",
        arguments=words_of(SUPERVISE, "retry"),
        # A run that fails is followed by the next one at once: what is wrong with settings waits here to be mended.
        may_pass=True,
        retries=10,
        retry_delay=timedelta(minutes=1),
        retry_exponential_backoff=False,
        execution_timeout=timedelta(minutes=5),
    )
    WatchOperator.partial(
        task_id="watch",
        summary=tick.output,
        # Only for Airflow's own failures: it fails a task that goes on before it has seen that its worker has left.
        retries=1,
        retry_delay=timedelta(seconds=5),
        map_index_template="{{ task.ward }}",
    ).expand(ward=wards(tick.output))
