"""A stream's contract as a suite of Great Expectations, and a day's measures judged by it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from st_common.contracts import DataRule, StreamContract
from st_common.contracts.rules import GX_SEVERITY
from st_common.quality.expectations import batch_of
from st_common.quality.measuring import Observed

_LOADED = re.compile(
    r"<script\b.*?</script\s*>|<link\b[^>]*>|<img\b[^>]*>", re.DOTALL | re.IGNORECASE
)
_HEAD = """<head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.5 sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0; }
th, td { border-bottom: 1px solid #ccc; padding: .2rem .6rem; text-align: left; vertical-align: top; }
nav ul { list-style: none; padding: 0; }
/* what only scripts would bring to life */
[onclick], .card:has([onclick]), footer, .modal { display: none; }
</style>"""

_BETWEEN = "expect_column_values_to_be_between"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of the measures of a day; all of it empty when no rule has a value.

    Attributes:
        kept: whether each rule that has a value is kept, by its name.
        result: the validation result of Great Expectations, as JSON values.
        page: the same as a page of its Data Docs.
    """

    kept: Mapping[str, bool] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    page: str = ""


def expectation_of(rule: DataRule, contract: StreamContract) -> dict[str, Any]:
    """A rule as an expectation about the column of its name in the table of a day's measures.

    Args:
        rule: one of the contract's.
        contract: for `meta`.

    Returns:
        Type, kwargs, severity and meta, as `ExpectationConfiguration` takes them.
    """
    return {
        "type": _BETWEEN,
        "kwargs": {
            "column": rule.name,
            "min_value": rule.minimum,
            "max_value": rule.maximum,
        },
        "severity": GX_SEVERITY[rule.severity],
        "meta": {
            "rule": rule.name,
            "contract": f"{contract.name} {contract.version}",
            "measure": rule.measure,
            "expected": rule.expected,
        },
    }


def judge(contract: StreamContract, observed: Mapping[str, Observed]) -> Judged:
    """Judges the measures of a day: one row, with a column for each rule that has a value.

    Args:
        contract: whose rules.
        observed: the measures, by rule.
    """
    import great_expectations as gx

    rules = [rule for rule in contract.rules if observed[rule.name].value is not None]
    if not rules:
        return Judged()
    row = pa.table({rule.name: [observed[rule.name].value] for rule in rules})
    batch = batch_of(row)
    suite = gx.ExpectationSuite(
        name=f"{contract.name} {contract.version}",
        expectations=[expectation_of(rule, contract) for rule in rules],
    )
    validated = batch.validate(suite, result_format="SUMMARY")
    result = validated.to_json_dict()
    kept = {
        each["expectation_config"]["meta"]["rule"]: bool(each["success"])
        for each in result["results"]
    }
    return Judged(kept=kept, result=result, page=data_docs_page(validated))


# The page of Data Docs loads fifteen scripts and styles from elsewhere, and no setting changes that. What it says
# stands in its HTML all the same: everything that is loaded is taken out, and a policy in the page forbids browsers
# the rest.


def data_docs_page(result: Any) -> str:
    """The page that Great Expectations makes of a validation result, without anything that is loaded or run.

    Args:
        result: an `ExpectationSuiteValidationResult`.

    Returns:
        HTML; links in it lead to places in the page, or out of it when somebody follows them.
    """
    from great_expectations.render.renderer.page_renderer import (
        ValidationResultsPageRenderer,
    )
    from great_expectations.render.view.view import DefaultJinjaPageView

    renderer: Any = ValidationResultsPageRenderer(run_info_at_end=True)
    view: Any = DefaultJinjaPageView()
    page: str = view.render(renderer.render(result))
    return _LOADED.sub("", page).replace("<head>", _HEAD, 1)
