"""What the rules of quality of a contract must keep: a name, how much they weigh, columns that are there."""

from typing import Any

from st_common.contracts.document import Document, Place, near
from st_common.contracts.places import (
    TABLE_AT,
    check_column,
    mappings_of,
    properties_of,
)
from st_common.contracts.quality import sql_columns
from st_common.contracts.rules import COUNT, TABLE

_SEVERITIES = ("error", "warning", "info")
_METRICS = {
    "invalidValues": "validValues",
    "duplicateValues": "properties",
    "nullValues": None,
}


def check_quality(document: Document) -> None:
    """Makes sure that every rule of quality can be carried out and has a name of its own.

    Raises:
        ContractError: names file, line and rule of the first that cannot.
    """
    names = [column["name"] for _, column in properties_of(document)]
    seen = set()
    for place, rule, level in mappings_of(document):
        if level != "quality":
            continue
        if rule["name"] in seen:
            raise document.error(
                (*place, "name"), "bad-rule", f"rule {rule['name']!r} is there twice"
            )
        seen.add(rule["name"])
        if rule["severity"] not in _SEVERITIES:
            raise document.error(
                (*place, "severity"),
                "bad-rule",
                f"{rule['severity']!r} is none of {', '.join(_SEVERITIES)}",
            )
        if rule["mustBe"] != 0:
            raise document.error(
                (*place, "mustBe"),
                "bad-rule",
                "a rule counts the rows that break it: mustBe is 0",
            )
        check = _sql_rule if rule.get("type") == "sql" else _metric_rule
        check(document, place, rule, names)


def _sql_rule(
    document: Document, place: Place, rule: dict[str, Any], names: list[str]
) -> None:
    query, at = " ".join(str(rule.get("query", "")).split()), (*place, "query")
    if not query.startswith(COUNT) or TABLE not in query:
        raise document.error(
            at,
            "bad-rule",
            f"a query counts the rows that break it: {COUNT}{TABLE} WHERE ...",
        )
    try:
        columns = sql_columns(query)
    except ValueError as error:
        raise document.error(at, "bad-rule", f"no SQL: {error}") from None
    for name in columns:
        check_column(document, at, name, names)


def _metric_rule(
    document: Document, place: Place, rule: dict[str, Any], names: list[str]
) -> None:
    metric, at = rule.get("metric"), (*place, "metric")
    if metric not in _METRICS:
        raise document.error(
            at,
            "bad-rule",
            f"metric {metric!r} is not known",
            hint=near(metric, _METRICS),
        )
    of_column = len(place) > len(TABLE_AT) + 2
    argument = _METRICS[metric] if metric == "invalidValues" or not of_column else None
    if not of_column and metric != "duplicateValues":
        raise document.error(at, "bad-rule", f"{metric} is a rule of a column")
    given = (rule.get("arguments") or {}).get(argument) if argument else None
    if argument and (not isinstance(given, list) or not given):
        raise document.error(
            at, "bad-rule", f"{metric} needs arguments with a list {argument}"
        )
    if argument == "properties":
        for name in given or ():
            check_column(document, (*place, "arguments", "properties"), name, names)
