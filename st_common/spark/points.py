"""Points of logs, layers and files as DataFrames: sampled, counted by region and split by Sedona's trees on Spark.

    segments of a log, 16 MB a task   --+
    a layer's table, by Delta         --+-->  part, row, point [x, y]  -->  sample  -->  Sedona's tree  -->  regions
    a file, by one task               --+                              -->  rows of each region, counted by tasks

What a file has that is no point comes along as lines for people.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from st_common.layers.table import live
from st_common.partitioning.balance import rows_per_region
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.sample import Floats, PointSource, known, shortage
from st_common.partitioning.splitting import NOTHING, Chosen, Stage
from st_common.spark.regions import Tree, sedona_split

Batches = Iterable[pa.RecordBatch]
_TREES = {"kdtree": "sedona", "quadtree": "sedona quadtree"}
_POINTS = "part int, row long, point array<double>, line string"
_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("row", pa.int64()),
        ("point", pa.list_(pa.float64())),
        ("line", pa.string()),
    ]
)
_COUNTED = pa.schema([("rows", pa.list_(pa.int64())), ("lines", pa.list_(pa.string()))])
_LUCK = "shiftrightunsigned(xxhash64(part, row), 11) / 9007199254740992D"
"""Of a point, from 0 to 1, the same each time: a larger share contains a smaller one."""


@dataclass(slots=True)
class SparkPoints:
    """Reads sources and splits space on Spark; a `PointEngine` of `partitioning.splitting`.

    Attributes:
        begin: gives a session with Delta and Sedona, whose workers reach the home folder and the files.
        tree: which of Sedona's trees parts a sample.
    """

    begin: Callable[[], SparkSession]
    tree: Tree = "kdtree"

    def split_sample(
        self, sources: Sequence[PointSource], share: float, at_least: int, regions: int
    ) -> Chosen:
        """Regions by Sedona's tree over a sample of which each source has as many; see `PointEngine`."""
        samples = [self._sample(one, share, at_least) for one in sources]
        counts = [frame.count() for frame in samples]
        most = max(counts)
        again = [
            _repeated(frame, most, count)
            for frame, count in zip(samples, counts, strict=True)
            if count
        ]
        if not again:
            return NOTHING
        sample = reduce(DataFrame.union, again).cache()
        try:
            return self._split(sample, sources[0].dimensions, regions)
        finally:
            for frame in (sample, *samples):
                frame.unpersist()

    def _split(self, sample: DataFrame, dimensions: int, regions: int) -> Chosen:
        count = sample.count()
        note = shortage(count, regions)
        if dimensions != 2:
            note = f"its tree has 2 dimensions, the group {dimensions}"
        if not note and regions > 1:
            x_y = sample.select(
                F.col("point")[0].alias("x"), F.col("point")[1].alias("y")
            )
            split = sedona_split(self.begin(), x_y, regions, self.tree)
            if not isinstance(split, str):
                return Chosen(split, count, _TREES[self.tree])
            note = split
        points = _collected(sample, dimensions)
        return Chosen(median_split(points, regions), count, "median", note)

    def first(self, source: PointSource, count: int) -> Floats:
        """The first points of a source, in its order; Spark reads no more parts than it takes."""
        frame = self._frame(source).where("line IS NULL").select("point")
        rows = [row["point"] for row in frame.take(count)]
        return np.array(rows, np.float64).reshape(-1, source.dimensions)

    def sampled(
        self, source: PointSource, share: float, at_least: int
    ) -> tuple[Floats, int]:
        """A share of the points, and how many there are; see `partitioning.sample.sampled`."""
        frame = self._frame(source).where("line IS NULL")
        return _collected(
            self._sample(source, share, at_least), source.dimensions
        ), frame.count()

    def counted(
        self, sources: Sequence[PointSource], regions: Regions, skip: int, stage: Stage
    ) -> tuple[npt.NDArray[np.int64], list[str]]:
        """How many points lie in each region, and lines about what is no point; see `PointEngine`."""

        def work(batches: Batches) -> Iterator[pa.RecordBatch]:
            rows = np.zeros(len(regions.region_id), np.int64)
            lines: list[str] = []
            for batch in batches:  # a list that is null has no numbers
                points = _array(batch.column("point"), regions.dimensions)
                rows += rows_per_region(regions, points)
                lines += batch.column("line").drop_null().to_pylist()
            told = {"rows": [rows.tolist()], "lines": [lines]}
            yield pa.RecordBatch.from_pydict(told, _COUNTED)

        counts = np.zeros(len(regions.region_id), np.int64)
        lines: list[str] = []
        for source in sources:
            frame = self._frame(source)
            if skip:
                frame = _behind(frame, skip)
            told = frame.mapInArrow(work, from_arrow_schema(_COUNTED)).collect()
            counts += sum((np.array(one["rows"], np.int64) for one in told), 0)
            lines += [line for one in told for line in one["lines"]]
            stage("counting", int(counts.sum()))
        return counts, lines

    def _sample(self, source: PointSource, share: float, at_least: int) -> DataFrame:
        """A share of the points, or the luckiest `at_least` where the share gives fewer."""
        frame = (
            self._frame(source).where("line IS NULL").withColumn("luck", F.expr(_LUCK))
        )
        lucky = frame.where(F.col("luck") < share).select("point", "luck").cache()
        if share >= 1 or lucky.count() >= at_least:
            return lucky
        lucky.unpersist()
        return frame.orderBy("luck").limit(at_least).select("point", "luck").cache()

    def _frame(self, source: PointSource) -> DataFrame:
        """All points of a source, and lines about what is none."""
        if source.layer is not None:
            return self._of_layer(*source.layer)
        parts = list(source.parts())

        def work(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from _rows(number, parts[number])

        spark = self.begin()
        spark.sparkContext.setJobDescription(f"points of {source.name}")
        numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
        return numbers.mapInArrow(work, _POINTS)

    def _of_layer(self, path: str, version: int) -> DataFrame:
        """The middles of the boxes of a layer's features, read by Delta."""
        self.begin().sparkContext.setJobDescription(f"points of {path}")
        reader = self.begin().read.format("delta").option("versionAsOf", version)
        rows = reader.load(path)
        if live(Path(path), version) is not None:
            rows = _live(rows)
        return rows.where("home AND NOT isnan(minx)").select(
            F.lit(0).alias("part"),
            F.xxhash64("fid").alias("row"),
            F.expr("array((minx + maxx) / 2, (miny + maxy) / 2)").alias("point"),
            F.lit(None).cast("string").alias("line"),
        )


def _live(rows: DataFrame) -> DataFrame:
    """The rows of a layer's table that count, see `layers.table`."""
    puts = rows.where("put_number > 0").groupBy("fid")
    newest = puts.agg(F.max("put_number").alias("newest"))
    counts = "newest IS NULL OR (put_number = newest AND NOT coalesce(deleted, false))"
    return rows.join(F.broadcast(newest), "fid", "left").where(counts)


@dataclass(slots=True)
class FramePoints(SparkPoints):
    """The same of one source, whose points are the rows of a DataFrame.

    Attributes:
        frame: the columns of `_POINTS`.
    """

    frame: DataFrame | None = None

    def _frame(self, source: PointSource) -> DataFrame:
        assert self.frame is not None  # noqa: S101 - whoever makes it gives it
        return self.frame


def _rows(part: int, source: PointSource) -> Iterator[pa.RecordBatch]:
    """The points of a part of a source, then a row for each line about it."""
    start = 0
    for points in source.read():
        finite = known(points)
        yield _batch(part, np.arange(start, start + len(finite)), finite)
        start += len(finite)
    lines = list(source.left_out())
    nothing = np.empty((0, source.dimensions))
    if lines:
        yield _batch(part, np.arange(len(lines)), nothing, lines)


def _batch(
    part: int, rows: npt.NDArray[np.int64], points: Floats, lines: Sequence[str] = ()
) -> pa.RecordBatch:
    offsets = np.arange(len(points) + 1, dtype=np.int32) * points.shape[1]
    lists = pa.ListArray.from_arrays(offsets, pa.array(points.ravel()))
    columns = [
        pa.array(np.full(len(rows), part, np.int32)),
        pa.array(rows),
        lists if not lines else pa.nulls(len(rows), lists.type),
        pa.array(lines, pa.string()) if lines else pa.nulls(len(rows), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _array(points: pa.Array, dimensions: int) -> Floats:
    values: Floats = points.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(-1, dimensions)


def _collected(frame: DataFrame, dimensions: int) -> Floats:
    """Few points, as an array."""
    points = frame.select("point").toArrow()["point"].combine_chunks()
    return _array(points, dimensions)


def _repeated(frame: DataFrame, most: int, count: int) -> DataFrame:
    """A sample as often as makes it as large as the largest: all of it, and of the last time the luckiest."""
    whole, rest = divmod(most, count)
    times = F.explode(F.array_repeat(F.lit(0), whole)).alias("_")
    again = frame.select("point", times).select("point")
    return again.union(frame.orderBy("luck").limit(rest).select("point"))


def _behind(frame: DataFrame, skip: int) -> DataFrame:
    """All but the first points: those of the part in which these end, behind them, and of parts after; all lines."""
    is_line = F.col("line").isNotNull()
    counts = frame.where(~is_line).groupBy("part").count().collect()
    by_part = {one["part"]: one["count"] for one in counts}
    for part in sorted(by_part):
        if skip < by_part[part]:
            later = (F.col("part") == part) & (F.col("row") >= skip)
            return frame.where((F.col("part") > part) | later | is_line)
        skip -= by_part[part]
    return frame.where(is_line)
