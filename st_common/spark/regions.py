"""Regions by Sedona's KDB tree, which Spark builds from a sample of points."""

from typing import Any

import numpy as np
import numpy.typing as npt
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from st_common.partition.kdtree import Split, refined
from st_common.partition.sample import shortage
from st_common.partition.tree import split_of

Floats = npt.NDArray[np.float64]

_TRIES = 8
_USUAL = 0.72  # how many leaves Sedona wants to be asked for to give one


def sedona_split(spark: SparkSession, points: Floats, regions: int) -> Split | str:
    """The leaves of Sedona's KDB tree over some points, opened at the outer edges; or why there is no such split.

    Sedona gives more or fewer leaves than it is asked for (58 to 67 for 40), so the number to ask for is searched; what
    is still missing then comes of halving the fullest leaves. The result repeats: rows go in by the order of a hash,
    and the tree sees them all.

    Args:
        spark: a session with Sedona's jar.
        points: float64[n, 2], finite; at least 20 per region.
        regions: how many leaves are wanted.

    Returns:
        A split of `regions` cells, or fewer where points are identical; else a reason for people.
    """
    if too_few := shortage(points, regions):
        return too_few
    try:
        leaves = _nearest_count(spark, points, regions)
    except (Py4JError, PySparkException) as error:
        return f"Sedona built no tree: {str(error).splitlines()[0]}"
    split = split_of(leaves)
    return (
        "the leaves of Sedona's tree do not tile"
        if split is None
        else refined(split, points, regions)
    )


def _nearest_count(spark: SparkSession, points: Floats, regions: int) -> Floats:
    """The largest tree with no more leaves than wanted; what to ask for is found by rule of three."""
    rdd = _spatial_rdd(spark, points)
    asked = max(1, round(regions * _USUAL))
    leaves_by_request: dict[int, Floats] = {}
    while asked not in leaves_by_request and len(leaves_by_request) < _TRIES:
        leaves_by_request[asked] = leaves = _leaves(rdd, asked)
        step = round(asked * regions / len(leaves)) - asked
        asked = max(1, asked + (step or int(np.sign(regions - len(leaves)))))
    return max(
        leaves_by_request.values(),
        key=lambda leaves: (len(leaves) <= regions, -abs(len(leaves) - regions)),
    )


def _spatial_rdd(spark: SparkSession, points: Floats) -> Any:
    from sedona.spark import SedonaContext
    from sedona.spark.utils.structured_adapter import StructuredAdapter

    SedonaContext.create(spark)
    frame = spark.createDataFrame(
        [(float(x), float(y)) for x, y in points], "x double, y double"
    )
    frame = frame.orderBy(F.xxhash64("x", "y"), "x", "y").coalesce(1).cache()
    rdd = StructuredAdapter.toSpatialRdd(
        frame.select(F.expr("ST_Point(x, y) AS geometry")), "geometry"
    )
    rdd.analyze()
    rdd._srdd.setSampleNumber(len(points))  # noqa: SLF001 - Python's side has a getter only
    return rdd


def _leaves(rdd: Any, asked: int) -> Floats:
    from sedona.spark.core.enums import GridType

    rdd.spatialPartitioning(GridType.KDBTREE, asked)
    grids = rdd.getPartitioner().getGrids()
    return np.array(
        [(box.minx, box.miny, box.maxx, box.maxy) for box in grids], dtype=np.float64
    )
