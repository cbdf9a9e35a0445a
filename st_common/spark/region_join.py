"""The join of stored fixes with a layer on Spark: one task for each region, and nothing between them (SPEC B2)."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.region_join import PAIRS, RegionJoin, cells_of, joined_in
from st_common.operations.standalone import check_master
from st_common.spark.causes import cause_of
from st_common.spark.session import session

_FOLDER = "join"
"""Of a stream's folder that with what Spark prints."""


def joined_on_spark(spark: SparkSession, join: RegionJoin) -> DataFrame:
    """The pairs of a join, in no order; see `engine.region_join`.

    Each region in which fixes are stored is a partition. Its task reads the region's fixes and features itself, so the
    physical plan has no exchange:

        MapInArrow joined_in
        +- Range (0, regions)

    Args:
        spark: a session, whose workers reach the home folder.
        join: what is joined.

    Raises:
        QueryError: nothing of the stream is archived. What a task cannot read fails when the rows are asked for.
    """
    cells = cells_of(join)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from joined_in(join, cells[number]).to_batches()

    numbers = spark.range(0, len(cells), 1, max(len(cells), 1))
    return numbers.mapInArrow(work, from_arrow_schema(PAIRS))


def pairs_on_spark(stream: StreamSettings, join: RegionJoin) -> pa.Table:
    """The pairs of a join, found in a session of its own where the stream runs on Spark; rows of `PAIRS`, in no order.

    Args:
        stream: its settings say where Spark runs.
        join: what is joined.

    Raises:
        ConfigError: Java or the jars are missing.
        QueryError: nothing of the stream is archived.
        LayerError: the layer cannot be read.
    """
    check_master(stream.name, stream.spark)
    log = Home(join.home).stream(stream.name) / _FOLDER / "spark.log"
    name = f"fairway-join-{stream.name}-{join.layer}"
    spark = session(name, place=stream.spark, log_file=log, extended=False)
    try:
        return joined_on_spark(spark, join).toArrow().cast(PAIRS)
    except PySparkException as error:
        raise cause_of(error) from error
    finally:
        spark.stop()
