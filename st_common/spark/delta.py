"""Tables of Delta on Spark: a stream's fixes read with pruning, rows put into the place of others in one commit.

    positions   event_date = 2024-05-01, event_ts, segment   ->  the files of a day that can hold such fixes
    visits      replaceWhere event_date = DATE'2024-05-01'   ->  one commit by delta-spark, under the table's lock

Tables are made of their contracts by `tables.create`, whoever writes them later (docs/adr/0006).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import Contract
from st_common.engine.statements import time_of
from st_common.history.stored import archived_end
from st_common.position import segment_of
from st_common.spark.causes import cause_of
from st_common.spark.session import configured
from st_common.tables.shape import fit

_DELTA = "delta"
_IN_TASKS = {"spark.sql.execution.arrow.localRelationThreshold": "0"}
"""Rows of the driver go to tasks as Arrow; few ones would be in the plan, and each of its rules look at them all."""


def fixes_between(
    spark: SparkSession,
    home: Home,
    stream: str,
    columns: tuple[str, ...],
    *,
    since_us: int,
    until_us: int,
) -> DataFrame:
    """The archived fixes of an interval of event time, those that were filtered, too; as `history.stored.fixes` reads.

    Files of other days, and those whose statistics say that they hold none of these times, are not read.

    Args:
        spark: a session with Delta.
        home: where the table of positions lies.
        stream: whose.
        columns: of the table, to be given behind `segment` and `row`.
        since_us: the beginning of the interval, us UTC.
        until_us: the time to stop before.
    """
    path = home.table("positions", stream).resolve()
    first, last = (time_of(us).date() for us in (since_us, until_us - 1))
    begin, end = (time_of(us).isoformat() for us in (since_us, until_us))
    archived = segment_of(archived_end(home, stream))  # it is where a segment begins
    frame = spark.read.format(_DELTA).load(str(path))
    return frame.where(
        f"event_date BETWEEN DATE'{first}' AND DATE'{last}'"
        f" AND event_ts >= TIMESTAMP'{begin}' AND event_ts < TIMESTAMP'{end}' AND segment < {archived}"
    ).select(*(F.col(f"`{name}`") for name in ("segment", "row", *columns)))


def replace(
    rows: DataFrame,
    path: Path,
    contract: Contract,
    *,
    app: str,
    predicate: str | None = None,
) -> None:
    """Puts rows into the place of all rows of a table, or of some, in one commit by delta-spark, which is durable then.

    Call it inside `locked(path)`.

    Args:
        rows: as the contract's columns, in its order.
        path: the table's folder; the table is made when it is absent.
        contract: of the table.
        app: the name of the app transaction of the commit.
        predicate: which rows are replaced, as SQL of Spark; all of `rows` must keep it. None: all.

    Raises:
        ContractError: the table is not what the contract says.
        FairwayError: what a task raised; of others the error is Spark's own.
    """
    tables.create(path, contract)
    writer = (
        rows.write.format(_DELTA)
        .mode("overwrite")
        .option("txnAppId", app)
        .option("txnVersion", (tables.version(path) or 0) + 1)
    )
    if predicate is not None:
        writer = writer.option("replaceWhere", predicate)
    try:
        writer.save(str(path.absolute()))
    except PySparkException as error:
        raise cause_of(error) from error
    tables.settle(path)


@dataclass(frozen=True)
class ReplaceOnSpark:
    """Replaces rows of a table as `tables.replace` does, by a commit of delta-spark.

    Args:
        spark_of: gives a session with Delta.
        app: whose commits they are, as the names of app transactions begin.
    """

    spark_of: Callable[[], SparkSession]
    app: str

    def __call__(
        self, path: Path, data: pa.Table, contract: Contract, *, predicate: str
    ) -> None:
        """Puts rows into the place of those that keep a predicate; see `tables.replace` and `replace`."""
        spark, rows = self.spark_of(), fit(data, contract)
        told = f"{path.name}: {path.parent.name} where {predicate}, one commit"
        spark.sparkContext.setJobDescription(told)
        with configured(spark, _IN_TASKS):
            frame = spark.createDataFrame(rows, from_arrow_schema(rows.schema))
        app = f"{self.app} {path.name}"
        with tables.locked(path):
            replace(frame.coalesce(1), path, contract, app=app, predicate=predicate)
