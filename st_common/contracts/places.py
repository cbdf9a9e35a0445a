"""Where things stand in a contract: its table, the columns of that, and every mapping that ODCS gives keys to."""

from collections.abc import Iterable
from typing import Any

from st_common.contracts.document import Document, Place, near

TABLE_AT: Place = ("schema", 0)


def mappings_of(document: Document) -> Iterable[tuple[Place, dict[str, Any], str]]:
    """Every mapping of the contract that ODCS gives keys to, with the name of its level; the outer ones first."""
    yield (), document.value, "contract"
    yield ("description",), document.mapping(("description",)), "description"
    for place in document.items(("slaProperties",)):
        yield place, document.mapping(place), "sla"
    for place in document.items(("schema",)):
        table = document.mapping(place)
        yield place, table, "table"
        for inner, key, level in _inner(document, place):
            yield inner, document.mapping(inner), level
            if key == "properties":
                for rule in document.items((*inner, "quality")):
                    yield rule, document.mapping(rule), "quality"


def _inner(document: Document, table: Place) -> Iterable[tuple[Place, str, str]]:
    for key, level in (
        ("properties", "property"),
        ("quality", "quality"),
        ("customProperties", "custom"),
    ):
        for place in document.items((*table, key)):
            yield place, key, level


def properties_of(document: Document) -> list[tuple[Place, dict[str, Any]]]:
    """The columns of the table, each with its place."""
    return [
        (place, document.at(place))
        for place in document.items((*TABLE_AT, "properties"))
    ]


def check_column(
    document: Document, place: Place, name: object, names: list[str]
) -> None:
    """Makes sure that a name that stands in a contract is that of one of its columns.

    Args:
        document: the contract.
        place: where the name stands, for errors.
        name: what stands there.
        names: the columns' names.

    Raises:
        ContractError: it is none of them (rule `unknown-column`).
    """
    if name not in names:
        raise document.error(
            place,
            "unknown-column",
            f"{name!r} is no column of this contract",
            hint=near(name, names),
        )
