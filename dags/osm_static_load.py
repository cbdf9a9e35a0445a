"""Loads one static layer (roads, parks, buildings, ...) from OpenStreetMap or any other file of features.

The layer becomes a Delta table partitioned by the regions of its group. Loading a layer again replaces it in one step:
readers and running queries see the old version or the new one. Which tags make which kind is set in `conf/layers.toml`.
Then all groups of regions that have thresholds are kept between them, for the layer may have filled some.
"""

from st_common.airflow.assets import LAYERS, REGIONS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import job_task
from st_common.programs import LOAD_LAYER, PARTITION

ASKED = [one.name for one in LOAD_LAYER.parameters]

with fairway_dag(
    "osm_static_load",
    doc=__doc__,
    tags=("layer", "batch"),
    params=form_of(LOAD_LAYER, *ASKED),
) as dag:
    load = job_task(
        "load_layer", "load_layer", *words_of(LOAD_LAYER, *ASKED), outlets=[LAYERS]
    )
    engine = words_of(PARTITION, "engine")
    load >> job_task(
        "rebalance", "partition", "--rebalance", *engine, outlets=[REGIONS, LAYERS]
    )
