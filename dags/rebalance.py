"""Keeps regions of like load between the thresholds of their group, each hour, also beside running streams.

A group gets thresholds when it is made (`prepartition`, field *Upper threshold*). A region that holds more than the
upper one is split, siblings that together hold less than the lower one are merged; in between nothing changes, and a
group in which nothing does keeps its version. Layers go over to new regions in the same run, and what a run before left
undone is done; streams follow by themselves, and readers see the old regions or the new ones.
"""

from st_common.airflow.assets import LAYERS, REGIONS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import JobOperator
from st_common.programs import PARTITION

with fairway_dag(
    "rebalance",
    doc=__doc__,
    tags=("regions", "batch"),
    schedule="40 * * * *",
    params=form_of(PARTITION, "engine"),
) as dag:
    JobOperator(
        task_id="rebalance",
        job="partition",
        arguments=["--rebalance", *words_of(PARTITION, "engine")],
        engine="{{ params.engine }}",
        outlets=[REGIONS, LAYERS],
    )
