"""Loads static layers (roads, parks, buildings, ...) from OpenStreetMap or any other file of features.

Each layer becomes a Delta table partitioned by the regions of its group, by a task of its own: where one fails, the
others are loaded. Loading a layer again replaces it in one step: readers and running queries see the old version or the
new one. Which tags make which kind is set in `conf/layers.toml`. Then all groups of regions that have thresholds are
kept between them, for the layers may have filled some.
"""

from airflow.providers.standard.operators.empty import EmptyOperator

from st_common.airflow.assets import LAYERS, REGIONS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.mapped import LAYERS as FIELD
from st_common.airflow.mapped import layers
from st_common.airflow.operator import JobOperator
from st_common.programs import LOAD_LAYER, PARTITION

ASKED = [
    one.name for one in LOAD_LAYER.parameters if one.name not in ("layer", "kinds")
]

with fairway_dag(
    "osm_static_load",
    doc=__doc__,
    tags=("layer", "batch"),
    params={"layers": FIELD, **form_of(LOAD_LAYER, *ASKED)},
) as dag:
    load = JobOperator.partial(
        task_id="load_layer",
        job="load_layer",
        arguments=words_of(LOAD_LAYER, *ASKED),
        engine="{{ params.engine }}",
        outlets=[LAYERS],
        map_index_template="{{ task.label }}",
    ).expand(more=layers())
    rebalance = JobOperator(
        task_id="rebalance",
        job="partition",
        arguments=["--rebalance", *words_of(PARTITION, "engine")],
        engine="{{ params.engine }}",
        outlets=[REGIONS, LAYERS],
        trigger_rule="all_done",
    )
    # A run is as its last tasks are: without one that waits for all layers it would be green where one failed.
    load >> [rebalance, EmptyOperator(task_id="all_loaded")]
