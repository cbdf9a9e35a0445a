"""What the columns of a contract must keep: their types, their numbers in partition and key, what they derive from."""

import re
from collections.abc import Mapping
from typing import Any

from st_common.contracts.document import Document, Place, near
from st_common.contracts.kinds import KINDS
from st_common.contracts.places import properties_of
from st_common.contracts.quality import OPTIONS

_PARTITION_TYPES = ("string", "date", "timestamp", "int", "bigint")
_OPTION_TYPES = {
    "between": ("bigint", "int", "tinyint", "double"),
    "length": ("string",),
    "pattern": ("string",),
}


def check_columns(document: Document) -> None:
    """Makes sure that all columns are as they must be.

    Raises:
        ContractError: names file, line and rule of the first that is not.
    """
    for check in (_types, _numbers, _derived, _options):
        check(document)


def _types(document: Document) -> None:
    seen = set()
    for place, column in properties_of(document):
        kind = column["physicalType"]
        if kind not in KINDS:
            raise document.error(
                (*place, "physicalType"),
                "unknown-type",
                f"column {column['name']!r}: {kind!r} is no type",
                hint=near(kind, KINDS),
            )
        if column["logicalType"] != KINDS[kind].logical:
            wanted = f"{kind} is {KINDS[kind].logical}, not {column['logicalType']}"
            raise document.error(
                (*place, "logicalType"),
                "type-mismatch",
                f"column {column['name']!r}: {wanted}",
            )
        if column["name"].lower() in seen:  # Spark does not tell letters by case
            raise document.error(
                (*place, "name"),
                "duplicate-column",
                f"column {column['name']!r} is there twice",
            )
        seen.add(column["name"].lower())


def _numbers(document: Document) -> None:
    """Partition and key columns: numbered from 1 without holes, never null, of a type that can be one."""
    for flag, position, rule in (
        ("partitioned", "partitionKeyPosition", "partition"),
        ("primaryKey", "primaryKeyPosition", "key"),
    ):
        numbered = [
            (place, column)
            for place, column in properties_of(document)
            if column.get(flag) or position in column
        ]
        for place, column in numbered:
            _can_be_numbered(document, place, column, (flag, position, rule))
        order = sorted(column[position] for _, column in numbered)
        for at, (place, column) in enumerate(numbered, start=1):
            if order != list(range(1, len(order) + 1)) and column[position] != at:
                raise document.error(
                    (*place, position),
                    rule,
                    f"{position} {column[position]}: they count from 1 without a hole",
                )


def _can_be_numbered(
    document: Document,
    place: Place,
    column: Mapping[str, Any],
    numbering: tuple[str, str, str],
) -> None:
    """Whether a column may be one of a partition or a key; `numbering`: its flag, its position, the rule's name."""
    flag, position, rule = numbering
    named = f"column {column['name']!r}"
    if not (column.get(flag) and position in column):
        raise document.error(place, rule, f"{named}: {flag} and {position} go together")
    if not column["required"]:
        raise document.error(
            (*place, "required"),
            rule,
            f"{named} may be null, so it cannot be {flag}",
        )
    if rule == "partition" and column["physicalType"] not in _PARTITION_TYPES:
        raise document.error(
            (*place, flag),
            rule,
            f"{named}: a {column['physicalType']} cannot name a partition",
        )


def _derived(document: Document) -> None:
    types = {
        column["name"]: column["physicalType"] for _, column in properties_of(document)
    }
    for place, column in properties_of(document):
        sources = column.get("transformSourceObjects")
        if sources is None and "transformLogic" not in column:
            continue
        source = _source(document, place, column, types)
        if column.get("transformLogic") != f"CAST({source} AS DATE)":
            raise document.error(
                (*place, "transformLogic"),
                "derived",
                f"it must be CAST({source} AS DATE)",
            )


def _source(
    document: Document,
    place: Place,
    column: Mapping[str, Any],
    types: Mapping[str, str],
) -> str:
    """The timestamp that a date derives from."""
    sources = column.get("transformSourceObjects")
    named = f"column {column['name']!r}"
    at = (*place, "transformSourceObjects")
    if not sources or len(sources) != 1:
        raise document.error(at, "derived", f"{named} needs one transformSourceObjects")
    source: str = sources[0]
    if source not in types:
        raise document.error(
            at,
            "unknown-column",
            f"{named} derives from {source!r}",
            hint=near(source, types),
        )
    if (types[column["name"]], types[source]) != ("date", "timestamp"):
        raise document.error(
            at, "derived", f"{named}: only a date derives, from a timestamp"
        )
    return source


_LOWEST = "minimum", "exclusiveMinimum", "minLength"
_HIGHEST = "maximum", "exclusiveMaximum", "maxLength"


def _options(document: Document) -> None:
    for place, column in properties_of(document):
        options = column.get("logicalTypeOptions", {})
        for key, value in options.items():
            at = (*place, "logicalTypeOptions", key)
            _option(document, at, column["physicalType"], value)
        low = [options[key] for key in _LOWEST if key in options]
        high = [options[key] for key in _HIGHEST if key in options]
        if low and high and max(low) > min(high):
            raise document.error(
                (*place, "logicalTypeOptions"),
                "bad-range",
                f"nothing is from {max(low)} to {min(high)}",
            )


def _pattern(document: Document, place: Place, value: object) -> None:
    try:
        re.compile(str(value))
    except re.error as error:
        raise document.error(
            place, "bad-range", f"{value!r} is no pattern: {error}"
        ) from None


def _option(document: Document, at: Place, type_name: str, value: object) -> None:
    """Whether an option has a meaning for a type, and its value is one."""
    key = at[-1]
    if key == "format":
        return
    kind = next((kind for kind, keys in OPTIONS.items() if key in keys), None)
    if kind is None or type_name not in _OPTION_TYPES[kind]:
        raise document.error(at, "bad-range", f"{key} has no meaning for a {type_name}")
    if kind == "pattern":
        _pattern(document, at, value)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise document.error(at, "bad-range", f"{key} is {value!r}, which is no number")
