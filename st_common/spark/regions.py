"""Regions by a tree of Sedona's, which Spark builds from a sample of points."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from st_common.partitioning.kdtree import Split, refined
from st_common.partitioning.tree import split_of

Floats = npt.NDArray[np.float64]
Tree = Literal["kdtree", "quadtree"]

_TRIES = 8
_ROUNDED = 8  # units in the last place
_USUAL = 0.72  # how many leaves Sedona wants to be asked for to give one


def sedona_split(
    spark: SparkSession, sample: DataFrame, regions: int, tree: Tree = "kdtree"
) -> Split | str:
    """The leaves of Sedona's tree over some points, opened at the outer edges; or why there is no such split.

    Sedona gives more or fewer leaves than it is asked for (58 to 67 for 40), so the number to ask for is searched; what
    is still missing then comes of halving the fullest leaves. The result repeats: rows go in by the order of a hash,
    and the tree sees them all.

    Args:
        spark: a session with Sedona's jar.
        sample: points, finite x and y; at least 20 per region.
        regions: how many leaves are wanted.
        tree: `kdtree`, or `quadtree`, whose leaves are halves of halves of space.

    Returns:
        A split of `regions` cells, or fewer where points are identical; else a reason for people.
    """
    ordered = sample.orderBy(F.xxhash64("x", "y"), "x", "y").coalesce(1).cache()
    try:
        leaves = _nearest_count(spark, ordered, regions, tree)
        split = split_of(leaves)
        if split is None:
            return "the leaves of Sedona's tree do not tile"
        if len(split.paths) >= regions:
            return split
        x_y = ordered.toArrow()
        return refined(split, np.column_stack([x_y["x"], x_y["y"]]), regions)
    except (Py4JError, PySparkException) as error:
        return f"Sedona built no tree: {str(error).splitlines()[0]}"
    finally:
        ordered.unpersist()


def _nearest_count(
    spark: SparkSession, points: DataFrame, regions: int, tree: Tree
) -> Floats:
    """The largest tree with no more leaves than wanted; what to ask for is found by rule of three."""
    rdd = _spatial_rdd(spark, points)
    asked = max(1, round(regions * _USUAL))
    leaves_by_request: dict[int, Floats] = {}
    while asked not in leaves_by_request and len(leaves_by_request) < _TRIES:
        leaves_by_request[asked] = leaves = _leaves(rdd, asked, tree)
        step = round(asked * regions / len(leaves)) - asked
        asked = max(1, asked + (step or int(np.sign(regions - len(leaves)))))
    return max(
        leaves_by_request.values(),
        key=lambda leaves: (len(leaves) <= regions, -abs(len(leaves) - regions)),
    )


def _spatial_rdd(spark: SparkSession, points: DataFrame) -> Any:
    from sedona.spark import SedonaContext
    from sedona.spark.utils.structured_adapter import StructuredAdapter

    SedonaContext.create(spark)
    rdd = StructuredAdapter.toSpatialRdd(
        points.select(F.expr("ST_Point(x, y) AS geometry")), "geometry"
    )
    rdd.analyze()
    rdd._srdd.setSampleNumber(points.count())  # noqa: SLF001 - Python's side has a getter only
    return rdd


def _leaves(rdd: Any, asked: int, tree: Tree) -> Floats:
    from sedona.spark.core.enums import GridType

    grid = GridType.KDBTREE if tree == "kdtree" else GridType.QUADTREE
    rdd.spatialPartitioning(grid, asked)
    grids = rdd.getPartitioner().getGrids()
    boxes = np.array(
        [(box.minx, box.miny, box.maxx, box.maxy) for box in grids], dtype=np.float64
    )
    return np.column_stack([_snapped(boxes[:, 0::2]), _snapped(boxes[:, 1::2])])[
        :, [0, 2, 1, 3]
    ]


def _snapped(edges: Floats) -> Floats:
    """Edges of which those that differ by rounding alone are one: a quadtree finds the same edge on several ways."""
    values, where = np.unique(edges, return_inverse=True)
    rounding = _ROUNDED * np.spacing(np.abs(values).max())
    begins = np.concatenate([[True], np.diff(values) > rounding])
    one: Floats = values[begins][np.cumsum(begins) - 1]
    return one[where].reshape(edges.shape)
