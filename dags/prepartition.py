"""Divides space into regions of like load before a stream begins, and stores them as a new version of a group.

- **sample**: Sedona's KD-tree over a share of the data.
- **elements**: median splits over the first elements of a stream, when it cannot be sampled.
- **thresholds**: the regions that there are; what holds more than the upper one is split, siblings that hold less than
  the lower one are merged.

Layers go over to the new version by `layers_reload`, which begins when this one has ended. The summary says how evenly
the elements spread: all of them for a sample, the rest of the stream for its first elements. `picture` draws the
regions with their load, by either strategy, into `HOME/reports/regions/GROUP.html`.
"""

from airflow.sdk import Param

from st_common.airflow.assets import REGIONS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.operator import job_task

with fairway_dag(
    "prepartition",
    doc=__doc__,
    tags=("regions", "batch"),
    params={
        "group": Param(
            "default",
            type="string",
            pattern="^[a-z][a-z0-9_-]{0,62}$",
            title="Group of regions",
        ),
        "strategy": Param(
            "sample",
            type="string",
            enum=["sample", "elements", "thresholds"],
            title="Strategy",
        ),
        "upper": Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="Upper threshold",
            description="For thresholds: what holds more is split; none: as the group was made",
        ),
        "lower": Param(
            None,
            type=["null", "number"],
            minimum=0,
            title="Lower threshold",
            description="What holds less is merged; none: a quarter of the upper one",
        ),
        "unit": Param("rows", type="string", enum=["rows", "mb"], title="Their unit"),
        "share": Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            maximum=1,
            title="Share",
            description="Of the data, for sample; none: .002, and at least 300 rows per region",
        ),
        "first": Param(
            10_000,
            type="integer",
            minimum=1,
            title="First n",
            description="Elements of the stream, for elements",
        ),
        "regions": Param(
            40, type="integer", minimum=1, maximum=10_000, title="Regions"
        ),
        "source": Param(
            None,
            type=["null", "string"],
            pattern="^[^-]",
            title="Source",
            description="stream:NAME, layer:NAME or a file on the worker, several with commas; "
            "none: the logs of the group's streams",
        ),
    },
) as dag:
    partition = job_task(
        "partition",
        "partition",
        "{{ params.group }}",
        "--strategy={{ params.strategy }}",
        "--share={{ params.share or '' if params.strategy == 'sample' else '' }}",
        "--first={{ params.first if params.strategy == 'elements' else '' }}",
        "--regions={{ params.regions }}",
        "--upper={{ params.upper or '' }}",
        "--lower={{ '' if params.lower is none else params.lower }}",
        "--unit={{ params.unit }}",
        "--source={{ params.source or '' }}",
        outlets=[REGIONS],
    )
    partition >> job_task("picture", "report_regions", "{{ params.group }}")
