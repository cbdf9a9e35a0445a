"""What a query about the rows of another one answers: from these rows, found anew.

rows: bus 1, bus 4, tram null        COUNT(*) where value > 2      *: 1
                                     value > 0, as they are        bus 1, bus 4
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from st_common.query.plan import Aggregate, Outer
from st_common.reference.aggregate import (
    OfGroups,
    Shown,
    name_of,
    several,
    told,
    value_of,
)

Row = Mapping[str, Any]
Key = TypeVar("Key", bound=Hashable)
Evaluate = Callable[[str, Row], Any]
"""The value of an expression for a row; None is null."""


def chosen(outer: Outer, rows: Mapping[Key, Row], evaluate: Evaluate) -> set[Key]:
    """The keys of the rows that satisfy the condition of a query about them."""
    if outer.where is None:
        return set(rows)
    return {key for key, row in rows.items() if evaluate(outer.where, row) is True}


def groups(
    aggregate: Aggregate,
    rows: Iterable[Row],
    evaluate: Evaluate,
    of_groups: OfGroups,
) -> dict[str, Shown]:
    """The value of every group of rows that has one, by its name; `*` without groups, None for DISTINCT.

    `of_groups` says what HAVING asks.
    """
    if aggregate.function == "several":
        return {**_several(aggregate, list(rows), evaluate, of_groups)}
    parts: dict[str, list[object]] = {}
    if aggregate.group is None and aggregate.function in ("count", "count_distinct"):
        parts["*"] = []
    for row in rows:
        part = parts.setdefault(_name(aggregate, row, evaluate), [])
        value = _counted(aggregate, row, evaluate)
        if value is not None:
            part.append(value)
    if aggregate.function == "distinct":
        return dict.fromkeys(parts)
    values = {name: value_of(aggregate.function, part) for name, part in parts.items()}
    return {name: value for name, value in values.items() if value is not None}


def _several(
    aggregate: Aggregate,
    rows: Sequence[Row],
    evaluate: Evaluate,
    of_groups: OfGroups,
) -> dict[str, dict[str, Any]]:
    """What every group shows of several values."""
    keys = [
        [_text_or_none(evaluate(text, row)) for row in rows]
        for text in aggregate.grouped_by
    ]
    given = [
        [evaluate(value.argument or "object", row) for row in rows]
        if value.argument is not None or value.function == "count_distinct"
        else [True] * len(rows)
        for value in aggregate.values
    ]
    of_rows = replace(aggregate, keys=tuple((name, "") for name, _ in aggregate.keys))
    return told(aggregate, several(of_rows, len(rows), keys, given), of_groups)


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _name(aggregate: Aggregate, row: Row, evaluate: Evaluate) -> str:
    if aggregate.group is None:
        return "*"
    value = evaluate(aggregate.group, row)
    return name_of(None if value is None else _text(value))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _counted(aggregate: Aggregate, row: Row, evaluate: Evaluate) -> object:
    """What a row adds: its argument; without one the object where different ones are counted, else itself."""
    if aggregate.argument is not None:
        return evaluate(aggregate.argument, row)
    return row["object"] if aggregate.function == "count_distinct" else True
