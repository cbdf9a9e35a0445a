"""Divides space into regions of like load before a stream begins, and stores them as a new version of a group.

- **sample**: Sedona's KD-tree, or its quadtree, over a share of the data, on Spark.
- **elements**: median splits over the first elements of a stream, when it cannot be sampled.
- **thresholds**: the regions that there are; what holds more than the upper one is split, siblings that hold less than
  the lower one are merged.

Layers go over to the new version: the same features by the new regions, told to the streams, so that answers stay the
same. The summary says how evenly the elements spread: all of them for a sample, the rest of the stream for its first
elements. Regions are drawn with their load, by each strategy, in `HOME/reports/regions/GROUP.html`.
"""

from st_common.airflow.assets import LAYERS, REGIONS
from st_common.airflow.dag import fairway_dag
from st_common.airflow.form import form_of, words_of
from st_common.airflow.operator import JobOperator
from st_common.programs import PARTITION

ASKED = [one.name for one in PARTITION.parameters if one.name != "rebalance"]

with fairway_dag(
    "prepartition",
    doc=__doc__,
    tags=("regions", "batch"),
    params=form_of(PARTITION, *ASKED),
) as dag:
    JobOperator(
        task_id="partition",
        job="partition",
        arguments=words_of(PARTITION, *ASKED),
        engine="{{ params.engine }}",
        outlets=[REGIONS, LAYERS],
    )
