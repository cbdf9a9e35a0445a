"""Each measure of one attribute, on one day."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.contracts import DataRule
from st_common.quality.day_data import DayData
from st_common.quality.measuring import EXAMPLES, MEASURED, NO_USUAL, Observed
from st_common.quality.shape import Level

_COMPARED = {"minimum": pc.greater_equal, "maximum": pc.less_equal}


def observe(data: DayData, rule: DataRule) -> Observed:
    """What the measure of a rule is on a day.

    Args:
        data: the day.
        rule: of the stream's contract.

    Returns:
        Failed where the column that it names is not in the table.
    """
    if rule.column is None:
        return MEASURED[rule.measure](data, rule.arguments)
    if rule.column not in data.fixes.column_names:
        if not len(data.fixes):
            return Observed(why="the day has no fixes")
        return Observed(why=f"positions has no column {rule.column}", has_failed=True)
    return _MEASURED[rule.measure](data, rule.column, rule.arguments)


def _outside_share(
    data: DayData, column: str, arguments: Mapping[str, Any]
) -> Observed:
    values = data.fixes[column]
    inside = pc.is_valid(values)
    for key, bound in arguments.items():
        inside = pc.and_(
            inside, pc.fill_null(_COMPARED[key](values, bound), fill_value=False)
        )
    return _breaking(data, column, pc.invert(inside))


def _unknown_share(
    data: DayData, column: str, arguments: Mapping[str, Any]
) -> Observed:
    values = data.fixes[column]
    known = pa.array(arguments["values"]).cast(values.type)
    return _breaking(data, column, pc.invert(pc.is_in(values, value_set=known)))


def _null_share(data: DayData, column: str, _: Mapping[str, Any]) -> Observed:
    values = data.fixes[column]
    if not len(values):
        return Observed(why="the day has no fixes")
    return Observed(value=values.null_count / len(values))


def _level_to_usual(data: DayData, column: str, _: Mapping[str, Any]) -> Observed:
    return _to_usual(data, column, lambda level: level.mean)


def _spread_to_usual(data: DayData, column: str, _: Mapping[str, Any]) -> Observed:
    return _to_usual(data, column, lambda level: level.spread)


def _to_usual(data: DayData, column: str, number: Callable[[Level], float]) -> Observed:
    """A number of a day's values, of the same on usual days."""
    if data.usual is None:
        return NO_USUAL
    own = data.level(column)
    if own is None:
        return Observed(why=f"no fix of the day has {column}")
    usual = data.usual_level(data.usual, column)
    if usual is None or not number(usual):
        return Observed(why=f"{column} has no value, or but one, on usual days")
    return Observed(
        value=number(own) / number(usual),
        against=data.usual.said,
        usual=data.usual.name,
        examples=(f"{number(own):.4g} of {number(usual):.4g}",),
    )


def _breaking(data: DayData, column: str, breaks: pa.ChunkedArray) -> Observed:
    """The share of the values that are there which break a rule, with examples; a null breaks none.

    A fix of an object that is gone has no place: x and y of such are no values.
    """
    values = data.fixes[column]
    is_value = pc.is_valid(values)
    if column in {"x", "y"}:
        is_value = pc.and_(is_value, pc.invert(pc.is_nan(values)))
    count = pc.sum(is_value).as_py() or 0
    if not count:
        return Observed(why=f"no fix of the day has {column}")
    broken = data.fixes.filter(pc.and_(breaks, is_value))
    some = broken.slice(0, EXAMPLES).select(["object", "event_ts", column])
    return Observed(value=len(broken) / count, examples=tuple(some.to_pylist()))


_MEASURED: dict[str, Callable[[DayData, str, Mapping[str, Any]], Observed]] = {
    "outside_share": _outside_share,
    "unknown_share": _unknown_share,
    "null_share": _null_share,
    "level_to_usual": _level_to_usual,
    "spread_to_usual": _spread_to_usual,
}
