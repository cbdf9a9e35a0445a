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
        "table": Param(
            "",
            type="string",
            title="Table",
            description="Which table of a file, or which file of an archive; none: it has one",
        ),
        "id": Param(
            "",
            type="string",
            title="Column of ids",
            description="Column or property; none: what the format has, else the place in the file",
        ),
        "source_crs": Param(
            "",
            type="string",
            pattern="^(EPSG:[0-9]{1,6})?$",
            title="System of the file",
            description="Of its coordinates, as EPSG:25832; none: as the file says",
        ),
        "x": Param(
            "",
            type="string",
            title="Column of longitudes",
            description="Of CSV; none: it is found",
        ),
        "y": Param(
            "",
            type="string",
            title="Column of latitudes",
            description="Of CSV; none: it is found",
        ),
        "place": Param(
            "",
            type="string",
            title="Column of geometries",
            description="Of CSV, as WKT, EWKT or WKB; none: it is found",
        ),
        "lat_lon": Param(
            default=False,
            type="boolean",
            title="Latitude first",
            description="The file has latitude where longitude should stand",
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
        "--table={{ params.table }}",
        "--id={{ params.id }}",
        "--source-crs={{ params.source_crs }}",
        "--x={{ params.x }}",
        "--y={{ params.y }}",
        "--place={{ params.place }}",
        "{{ '--lat-lon' if params.lat_lon else '' }}",
        outlets=[LAYERS],
    )
