"""Rows in the place of others, by delta-spark."""

from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from st_common import tables
from st_common.contracts import Contract
from st_common.spark.causes import cause_of


def replace_rows(
    spark: SparkSession,
    rows: DataFrame | pa.Table,
    path: Path,
    contract: Contract,
    *,
    predicate: str | None = None,
    app: str,
) -> None:
    """Puts rows in the place of those of a table that keep a predicate, or of all, in one commit that is durable then.

    The table is made by delta-rs from its contract, as all are, and its lock is held meanwhile (ADR 6).

    Args:
        spark: a session with Delta.
        rows: all of the contract's columns, with its types, in its order.
        path: the table's folder.
        contract: of the table.
        predicate: which rows go, as Spark's SQL; each new row must keep it. None: all go.
        app: the name of the app transaction that the commit carries.

    Raises:
        ContractError: the table differs from the contract.
        FairwayError: a task raised it.
    """
    schema = from_arrow_schema(contract.arrow_schema())
    frame = spark.createDataFrame(rows, schema) if isinstance(rows, pa.Table) else rows
    with tables.locked(path):
        tables.create(path, contract)
        writer = (
            frame.write.format("delta")
            .mode("overwrite")
            .options(**({} if predicate is None else {"replaceWhere": predicate}))
            .option("txnAppId", app)
            .option("txnVersion", (tables.version(path) or 0) + 1)
        )
        try:
            writer.save(str(path.absolute()))
        except PySparkException as error:
            raise cause_of(error) from error
        tables.settle(path)
