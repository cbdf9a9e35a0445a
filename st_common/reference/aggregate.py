"""COUNT, SUM, AVG, MIN, MAX, DISTINCT by group: from what is counted, found anew (SPEC P5, P7).

object  kind       COUNT(*) GROUP BY kind      taxi: 2, bus: 1, NULL: 1
a       taxi
b       taxi       COUNT(kind)                 *: 3
c       bus
d       null       DISTINCT kind               taxi, bus, NULL

Of several values a group has what it shows, by name: {"kind": "taxi", "n": 2}.
"""

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from st_common.query.plan import (
    AS_JSON,
    MOST_COLLECTED,
    OF_WAYS,
    Aggregate,
    Top,
    Value,
)
from st_common.reference.columns import Features, Fixes
from st_common.reference.layer_join import columns_beside, names_tags
from st_common.reference.metric import Ints, Objects

OfGroups = Callable[[str, Sequence[Mapping[str, object]]], Iterable[object]]
"""The value of an expression of each group, which shows keys and values by their names."""
Shown = float | None | Mapping[str, Any]
"""The value of a group, or of several what it shows."""


def groups(
    aggregate: Aggregate,
    fixes: Fixes,
    rows: Ints,
    partners: Objects,
    features: Callable[[], Features] | None = None,
    of_ways: Mapping[str, Mapping[str, float | None]] = MappingProxyType({}),
) -> dict[str, Shown]:
    """The value of every group that has one, by the text of the group: `*` without groups, None for DISTINCT.

    What is counted are rows of `fixes`, one for each partner; `features` gives those that are partners. Nulls count
    nowhere but in COUNT(*). Sums go by the order of the rows. `of_ways` are by function what it says
    of each object, where one of several values is of ways.
    """
    if aggregate.function == "several":
        named = _keys(aggregate, fixes, rows, partners, features)
        given = [
            [of_ways[value.function][name] for name in fixes.ids[rows]]
            if value.function in OF_WAYS
            else _arguments(value.argument, fixes, rows, partners)
            for value in aggregate.values
        ]
        shown = several(aggregate, len(rows), named, given, _order(fixes, rows))
        return {**told(aggregate, shown, fixes.of.of_groups)}
    parts: dict[str, list[object]] = {}
    if aggregate.group is None and aggregate.function in ("count", "count_distinct"):
        parts["*"] = []
    names = group_names(aggregate, fixes, rows, partners, features)
    given_values = _arguments(aggregate.argument, fixes, rows, partners)
    for name, value in zip(names, given_values, strict=True):
        part = parts.setdefault(name, [])
        if value is not None:
            part.append(value)
    if aggregate.function == "distinct":
        return dict.fromkeys(parts)
    values = {name: value_of(aggregate.function, part) for name, part in parts.items()}
    return {name: value for name, value in values.items() if value is not None}


def _keys(
    aggregate: Aggregate,
    fixes: Fixes,
    rows: Ints,
    partners: Objects,
    features: Callable[[], Features] | None,
) -> list[Objects]:
    """The texts of the keys of each row."""
    return [
        _texts_of_tags(text, fixes, rows, partners, features())
        if features is not None and names_tags(text)
        else _texts(text, fixes, rows, partners)
        for text in aggregate.grouped_by
    ]


def _texts_of_tags(
    text: str, fixes: Fixes, rows: Ints, partners: Objects, features: Features
) -> Objects:
    columns = columns_beside(text, features, partners)
    return fixes.of.of_features(f"CAST({text} AS VARCHAR)", fixes.rows[rows], columns)


def _texts(text: str, fixes: Fixes, rows: Ints, partners: Objects) -> Objects:
    return fixes.of.texts(text, fixes.rows[rows], partners)


def _arguments(
    text: str | None, fixes: Fixes, rows: Ints, partners: Objects
) -> Objects:
    """The argument of each row; without one its object."""
    if text is None:
        return fixes.ids[rows]
    return fixes.of.values(text, fixes.rows[rows], partners)


def _order(fixes: Fixes, rows: Ints) -> list[tuple[Any, str]]:
    """By what FIRST and LAST order rows: time, then object."""
    times = fixes.of.values("epoch_us(event_ts)", fixes.rows[rows])
    return list(zip(times, fixes.ids[rows], strict=True))


def several(
    aggregate: Aggregate,
    count: int,
    keys: Sequence[Sequence[str | None] | Objects],
    given: Sequence[Sequence[object] | Objects],
    order: Sequence[tuple[Any, str]] = (),
) -> dict[str, dict[str, Any]]:
    """What every group shows, told or not, by the text of the group; without keys there is one, whatever is counted.

    Args:
        aggregate: it has several values.
        count: how many rows are counted.
        keys: of each key the texts of all rows.
        given: of each value the arguments of all rows.
        order: of each row by what it is first or last; nothing where nobody asks for that.
    """
    members: dict[tuple[str | None, ...], list[int]] = {} if keys else {(): []}
    for row in range(count):
        members.setdefault(tuple(column[row] for column in keys), []).append(row)
    names = [name for name, _ in aggregate.keys]
    shown = {}
    for key, rows in members.items():
        values = {
            value.name: _value_of(
                value,
                [column[row] for row in rows],
                [order[row] for row in rows if order],
            )
            for value, column in zip(aggregate.values, given, strict=True)
        }
        is_partner = aggregate.grouped_by == ("partner",)
        name = (key[0] or "NULL") if is_partner else name_of_keys(key)
        shown[name] = {**dict(zip(names, key, strict=True)), **values}
    return shown


