"""The one function of this package."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    DataType,
    FractionalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from st_common.config.stream_values import can_be_attribute, is_of_fixes
from st_common.errors import ConfigError
from st_common.spark.continuous.layers import features_of
from st_common.spark.continuous.prepared import Queries, prepare, stream_settings
from st_common.spark.continuous.processor import changes_of
from st_common.spark.continuous.shard_keys import shard_keys
from st_common.spark.session import ROCKSDB, STATE_STORE

_PARTITIONS = "spark.sql.shuffle.partitions"


def continuous(
    df: DataFrame,
    queries: Queries,
    *,
    object: str,  # noqa: A002 - what the column is called everywhere else
    ts: str,
    x: str,
    y: str,
    gone: str | None = None,
    name: str = "fixes",
    layers: Mapping[str, DataFrame] | None = None,
    shards: int | None = None,
    **options: Any,
) -> DataFrame:
    """The changes of the answers of continuous queries over a streaming or batch DataFrame of fixes.

    Example:
        changes = continuous(
            fixes,
            "REGISTER QUERY centre AS SELECT * FROM fixes INSIDE CIRCLE (-8.61, 41.15, 500 m)",
            object="taxi", ts="time", x="lon", y="lat", lateness_s=10,
        )
        changes.writeStream.format("delta").option("checkpointLocation", ..).start(..)

    Rows of a batch are taken in the order of their times; a batch DataFrame is one batch. What is told does not depend
    on partitions or shards (SPEC X1). Spark's checkpoint has the state; with it a pipeline goes on after a failure as
    Spark's own operators do.

    Args:
        df: a row for each fix. Columns that are not named below are attributes of the queries, as far as they are
            texts, numbers or booleans, and have a name that an attribute may have: what is called as a part of a fix
            (`event_ts`, `x`, ..) or by more than a word without dots is left alone.
        queries: a text of REGISTER QUERY and CREATE AREA statements FROM `name`; or plans and builders by name.
        object: the column of ids; numbers become texts.
        ts: the column of event times, a timestamp; one without a time zone is UTC.
        x: the column of longitudes, in degrees, or of x in the unit of the CRS. `y` likewise.
        y: see `x`.
        gone: a column of booleans that says that an object has left; then it needs no place.
        name: what the queries call the stream.
        layers: a DataFrame for each layer that queries join: `fid`, `geometry` (WKB, or of Sedona), maybe `kind` and
            `tags`; other columns are tags. They are collected, and sent to each worker once.
        shards: into how many parts objects are dealt; None: as many as tasks run at once, or partitions of a shuffle
            (`spark.sql.shuffle.partitions`, which need not be more).
        **options: of the stream, as in `streams.toml`: crs, lateness_s (of no meaning in a batch), silence_s, tick_s,
            max_speed_mps, window_rows, drop_null_island, position_filter.

    Returns:
        A row for each change: position (long; batch and rank), event_ts, fix_ts (timestamps), sign (+1 enters, -1
        leaves, 0 neither), query, query_version, layer_version, object, partner, cause, value (double), fields (JSON).
        For each batch and shard one row more with the cause `account`, no query and sign 0, whose `fields` count what
        came: rows = fixes + rejects, these by reason; late and double ones are among the fixes.

    Raises:
        ConfigError: a column is missing or of another type, an option is wrong, or Spark's state store is another one.
        QueryError: what is wrong with the queries, with its place in the text.
        LayerError: some features of a layer cannot be used.
    """
    spark = df.sparkSession
    _check_store(spark, df)
    count = shards or _usual_shards(spark)
    keys = shard_keys(count, int(spark.conf.get(_PARTITIONS) or count))
    named = {"object": object, "ts": ts, "x": x, "y": y}
    rows, attributes = _read(df, named, gone, filtered="position_filter" in options)
    stream = stream_settings(name, attributes, options)
    if not df.isStreaming:
        # All rows are there, in order: to wait for late ones would keep back the last.
        stream = replace(stream, lateness_s=0.0)
    features = {
        layer: features_of(layer, frame, space=stream.space)
        for layer, frame in (layers or {}).items()
    }
    prepared = prepare(queries, stream, features, shards=count)
    return changes_of(rows, spark.sparkContext.broadcast(prepared), keys)


def _check_store(spark: SparkSession, df: DataFrame) -> None:
    """Makes sure that Spark can keep the state of a stream."""
    if df.isStreaming and spark.conf.get(STATE_STORE, "") != ROCKSDB:
        raise ConfigError(
            "a stream needs Spark's state store on RocksDB",
            hint=f'spark.conf.set("{STATE_STORE}", "{ROCKSDB}")',
        )


def _usual_shards(spark: SparkSession) -> int:
    partitions = int(spark.conf.get(_PARTITIONS) or 1)
    return max(1, min(spark.sparkContext.defaultParallelism, partitions))


def _read(
    df: DataFrame, named: Mapping[str, str], gone: str | None, *, filtered: bool
) -> tuple[DataFrame, dict[str, str]]:
    """The rows with the columns that `judge_columns` takes, and the attributes with their types."""
    types = {field.name: field.dataType for field in df.schema.fields}
    used = {**named} | ({} if gone is None else {"gone": gone})
    for role, column in used.items():
        _check_column(role, column, types)
    attributes = {
        column: kind
        for column, typed in types.items()
        if column not in used.values()
        and can_be_attribute(column)
        and not is_of_fixes(column, filtered=filtered)
        and (kind := _attribute_type(typed))
    }
    flag = sf.expr("false") if gone is None else _column(gone)
    columns = {
        "object": _column(named["object"]).cast("string"),
        "event_ts": _column(named["ts"]),
        "x": _column(named["x"]).cast("double"),
        "y": _column(named["y"]).cast("double"),
        "gone": flag,
        **{name: _column(name).cast(_SPARK[kind]) for name, kind in attributes.items()},
    }
    return df.select(*(made.alias(name) for name, made in columns.items())), attributes


_SPARK = {"string": "string", "double": "double", "long": "long", "bool": "boolean"}
_WANTED: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "object": ((StringType, IntegralType), "a text or a whole number"),
    "ts": ((TimestampType, TimestampNTZType), "a timestamp"),
    "x": ((NumericType,), "a number"),
    "y": ((NumericType,), "a number"),
    "gone": ((BooleanType,), "a boolean"),
}


def _check_column(role: str, column: str, types: Mapping[str, DataType]) -> None:
    if column not in types:
        raise ConfigError(
            f"{role}={column!r}: the DataFrame has no such column",
            hint=f"it has {', '.join(types)}",
        )
    wanted, words = _WANTED[role]
    if not isinstance(types[column], wanted):
        hint = 'such as sf.timestamp_millis("t")' if role == "ts" else "cast it"
        raise ConfigError(
            f"{role}={column!r} is {types[column].simpleString()}, and must be {words}",
            hint=hint,
        )


def _attribute_type(typed: DataType) -> str | None:
    """The type of an attribute; None for those that queries cannot ask."""
    kinds = (
        (StringType, "string"),
        (BooleanType, "bool"),
        (IntegralType, "long"),
        (FractionalType, "double"),
    )
    return next((kind for known, kind in kinds if isinstance(typed, known)), None)


def _column(name: str) -> Column:
    return sf.col(f"`{name}`")
