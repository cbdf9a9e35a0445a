"""Rules of a contract judged by Great Expectations, on frames of pandas and of Spark alike.

    rows of a table  -- a batch -->  is a rule kept?      all rules of a batch at once
                                     broken: by how many rows, and which are the first of them

Which rows come first is the same on each engine: values ascend, a NaN is above all numbers, a null above all.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from st_common.contracts.rules import Rule

EXAMPLES = 3
COUNTED: Mapping[str, Any] = {
    "result_format": "BASIC",
    "partial_unexpected_count": 0,
}
"""How many rows break a rule; none of them is looked for, which would be a job of Spark for each rule."""
FOUND: Mapping[str, Any] = {**COUNTED, "partial_unexpected_count": EXAMPLES}
"""The first rows that break it, too."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a rule.

    Attributes:
        passed: whether it holds; a rule that could not be measured does not.
        broken: how many rows break it; None when it could not be measured.
        examples: of what breaks it, each once, the first three; without `broken` what the engine says of it.
    """

    passed: bool
    broken: float | None
    examples: Sequence[Any] = ()


class Rows(Protocol):
    """Rows of one table that are to be checked, on one engine."""

    def judge(
        self, contract: str, rules: Sequence[Rule]
    ) -> tuple[int, Mapping[str, Judged]]:
        """How many rows there are, and what came of each rule, by its name.

        Args:
            contract: the contract's name.
            rules: its rules.
        """


def batches(source: Literal["pandas", "spark"]) -> Any:
    """What makes a batch of a frame: a context in memory, silent, that writes nothing to disk.

    Args:
        source: what frames are; those of Spark are of the session that is active now, and are not kept.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral", cloud_mode=False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    sources = context.data_sources
    found = (
        sources.add_pandas("rows")
        if source == "pandas"
        else sources.add_spark("rows", persist=False)
    )
    return found.add_dataframe_asset("rows").add_batch_definition_whole_dataframe(
        "rows"
    )


def results_of(
    batch: Any, expectations: Sequence[Mapping[str, Any]], form: Mapping[str, Any]
) -> dict[str, Any]:
    """What Great Expectations says of a batch: a result for each expectation, by the name of its rule.

    Args:
        batch: of `batches`.
        expectations: as `Rule.expectation` gives them.
        form: the result format.
    """
    import great_expectations as gx
    from great_expectations.expectations.expectation_configuration import (
        ExpectationConfiguration,
    )

    suite = gx.ExpectationSuite(
        name="rules",
        expectations=[
            ExpectationConfiguration(**each).to_domain_obj() for each in expectations
        ],
    )
    validated = batch.validate(suite, result_format=dict(form))
    return {each.expectation_config.meta["rule"]: each for each in validated.results}


def broken_rows(result: Any) -> float | None:
    """How many rows break a rule, of a result in the form `COUNTED` or `FOUND`; None when it could not be measured."""
    outcome = result.result
    count = outcome.get("unexpected_count", outcome.get("observed_value"))
    return None if count is None else float(count)


def unmeasured(result: Any) -> Judged:
    """What came of a rule that could not be measured: each exception of its result, in the engine's own words."""
    info = result.exception_info
    each = [info] if "exception_message" in info else list(info.values())
    said = [
        one["exception_message"]
        for one in each
        if isinstance(one, Mapping) and one.get("raised_exception")
    ]
    return Judged(passed=False, broken=None, examples=said)


def first_of(query: str) -> str:
    """SQL for the first rows of a query, each once, which DuckDB and Spark read alike."""
    return f"SELECT DISTINCT * FROM ({query}) AS broken ORDER BY ALL ASC NULLS LAST LIMIT {EXAMPLES}"  # noqa: S608 - a contract's


def plain(value: Any) -> Any:
    """A value as it stands among examples, whichever engine it comes from: times in UTC, bytes as bytes."""
    if isinstance(value, datetime):
        return str(value.astimezone(UTC))
    return bytes(value) if isinstance(value, bytearray) else value
