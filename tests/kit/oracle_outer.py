"""Queries about rows: what their expressions mean, and the answer above an answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from st_common.query.plan import Aggregate, Outer, Plan, has_value
from st_common.reference import outer as reference
from st_common.reference.aggregate import Shown
from tests.kit.oracle_rows import Pair

NAMES = (
    *("object", "partner", "value", "speed", "way_m", "odometer_m"),
    *("c0", "c1", "c2", "k0", "k1"),
)
"""What columns of rows in random plans are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a + says of a member."""

    value: float | None = None
    fields: str | None = None


def told_of(aggregate: Aggregate, groups: Mapping[str, Shown]) -> dict[Pair, Told]:
    """What is told of groups: their values, or of several what they show; one alone is their value as well."""
    told: dict[Pair, Told] = {}
    for name, shown in groups.items():
        if not isinstance(shown, Mapping):
            told[name, None] = Told(value=shown)
            continue
        values = [shown[value.name] for value in aggregate.values]
        is_one = has_value(aggregate) and values[0] is not None
        only = float(values[0]) if is_one else None
        told[name, None] = Told(value=only, fields=json.dumps(shown))
    return told


def _known(name: str, then: Callable[[Any], Any]) -> Callable[[reference.Row], Any]:
    """Null where the column is null, or is none of the row's."""
    return lambda row: None if row.get(name) is None else then(row[name])


EXPRESSIONS: dict[str, Callable[[reference.Row], Any]] = {}
for _column in NAMES:
    EXPRESSIONS |= {
        _column: _known(_column, lambda value: value),
        f"{_column} > 1": _known(_column, lambda value: value > 1),
        f"{_column} <= 4": _known(_column, lambda value: value <= 4),
        f"abs({_column}) > 2": _known(_column, lambda value: abs(value) > 2),
        f"{_column} * 2": _known(_column, lambda value: value * 2),
        f"{_column} <> 'a'": _known(_column, lambda value: value != "a"),
        f"{_column} IN ('b', 'bus')": _known(
            _column, lambda value: value in ("b", "bus")
        ),
        f"length({_column})": _known(_column, len),
    }
"""Texts of outer queries that random plans may use, and what they mean."""


def chosen_above(plan: Plan, now: Mapping[Pair, Told]) -> dict[Pair, Told]:
    """Those of these rows that the outer query of a plan chooses.

    Raises:
        KeyError: an expression is none of this module.
    """
    rows = {pair: _row(pair, told) for pair, told in now.items()}
    chosen = reference.chosen(plan.outer or Outer(), rows, _evaluated)
    return {pair: now[pair] for pair in chosen}


def answer_above(plan: Plan, counted: Mapping[Pair, Told]) -> dict[Pair, Told]:
    """The answer of the outer query of a plan, when these rows count.

    Raises:
        KeyError: an expression is none of this module.
    """
    outer = plan.outer or Outer()
    if outer.aggregate is None:
        return {**counted}
    rows = [_row(pair, told) for pair, told in counted.items()]
    values = reference.groups(outer.aggregate, rows, _evaluated, _of_groups)
    return told_of(outer.aggregate, values)


def _row(pair: Pair, told: Told) -> dict[str, Any]:
    fields = {} if told.fields is None else json.loads(told.fields)
    return {"object": pair[0], "partner": pair[1], "value": told.value, **fields}


def _evaluated(text: str, row: reference.Row) -> Any:
    return EXPRESSIONS[text](row)


def _of_groups(text: str, shown: Sequence[Mapping[str, object]]) -> list[Any]:
    return [EXPRESSIONS[text](group) for group in shown]
