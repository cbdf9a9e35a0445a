"""What the rows of a tree are, in words for people."""

from collections.abc import Iterable

from st_common.query.several import name_of_key
from st_common.query.tree.node import Column, Node

_TYPES = {
    "VARCHAR": "text",
    "DOUBLE": "number",
    "BIGINT": "whole number",
    "BOOLEAN": "true or false",
    "TIMESTAMP": "time",
}


def rows_in_words(tree: Node) -> str:
    """What a row of an answer is: `one for each object and feature`."""
    if not tree.key:
        return "one"
    *others, last = map(name_of_key, tree.key)
    names = f"{', '.join(others)} and {last}" if others else last
    return f"one for each {names}"


def columns_in_words(tree: Node) -> str:
    """The columns of an answer with their types and units; empty where the stream's are not known."""
    return in_words(tree.columns())


def in_words(columns: Iterable[Column]) -> str:
    """Columns with their types and units; empty for none."""
    return ", ".join(_column(column) for column in columns)


def _column(column: Column) -> str:
    type_ = _TYPES.get(column.type, column.type.lower())
    unit = f" in {column.unit}" if column.unit else ""
    null = ", or null" if column.nullable else ""
    return f"{column.name} ({type_}{unit}{null})"