def told(
    aggregate: Aggregate,
    shown: dict[str, dict[str, Any]],
    of_groups: OfGroups | None = None,
) -> dict[str, dict[str, Any]]:
    """The groups that are told, of all that there are; `of_groups` says what HAVING asks, and is not needed without."""
    top = aggregate.top
    if top is None:
        return shown
    if top.having is None:
        return _greatest(top, shown)
    if of_groups is None:
        raise ValueError("nobody knows what HAVING asks")
    rows = [_asked(aggregate, values) for values in shown.values()]
    holds = of_groups(top.having, rows)
    chosen = zip(shown.items(), holds, strict=True)
    return _greatest(top, {name: values for (name, values), is_one in chosen if is_one})


def _asked(aggregate: Aggregate, values: Mapping[str, Any]) -> dict[str, object]:
    """What HAVING may ask about a group: keys and numbers, null where they are not finite; the only one as `value`."""
    others = {one.name for one in aggregate.values if one.function in AS_JSON}
    asked = {
        name: _plain(value) for name, value in values.items() if name not in others
    }
    numbers = [one.name for one in aggregate.values]
    return {"value": asked.get(numbers[0]), **asked} if len(numbers) == 1 else asked


def _greatest(top: Top, shown: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The groups with the greatest values, or the least ones, of all or of each key; null is behind all."""
    if top.value is None:
        return shown

    def order(name: str) -> tuple[bool, float, str]:
        value = shown[name][top.value or ""]
        is_null = value is None or math.isnan(value)
        return is_null, 0.0 if is_null else -value if top.descending else value, name

    told: dict[Any, list[str]] = {}
    for name in sorted(shown, key=order):
        told.setdefault(shown[name][top.per] if top.per else None, []).append(name)
    kept = {name for names in told.values() for name in names[: top.limit]}
    return {name: values for name, values in shown.items() if name in kept}


def _value_of(
    asked: Value, values: Sequence[object], order: Sequence[tuple[Any, str]]
) -> object:
    """One of several values; counts are whole numbers."""
    known = [one for one in values if one is not None]
    if asked.function == "collect":
        different = sorted({_plain(one) for one in known} - {None})
        return different[:MOST_COLLECTED] + [None] * (len(different) > MOST_COLLECTED)
    if asked.function in ("first", "last"):
        rows = zip(order, map(_plain, values), strict=True)
        ordered = sorted((row for row in rows if row[1] is not None), key=_by_order)
        return ordered[0 if asked.function == "first" else -1][1] if ordered else None
    if asked.function.startswith("count"):
        return int(value_of(asked.function, known) or 0)
    if asked.function in OF_WAYS:  # each row of an object says the same
        return known[0] if known else None
    if asked.function not in _SPREAD:
        return value_of(asked.function, known)
    numbers = [float(one) for one in known]  # type: ignore[arg-type] # they are checked at registration
    if asked.share is not None:
        return float(np.quantile(numbers, asked.share)) if numbers else None
    least, of = _SPREAD[asked.function]
    return of(numbers) if len(numbers) >= least else None


def _by_order(row: tuple[tuple[Any, str], object]) -> tuple[Any, str]:
    return row[0]


def _plain(value: Any) -> Any:
    """A value as JSON has it; None for null and what is not finite."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return float(value) if math.isfinite(value) else None


_SPREAD: dict[str, tuple[int, Callable[[Sequence[float]], float]]] = {
    "var": (2, statistics.variance),
    "stddev": (2, statistics.stdev),
    "median": (1, statistics.median),
    "quantile": (1, max),
}
"""How values spread: how many there must be, and what is asked; which quantile is said beside it."""


def group_names(
    aggregate: Aggregate,
    fixes: Fixes,
    rows: Ints,
    partners: Objects,
    features: Callable[[], Features] | None = None,
) -> list[str]:
    """The group that each row is in: NULL without a value; quoted where a text looks like that, or as if it were."""
    if aggregate.function == "avgspd":
        return list(fixes.ids[rows])
    keys = _keys(aggregate, fixes, rows, partners, features)
    if aggregate.grouped_by == ("partner",):
        return ["NULL" if text is None else str(text) for text in keys[0]]
    return [name_of_keys([column[row] for column in keys]) for row in range(len(rows))]


def name_of_keys(key: Sequence[str | None]) -> str:
    """The name of a group by its keys: `*` without, of several a JSON list."""
    if not key:
        return "*"
    if len(key) == 1:
        return name_of(key[0])
    return json.dumps(list(key), separators=(",", ":"), ensure_ascii=False)


def name_of(text: str | None) -> str:
    """The name of a group: NULL without a value; in quotes where a text looks like that, or as if it were."""
    if text is None:
        return "NULL"
    is_odd = text == "NULL" or text.startswith("'")
    return "'" + text.replace("'", "''") + "'" if is_odd else text


def value_of(function: str, values: list[object]) -> float | None:
    """The value of a group whose arguments that are not null are these; None for none."""
    if function == "count":
        return float(len(values))
    if function == "count_distinct":
        return float(len(set(values)))
    if not values:
        return None
    numbers = [float(value) for value in values]  # type: ignore[arg-type] # they are checked at registration
    if function == "avg":
        return sum(numbers) / len(numbers)
    if function == "sum":
        return float(sum(numbers))
    return min(numbers) if function == "min" else max(numbers)
