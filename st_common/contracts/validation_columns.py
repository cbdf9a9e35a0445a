"""What the columns of a contract must keep: their types, their numbers in partition and key, what they derive from."""

import re

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
            named = f"column {column['name']!r}"
            if not (column.get(flag) and position in column):
                raise document.error(
                    place, rule, f"{named}: {flag} and {position} go together"
                )
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
        order = sorted(column[position] for _, column in numbered)
        for at, (place, column) in enumerate(numbered, start=1):
            if order != list(range(1, len(order) + 1)) and column[position] != at:
                raise document.error(
                    (*place, position),
                    rule,
                    f"{position} {column[position]}: they count from 1 without a hole",
                )


def _derived(document: Document) -> None:
    types = {
        column["name"]: column["physicalType"] for _, column in properties_of(document)
    }
    for place, column in properties_of(document):
        sources = column.get("transformSourceObjects")
        if sources is None and "transformLogic" not in column:
            continue
        at = (*place, "transformSourceObjects")
        if not sources or len(sources) != 1:
            raise document.error(
                at,
                "derived",
                f"column {column['name']!r} needs one transformSourceObjects",
            )
        if sources[0] not in types:
            raise document.error(
                at,
                "unknown-column",
                f"column {column['name']!r} derives from {sources[0]!r}",
                hint=near(sources[0], types),
            )
        if (types[column["name"]], types[sources[0]]) != ("date", "timestamp"):
            raise document.error(
                at,
                "derived",
                f"column {column['name']!r}: only a date derives, from a timestamp",
            )
        if column.get("transformLogic") != f"CAST({sources[0]} AS DATE)":
            raise document.error(
                (*place, "transformLogic"),
                "derived",
                f"it must be CAST({sources[0]} AS DATE)",
            )


def _options(document: Document) -> None:
    for place, column in properties_of(document):
        options = column.get("logicalTypeOptions", {})
        for key, value in options.items():
            at = (*place, "logicalTypeOptions", key)
            kind = next((kind for kind, keys in OPTIONS.items() if key in keys), None)
            if key == "format":
                continue
            if kind is None or column["physicalType"] not in _OPTION_TYPES[kind]:
                raise document.error(
                    at,
                    "bad-range",
                    f"{key} has no meaning for a {column['physicalType']}",
                )
            if kind == "pattern":
                _pattern(document, at, value)
            elif isinstance(value, bool) or not isinstance(value, int | float):
                raise document.error(
                    at, "bad-range", f"{key} is {value!r}, which is no number"
                )
        low = [
            options[key]
            for key in ("minimum", "exclusiveMinimum", "minLength")
            if key in options
        ]
        high = [
            options[key]
            for key in ("maximum", "exclusiveMaximum", "maxLength")
            if key in options
        ]
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
