"""A contract's rules checked by Great Expectations, on Arrow columns and without a JVM."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from st_common.asking import asking
from st_common.contracts import Contract, Rule
from st_common.contracts.judging import (
    COUNTED,
    EXAMPLES,
    FOUND,
    Judged,
    Rows,
    batches,
    broken_rows,
    first_of,
    plain,
    results_of,
    unmeasured,
)
from st_common.quality.finding import Finding

Reader = Callable[[tuple[str, ...]], pa.Table]
_BY_VALUE = {"not_null", "between", "length", "pattern", "valid_values"}
_ALIKE = "rows_alike"
_WEIGHED = {"result_format": "COMPLETE", "unexpected_index_column_names": [_ALIKE]}
_MOST_DISTINCT = 100_000
_TIMES = "times"


def validate(contract: Contract, rows: Rows, *, table: str) -> list[Finding]:
    """Checks every rule of the contract.

    Types are not checked here: Delta enforces them, and `contracts.matches` compares the table's schema.

    Args:
        contract: whose rules.
        rows: what is checked.
        table: what the findings call the table.

    Returns:
        A finding per rule, in the contract's order. A rule that could not be measured has not passed.
    """
    rules = contract.rules
    count, judged = rows.judge(contract.name, rules)
    return [_finding(rule, judged[rule.name], table, count) for rule in rules]


def _finding(rule: Rule, judged: Judged, table: str, rows: int) -> Finding:
    examples = [plain(each) for each in judged.examples]
    return Finding(
        table=table,
        rule=rule.name,
        severity=rule.severity,
        passed=judged.passed,
        observed=judged.broken,
        expected=rule.expected,
        rows=rows,
        details="" if judged.passed else json.dumps(examples, default=str),
    )


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows in this process, see `Rows`: only the columns of one rule are in memory at a time.

    pandas merely wraps Arrow's columns; so a null and a NaN stay two things, and a day needs as much memory as its
    widest rule's columns. A rule on the values of one column is checked once per distinct value and counted by rows,
    for Great Expectations judges value after value in Python.

    Attributes:
        read: gives the rows, with exactly the columns it is asked for.
    """

    read: Reader

    def judge(
        self, contract: str, rules: Sequence[Rule]
    ) -> tuple[int, dict[str, Judged]]:
        """See `Rows`."""
        count = 0
        judged: dict[str, Judged] = {}
        # Rules on the same columns share one reading of them.
        for columns in dict.fromkeys(rule.columns for rule in rules):
            own = [rule for rule in rules if rule.columns == columns]
            rows = self.read(columns)
            count = len(rows)
            judged |= _judged(rows, contract, own)
        return count, judged


def _judged(rows: pa.Table, contract: str, rules: Sequence[Rule]) -> dict[str, Judged]:
    values = _values(rows, rules)
    form = COUNTED if values is rows else _WEIGHED
    expectations = [rule.expectation(contract) for rule in rules]
    results = results_of(batch_of(values), expectations, form)
    judged = {}
    for rule, expectation in zip(rules, expectations, strict=True):
        result = results[rule.name]
        broken = broken_rows(result)
        if broken is None:
            judged[rule.name] = unmeasured(result)
            continue
        if broken and result.result.get("unexpected_index_list"):
            weights = result.result["unexpected_index_list"]
            broken = float(sum(each[_ALIKE] for each in weights))
        examples = [] if result.success else _examples(rows, rule, expectation)
        judged[rule.name] = Judged(
            passed=bool(result.success), broken=broken, examples=examples
        )
    return judged


def _values(rows: pa.Table, rules: Sequence[Rule]) -> pa.Table:
    """Each value once and how many rows have it, where the rules need no more and that is much less; else the rows."""
    kinds = {rule.kind for rule in rules}
    if not kinds <= _BY_VALUE or kinds == {"not_null"}:
        return rows
    counts = rows.column(0).value_counts()
    if len(counts) > _MOST_DISTINCT:
        return rows
    return pa.table(
        {rows.column_names[0]: counts.field("values"), _ALIKE: counts.field("counts")}
    )


def _examples(rows: pa.Table, rule: Rule, expectation: dict[str, Any]) -> Sequence[Any]:
    """The first of what breaks a rule, each once."""
    if rule.kind == "not_null":
        return [None]
    if rule.kind == "unique":
        return _repeated(rows)
    if rule.kind == "sql":
        query = expectation["kwargs"]["unexpected_rows_query"]
        found: list[Any] = _asked(rows, first_of(query)).to_pylist()
        return found
    name = rows.column_names[0]
    values = rows.group_by(name).aggregate([]).sort_by(name)
    result = results_of(batch_of(values), [expectation], FOUND)[rule.name]
    listed: list[Any] = result.result["partial_unexpected_list"]
    return listed[:EXAMPLES]


def _repeated(rows: pa.Table) -> list[Any]:
    """The first keys that several rows have, and how many; where all its columns are null, there is none."""
    names = rows.column_names
    is_there = reduce(pc.or_, (pc.is_valid(rows[name]) for name in names))
    keys = rows.filter(is_there).group_by(names).aggregate([([], "count_all")])
    several = keys.filter(pc.field("count_all") > 1).rename_columns([*names, _TIMES])
    first = several.sort_by([(name, "ascending") for name in names]).slice(0, EXAMPLES)
    found: list[Any] = first.to_pylist()
    return found


def batch_of(rows: pa.Table) -> Any:
    """Rows as a batch that Great Expectations validates, in memory."""
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    return _definition().get_batch(batch_parameters={"dataframe": frame})


@cache
def _definition() -> Any:
    """What makes a batch of a frame of pandas, one for the process."""
    _teach_sql()
    return batches("pandas")


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
        def _pandas(cls, **_: Any) -> Any:  # noqa: N805
            return []  # examples are taken of rules that are broken

    class NumberOfRowsThatBreakARule(_OnFrames):
        metric_name = "unexpected_rows_query.row_count"

        @metric_value(engine=PandasExecutionEngine)
        def _pandas(cls, execution_engine: Any, **given: Any) -> Any:  # noqa: N805
            return _breaking_count(execution_engine, **given)


def _breaking_count(
    engine: Any, *, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any
) -> int:
    """How many rows break a rule."""
    frame, _, _ = engine.get_compute_domain(metric_domain_kwargs, domain_type="table")
    query = metric_value_kwargs["unexpected_rows_query"]
    counting = f"SELECT count(*) AS n FROM ({query})"  # noqa: S608 - a contract's
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    count: int = _asked(rows, counting)["n"][0].as_py()
    return count


def _asked(rows: pa.Table, query: str) -> pa.Table:
    """What a contract's SQL gives of rows; its days are UTC's, wherever this runs."""
    with asking() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("batch_rows", rows)
        return connection.sql(query.format(batch="batch_rows")).to_arrow_table()
