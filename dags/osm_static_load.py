"""Loads one static layer (roads, parks, buildings, ...) from an OpenStreetMap or GeoJSON file.

The layer becomes a Delta table partitioned by the regions of its group. Loading a layer again replaces it in one step:
readers and running queries see the old version or the new one. Which tags make which kind is set in `conf/layers.toml`.
"""

from airflow.sdk import Param

from st_common.airflow.assets import LAYERS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.operator import job_task

KINDS = ["road", "forest", "park", "building", "water", "stop"]

with fairway_dag(
    "osm_static_load",
    doc=__doc__,
    tags=("layer", "batch"),
    params={
        "layer": Param(
            type="string",
            pattern="^[a-z][a-z0-9_-]{0,62}$",
            title="Layer",
            description="Its name",
        ),
        "file": Param(
            type="string",
            pattern="^[^-]",
            title="File",
            description="A file of features on the worker: OpenStreetMap, GeoJSON, CSV, KML, ..",
        ),
        "group": Param(
            "default",
            type="string",
            pattern="^[a-z][a-z0-9_-]{0,62}$",
            title="Group of regions",
        ),
        "kinds": Param(
            [],
            type="array",
            items={"type": "string"},
            examples=KINDS,
            title="Kinds",
            description="None: all",
        ),
        "attribution": Param(
            "",
            type="string",
            maxLength=200,
            title="Attribution",
            description="Whose data it is; none: OpenStreetMap's where the ids of features are its own",
        ),
    },
) as dag:
    job_task(
        "load_layer",
        "load_layer",
        "{{ params.layer }}",
        "{{ params.file }}",
        "--group={{ params.group }}",
        "--kinds={{ params.kinds | join(',') }}",
        "--attribution={{ params.attribution }}",
        outlets=[LAYERS],
    )
