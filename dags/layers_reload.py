"""Spreads layers over the newest regions of their group, and tells the streams: begins by itself after `prepartition`.

First each layer whose group has newer regions becomes a new version of its table, the same features by the new regions;
then every stream's log gets a row from which on that version counts. Answers stay the same. Repeated, or after a run
that was killed, it does what is left; so it does not matter how many partitionings one run answers to.
"""

from st_common.airflow.assets import LAYERS, REGIONS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.operator import job_task

with fairway_dag(
    "layers_reload",
    doc=__doc__,
    tags=("layer", "batch"),
    schedule=[REGIONS],
) as dag:
    job_task("spread", "load_layer", "--spread", outlets=[LAYERS])
