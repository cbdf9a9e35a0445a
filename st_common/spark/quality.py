"""Closed days checked on Spark: rules judged by Great Expectations on DataFrames, measures taken by tasks.

    a table, by Delta, pruned by day  -- a batch of Great Expectations -->  kept or broken, counts, three examples
                                      -- one task with all rows -------->  the measures of a stream's day
    findings                          -- one commit by delta-spark ----->  the table of results

Rows stay where tasks are; what comes to the driver is what stands in the report.
"""

import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import Contract, Rule
from st_common.contracts.judging import (
    COUNTED,
    EXAMPLES,
    FOUND,
    Judged,
    batches,
    broken_rows,
    first_of,
    results_of,
    unmeasured,
)
from st_common.errors import FairwayError
from st_common.observed import note_read
from st_common.spark.causes import cause_of
from st_common.spark.delta import ReplaceOnSpark
from st_common.spark.session import configured, job_session
from st_common.tables.shape import gained

Filters = list[tuple[str, str, Any]]
_T = TypeVar("_T")
_COMPARE: dict[str, Callable[[Column, Any], Column]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SETTINGS = {
    # So that a contract's SQL is read as DuckDB reads it: quotes, backslashes, and whose day a date is.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
}
_LEFT_BEHIND = "tmp_view"  # by Great Expectations, of each SQL rule
_TIMES = "times"
_APP = "quality"


@contextmanager
def spark_engine(home: Home) -> Iterator["SparkEngine"]:
    """The engine in a job's session, for as long as the block runs; a session that was there is left as it was.

    Raises:
        ConfigError: there is no Java or no jars, or a session that exists lacks Delta or Sedona.
    """
    with (
        job_session(home, "fairway quality") as spark,
        configured(spark, _SETTINGS),
    ):
        try:
            yield SparkEngine(spark, batches("spark"))
        finally:
            spark.catalog.dropTempView(_LEFT_BEHIND)
            spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Reads tables as DataFrames; an `Engine` of `quality.engines`.

    Attributes:
        spark: a session with Delta, whose workers reach the home folder.
        batches: what makes batches of DataFrames; see `judging.batches`.
    """

    spark: SparkSession
    batches: Any

    def rows(
        self, path: Path, contract: Contract, filters: Filters, label: str
    ) -> "FrameRows":
        """Rows of a table; see `Engine`."""
        frame = self._frame(path, filters, label, contract)
        return FrameRows(frame, self.batches)

    def each_part(
        self,
        path: Path,
        columns: Sequence[str],
        filters: Filters,
        work: Callable[[pa.Table], _T],
        *,
        label: str,
        whole: bool = False,
    ) -> list[_T]:
        """What a function gives for the rows of each task, or for all in one; see `Engine`."""
        stored = tables.schema(path)
        assert stored is not None  # noqa: S101 - its caller has looked
        schema = pa.schema([stored.field(name) for name in columns])
        frame = self._frame(path, filters, label).select(*columns)
        if whole:
            frame = frame.repartition(1)
        try:
            told = frame.mapInArrow(_telling(work, schema), "told binary").collect()
        except PySparkException as error:
            raise cause_of(error) from error
        done: list[Any] = [
            pickle.loads(row["told"])  # noqa: S301 - of our own tasks
            for row in told
        ]
        for each in done:
            if isinstance(each, FairwayError):
                raise each
        return done or [work(schema.empty_table())]

    def replace(
        self, path: Path, rows: pa.Table, contract: Contract, *, predicate: str
    ) -> None:
        """Puts rows in the place of others, by delta-spark; see `Engine`."""
        put = ReplaceOnSpark(lambda: self.spark, _APP)
        put(path, rows, contract, predicate=predicate)

    def _frame(
        self,
        path: Path,
        filters: Filters,
        label: str,
        contract: Contract | None = None,
    ) -> DataFrame:
        bounds = " and ".join(" ".join(map(str, each)) for each in filters)
        self._say(f"{label}: {bounds}" if bounds else label)
        version = tables.version(path)
        note_read(path, version)
        reader = self.spark.read.format("delta").option("versionAsOf", version or 0)
        frame = reader.load(str(path.absolute()))
        stored = tables.schema(path)
        if contract is not None and stored is not None:
            names = {field.name for field in gained(stored, contract)}
            for column in contract.columns:
                if column.name in names:
                    null = F.lit(None).cast(column.type)
                    frame = frame.withColumn(column.name, null)
        for name, sign, value in filters:
            frame = frame.where(_COMPARE[sign](F.col(name), F.lit(value)))
        for name in contract.partition_by if contract is not None else ():
            if dict(frame.dtypes)[name] == "string":
                # Delta's protocol has no empty text there; delta-rs reads a null, delta-spark what is written.
                named = F.nullif(F.col(name), F.lit(""))
                frame = frame.withColumn(name, named)
        return frame

    def _say(self, what: str) -> None:
        self.spark.sparkContext.setJobDescription(f"quality of {what}")


@dataclass(frozen=True, slots=True)
class FrameRows:
    """Rows of a DataFrame; see `judging.Rows`.

    All rules on columns are judged and counted by one job, keys by one each; a rule in SQL by two, on its own columns,
    for Great Expectations takes as many as 200 of the rows that it finds. Only of broken rules examples are looked for.

    Attributes:
        frame: the rows.
        batches: what makes batches of DataFrames.
    """

    frame: DataFrame
    batches: Any

    def judge(
        self, contract: str, rules: Sequence[Rule]
    ) -> tuple[int, dict[str, Judged]]:
        """See `Rows`."""
        expectations = {rule.name: self._expectation(rule, contract) for rule in rules}
        by_column = [rule for rule in rules if rule.kind != "sql"]
        results = self._results(by_column, expectations)
        for columns in dict.fromkeys(r.columns for r in rules if r.kind == "sql"):
            own = [r for r in rules if r.kind == "sql" and r.columns == columns]
            results |= self._results(own, expectations)
        judged = {
            rule.name: self._judged(rule, expectations[rule.name], results[rule.name])
            for rule in rules
        }
        return self.frame.count(), judged

    def _expectation(self, rule: Rule, contract: str) -> dict[str, Any]:
        """The rule as Great Expectations judges it here: to Spark a NaN lies above all numbers, and in no bounds to us.

        Java's `$` stands before more ends of lines than Python's, unless it is told of one (`(?d)`).
        """
        expectation = rule.expectation(contract)
        kwargs = expectation["kwargs"]
        if rule.kind == "between" and dict(self.frame.dtypes)[kwargs["column"]] in (
            "double",
            "float",
        ):
            kwargs.setdefault("max_value", inf)
        if rule.kind == "pattern":
            kwargs["regex"] = f"(?d){kwargs['regex']}"
        return expectation

    def _results(
        self, rules: Sequence[Rule], expectations: dict[str, Any]
    ) -> dict[str, Any]:
        if not rules:
            return {}
        columns = dict.fromkeys(name for rule in rules for name in rule.columns)
        batch = self._batch(self.frame.select(*columns))
        return results_of(batch, [expectations[rule.name] for rule in rules], COUNTED)

    def _batch(self, frame: DataFrame) -> Any:
        return self.batches.get_batch(batch_parameters={"dataframe": frame})

    def _judged(self, rule: Rule, expectation: dict[str, Any], result: Any) -> Judged:
        if result.success:
            return Judged(passed=True, broken=0.0)
        broken = broken_rows(result)
        if broken is None:
            return unmeasured(result)
        examples = self._examples(rule, expectation)
        return Judged(passed=False, broken=broken, examples=examples)

    def _examples(self, rule: Rule, expectation: dict[str, Any]) -> Sequence[Any]:
        """The first of what breaks a rule, each once."""
        frame = self.frame.select(*rule.columns)
        if rule.kind == "not_null":
            return [None]
        order = [F.col(name).asc_nulls_last() for name in rule.columns]
        if rule.kind == "unique":
            is_there = reduce(
                operator.or_, (F.col(n).isNotNull() for n in rule.columns)
            )
            keys = frame.where(is_there).groupBy(*rule.columns)
            several = keys.agg(F.count("*").alias(_TIMES)).where(F.col(_TIMES) > 1)
            return _listed(several.orderBy(*order).limit(EXAMPLES))
        if rule.kind == "sql":
            query = first_of(expectation["kwargs"]["unexpected_rows_query"])
            return _listed(frame.sparkSession.sql(query, batch=frame))
        values = self._batch(frame.distinct().orderBy(*order))
        result = results_of(values, [expectation], FOUND)[rule.name]
        found: list[Any] = result.result["partial_unexpected_list"]
        return found


def _listed(frame: DataFrame) -> list[Any]:
    """Rows as values of Arrow, whose times say that they are UTC's."""
    rows: list[Any] = frame.toArrow().to_pylist()
    return rows


def _telling(
    work: Callable[[pa.Table], Any], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function over the rows of a task, its result or its error for people packed as one value."""

    def task(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = [part for part in parts if len(part)]
        if not some:
            return
        try:
            done = work(pa.Table.from_batches(some).cast(schema))
        except FairwayError as error:
            done = error
        packed = pa.array([pickle.dumps(done)], pa.binary())
        yield pa.record_batch({"told": packed})

    return task
