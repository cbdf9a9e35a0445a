"""A contract's rules checked by Great Expectations, on Arrow columns and without a JVM."""

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa

from st_common.asking import asking
from st_common.contracts import Contract
from st_common.quality.finding import Finding

Reader = Callable[[tuple[str, ...]], pa.Table]
_EXAMPLES = 3
_TYPE = "expect_column_values_to_be_of_type"
_SQL = "unexpected_rows_expectation"
_ROW_WISE = {
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_be_between",
    "expect_column_value_lengths_to_be_between",
    "expect_column_values_to_match_regex",
    "expect_column_values_to_be_in_set",
}
_ALIKE = "rows_alike"
_COUNTED = {"result_format": "COMPLETE", "unexpected_index_column_names": [_ALIKE]}
_MOST_DISTINCT = 100_000


def validate(contract: Contract, read: Reader, *, table: str) -> list[Finding]:
    """Checks every rule of the contract, column group by column group.

    Only the columns of one rule are in memory at a time, as Arrow columns that pandas merely wraps; so a null and a NaN
    stay two things, and a day needs as much memory as its widest rule's columns. A rule on the values of one column is
    checked once per distinct value and counted by rows, for Great Expectations judges value after value in Python.
    Types are not checked here: Delta enforces them, and `contracts.matches` compares the table's schema.

    Args:
        contract: Whose rules.
        read: Gives the rows that are to be checked, with exactly the columns it is asked for.
        table: What the findings call the table.

    Returns:
        A finding per rule, in the contract's order. A rule that could not be measured has not passed.
    """
    columns = {check.name: check.columns for check in contract.checks()}
    rules = [rule for rule in contract.expectations() if rule["type"] != _TYPE]
    findings: dict[str, Finding] = {}
    # Rules on the same columns share one reading of them.
    for group in dict.fromkeys(columns[rule["meta"]["rule"]] for rule in rules):
        rows = read(group)
        own = [rule for rule in rules if columns[rule["meta"]["rule"]] == group]
        distinct = _distinct(rows, own)
        batch, form = (
            batch_of(distinct),
            _COUNTED
            if _ALIKE in distinct.column_names
            else {"result_format": "SUMMARY"},
        )
        findings |= {
            rule["meta"]["rule"]: _finding(
                rule, _result(batch, rule, form), table, len(rows)
            )
            for rule in own
        }
    return [findings[rule["meta"]["rule"]] for rule in rules]


def _distinct(rows: pa.Table, rules: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Each value once and how many rows have it, where the rules need no more and that is much less; else the rows."""
    kinds = {rule["type"] for rule in rules}
    if not kinds <= _ROW_WISE or kinds == {"expect_column_values_to_not_be_null"}:
        return rows
    counts = rows.column(0).value_counts()
    if len(counts) > _MOST_DISTINCT:
        return rows
    return pa.table(
        {rows.column_names[0]: counts.field("values"), _ALIKE: counts.field("counts")}
    )


def batch_of(rows: pa.Table) -> Any:
    """Rows as a batch that Great Expectations validates, in memory."""
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    return _definition().get_batch(batch_parameters={"dataframe": frame})


def _result(batch: Any, rule: Mapping[str, Any], form: Mapping[str, Any]) -> Any:
    from great_expectations.expectations.expectation_configuration import (
        ExpectationConfiguration,
    )

    expectation = ExpectationConfiguration(**rule).to_domain_obj()
    return batch.validate(
        expectation, result_format=_COUNTED if rule["type"] == _SQL else form
    )


def _finding(rule: Mapping[str, Any], result: Any, table: str, rows: int) -> Finding:
    meta, outcome = rule["meta"], result.result
    observed = outcome.get("unexpected_count", outcome.get("observed_value"))
    if observed and outcome.get("unexpected_index_list"):
        observed = sum(each[_ALIKE] for each in outcome["unexpected_index_list"])
    examples = (
        outcome.get("partial_unexpected_list")
        or outcome.get("details", {}).get("unexpected_rows")
        or []
    )
    if observed is None:
        examples = [
            each["exception_message"] for each in _exceptions(result.exception_info)
        ]
    return Finding(
        table=table,
        rule=meta["rule"],
        severity=meta["severity"],
        passed=bool(result.success),
        observed=None if observed is None else float(observed),
        expected=meta["expected"],
        rows=rows,
        details="" if result.success else json.dumps(examples[:_EXAMPLES], default=str),
    )


def _exceptions(info: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The exceptions of a result, which has either one or one per metric."""
    each = [info] if "exception_message" in info else list(info.values())
    return [
        one for one in each if isinstance(one, Mapping) and one.get("raised_exception")
    ]


@cache
def _definition() -> Any:
    """What makes a batch of a frame: one context in memory per process, silent, writing nothing to disk."""
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    _teach_sql()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("rows").add_dataframe_asset("rows")
    return asset.add_batch_definition_whole_dataframe("rows")


def _teach_sql() -> None:
    """Lets Great Expectations run a contract's SQL rules on frames: it has SQL for Spark and databases only."""
    from great_expectations.execution_engine.pandas_execution_engine import (
        PandasExecutionEngine,
    )
    from great_expectations.expectations.metrics.metric_provider import (
        MetricProvider,
        metric_value,
    )

    class _OnFrames(MetricProvider):
        value_keys = ("unexpected_rows_query",)
        domain_keys = ("batch_id", "row_condition", "condition_parser")

    # Their metaclass registers metrics by the names and by the methods that have an engine.
    class RowsThatBreakARule(_OnFrames):
        metric_name = "unexpected_rows_query.table"

        @metric_value(engine=PandasExecutionEngine)
        def _pandas(cls, execution_engine: Any, **given: Any) -> Any:  # noqa: N805
            return _breaking_rows(execution_engine, **given)

    class NumberOfRowsThatBreakARule(_OnFrames):
        metric_name = "unexpected_rows_query.row_count"

        @metric_value(engine=PandasExecutionEngine)
        def _pandas(cls, execution_engine: Any, **given: Any) -> Any:  # noqa: N805
            return _breaking_count(execution_engine, **given)


def _breaking_rows(
    engine: Any, *, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any
) -> list[dict[str, Any]]:
    """Some rows that break a rule, as examples."""
    query = f"{metric_value_kwargs['unexpected_rows_query']} LIMIT {_EXAMPLES}"
    rows: list[dict[str, Any]] = _query(engine, metric_domain_kwargs, query).to_pylist()
    return rows


def _breaking_count(
    engine: Any, *, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any
) -> int:
    """How many rows break a rule."""
    query = metric_value_kwargs["unexpected_rows_query"]
    counting = f"SELECT count(*) AS n FROM ({query})"  # noqa: S608 - a contract's
    count: int = _query(engine, metric_domain_kwargs, counting)["n"][0].as_py()
    return count


def _query(engine: Any, domain: Any, query: str) -> pa.Table:
    frame, _, _ = engine.get_compute_domain(domain, domain_type="table")
    with asking() as connection:
        connection.register(
            "batch_rows", pa.Table.from_pandas(frame, preserve_index=False)
        )
        return connection.sql(query.format(batch="batch_rows")).to_arrow_table()
