"""The rules that the contract of a stream writes down: of an attribute, of the stream as a whole."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from st_common.contracts.document import Document, Place, near
from st_common.contracts.measures import COLUMN_MEASURES, MEASURES, Measure
from st_common.contracts.places import TABLE_AT
from st_common.contracts.stream_model import DataRule

ENGINE = "fairway"
_RANGE = ("minimum", "maximum")
_METRICS = {"invalidValues": "unknown_share", "nullValues": "null_share"}
_OF_NUMBERS = {
    name: COLUMN_MEASURES[name] for name in ("level_to_usual", "spread_to_usual")
}
_BOUNDS = (
    "mustBe",
    "mustBeBetween",
    "mustBeGreaterOrEqualTo",
    "mustBeLessOrEqualTo",
)
_OTHER_BOUNDS = (
    "mustNotBe",
    "mustNotBeBetween",
    "mustBeGreaterThan",
    "mustBeLessThan",
)
_NUMBERS = ("integer", "number")


def column_rules(
    document: Document, place: Place, column: dict[str, Any]
) -> list[DataRule]:
    """The rules of one property: its range from `logicalTypeOptions`, then its quality block.

    Args:
        document: the contract.
        place: where the property stands.
        column: the property.

    Raises:
        ContractError: a rule cannot be carried out.
    """
    name = column["name"]
    rules = []
    options = column.get("logicalTypeOptions") or {}
    if options:
        _check_range(document, (*place, "logicalTypeOptions"), column)
        rules.append(
            DataRule(
                name=f"{name}_between",
                measure="outside_share",
                column=name,
                arguments=options,
                maximum=0.0,
            )
        )
    written = document.items((*place, "quality"))
    return rules + [_column_rule(document, each, column) for each in written]


def stream_rules(document: Document) -> list[DataRule]:
    """The rules of the stream as a whole, in the order of the file.

    Raises:
        ContractError: a rule cannot be carried out.
    """
    return [
        _measure_rule(document, place, MEASURES)
        for place in document.items((*TABLE_AT, "quality"))
    ]


def _column_rule(document: Document, place: Place, column: dict[str, Any]) -> DataRule:
    if "metric" in document.mapping(place):
        return _metric_rule(document, place, column["name"])
    if column["logicalType"] not in _NUMBERS:
        raise document.error(
            place, "bad-rule", f"{column['name']} is no number: it has no level"
        )
    rule = _measure_rule(document, place, _OF_NUMBERS)
    return replace(rule, column=column["name"])


def _check_range(document: Document, place: Place, column: dict[str, Any]) -> None:
    options = document.mapping(place)
    for key, bound in options.items():
        if key not in _RANGE:
            raise document.error(
                (*place, key),
                "bad-rule",
                f"{key!r} is no bound",
                hint=near(key, _RANGE),
            )
        if not _is_number(bound) or column["logicalType"] not in _NUMBERS:
            raise document.error(
                (*place, key), "bad-rule", f"{key} = {bound!r} bounds no number"
            )
    if options.get("minimum", float("-inf")) > options.get("maximum", float("inf")):
        raise document.error(place, "empty-range", "minimum is above maximum")


def _metric_rule(document: Document, place: Place, column: str) -> DataRule:
    rule = document.mapping(place)
    metric = rule.get("metric")
    if metric not in _METRICS:
        raise document.error(
            (*place, "metric"),
            "bad-rule",
            f"metric {metric!r} is not known",
            hint=near(metric, _METRICS),
        )
    arguments = {}
    if metric == "invalidValues":
        arguments = {"values": _valid_values(document, place)}
    minimum, maximum = _bounds(document, place)
    per = 1.0
    if rule.get("unit") == "percent":
        per = 100.0
    elif (minimum, maximum) != (0.0, 0.0):
        raise document.error(
            place, "bad-rule", "a bound other than mustBe 0 needs unit: percent"
        )
    return DataRule(
        name=rule["name"],
        measure=_METRICS[metric],
        column=column,
        arguments=arguments,
        minimum=None if not minimum else minimum / per,
        maximum=None if maximum is None else maximum / per,
        severity=rule["severity"],
        description=rule.get("description", ""),
    )


def _valid_values(document: Document, place: Place) -> tuple[Any, ...]:
    values = document.at((*place, "arguments", "validValues"))
    if not isinstance(values, list) or not values:
        raise document.error(
            place, "bad-rule", "invalidValues needs arguments with a list validValues"
        )
    return tuple(values)


def _measure_rule(
    document: Document, place: Place, measures: Mapping[str, Measure]
) -> DataRule:
    rule = document.mapping(place)
    told = (rule.get("type"), rule.get("engine"))
    if told != ("custom", ENGINE):
        raise document.error(
            place,
            "bad-rule",
            f"a rule on a measure has type custom and engine {ENGINE}, not {told[0]!r} and {told[1]!r}",
        )
    at = (*place, "implementation")
    given = dict(document.mapping(at))
    measure = given.pop("measure", None)
    if measure not in measures:
        raise document.error(
            at,
            "bad-rule",
            f"{measure!r} is no measure",
            hint=near(measure, measures),
        )
    minimum, maximum = _bounds(document, place)
    return DataRule(
        name=rule["name"],
        measure=measure,
        arguments=_arguments(document, at, measure, measures[measure], given),
        minimum=minimum,
        maximum=maximum,
        severity=rule["severity"],
        description=rule.get("description", ""),
    )


def _arguments(
    document: Document,
    place: Place,
    name: str,
    measure: Measure,
    given: dict[str, Any],
) -> dict[str, float]:
    known = measure.arguments
    for key, value in given.items():
        if key not in known or not _is_number(value) or value < 0:
            raise document.error(
                (*place, key),
                "bad-rule",
                f"{key} = {value!r} is no argument of {name}",
                hint=f"numbers from 0 on: {', '.join(known) or 'none'}",
            )
    arguments = {**known, **given}
    for key, value in arguments.items():
        if value is None:
            raise document.error(place, "bad-rule", f"{name} needs {key}")
    return {key: float(value) for key, value in arguments.items()}


def _bounds(document: Document, place: Place) -> tuple[float | None, float | None]:
    """The smallest and the largest value that keep a rule."""
    rule = document.mapping(place)
    for key in _OTHER_BOUNDS:
        if rule.get(key) is not None:
            raise document.error(
                (*place, key),
                "bad-rule",
                f"{key} is no bound of a measure",
                hint=f"known: {', '.join(_BOUNDS)}",
            )
    given = [key for key in _BOUNDS if rule.get(key) is not None]
    if len(given) != 1:
        raise document.error(
            place, "bad-rule", f"a rule has one of {', '.join(_BOUNDS)}"
        )
    key, value = given[0], rule[given[0]]
    bounds = value if key == "mustBeBetween" else [value, value]
    if len(bounds) != 2 or not all(map(_is_number, bounds)) or bounds[0] > bounds[1]:
        raise document.error((*place, key), "bad-rule", f"{key} = {value!r}")
    return (
        None if key == "mustBeLessOrEqualTo" else float(bounds[0]),
        None if key == "mustBeGreaterOrEqualTo" else float(bounds[1]),
    )


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
