"""How long rows are kept, as a contract says it: `slaProperties` of ODCS.

slaProperties:
  - {property: retention, value: 400, unit: d, element: positions.event_date}
"""

from typing import Any

from st_common.contracts.document import Document, Place
from st_common.contracts.places import TABLE_AT, properties_of

_DAYS = {"d": 1, "y": 365}
_PARTITIONS = ("date", "timestamp")
_AT = "slaProperties"


def retention_days(document: Document) -> int | None:
    """How many days rows are kept, by a document that was checked; None: for ever."""
    stated = document.value.get(_AT) or []
    return next((each["value"] * _DAYS[each["unit"]] for each in stated), None)


def retention_by(document: Document) -> str | None:
    """The column by which rows grow old, by a document that was checked; None: they are kept for ever."""
    stated = document.value.get(_AT) or []
    return next((each["element"].partition(".")[2] for each in stated), None)


def check_retention(document: Document) -> None:
    """Makes sure that a contract says at most once how long rows are kept, in days or years of its day.

    Raises:
        ContractError: another property, unit or element, or no whole number of at least 1 (rule `retention`).
    """
    places = document.items((_AT,))
    for place in places:
        _check(document, place, document.mapping(place))
    if len(places) > 1:
        raise document.error(places[1], "retention", "retention is there twice")


def _check(document: Document, place: Place, stated: dict[str, Any]) -> None:
    if stated["property"] != "retention":
        wrong = f"{stated['property']!r} is no property that is kept here"
        raise document.error(
            (*place, "property"), "retention", wrong, hint="retention is"
        )
    value = stated["value"]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        wrong = f"{value!r} is no whole number of at least 1"
        raise document.error((*place, "value"), "retention", wrong)
    if stated["unit"] not in _DAYS:
        wrong = f"{stated['unit']!r} is no unit"
        raise document.error(
            (*place, "unit"), "retention", wrong, hint="d for days, y for 365 of them"
        )
    table = document.at((*TABLE_AT, "name"))
    elements = [f"{table}.{name}" for name in _days_of(document)]
    if stated["element"] not in elements:
        wrong = f"{stated['element']!r} is no partition column with a day, and no time that every row has"
        raise document.error(
            (*place, "element"),
            "retention",
            wrong,
            hint=" or ".join(elements) or "the table has none",
        )


def _days_of(document: Document) -> list[str]:
    return [
        column["name"]
        for _, column in properties_of(document)
        if (column.get("partitioned") and column["physicalType"] in _PARTITIONS)
        or (column.get("required") and column["physicalType"] == "timestamp")
    ]
