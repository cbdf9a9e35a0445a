"""The plan of CREATE STREAM: its rows say where they are, if they are anywhere (SPEC W6).

SELECT state FROM taxis INSIDE ..                     SELECT state, x, y FROM taxis INSIDE ..
SELECT RSTREAM (AVGSPD(*)) FROM trucks [RANGE ..]     SELECT RSTREAM (AVGSPD(*) AS avgspd, LAST(x) AS x, LAST(y) AS y)
SELECT line, COUNT(*) AS n .. GROUP BY line           as it is: where a line is, is a question with several answers
"""

from dataclasses import replace

from st_common.query.plan import Aggregate, Plan, Value

PLACE = ("x", "y")
_OBJECT = "object"


def with_place(plan: Plan) -> Plan:
    """The plan with x and y among what its rows show, where each row is of one object; else as it is.

    Members and pairs are where their (first) object is, values of an object where it was last, in its window or
    at all.
    What is called x or y already stays as it is.
    """
    if plan.outer is not None:
        return plan
    if plan.aggregate is None:
        return replace(plan, columns=_with_columns(plan.columns))
    keyed = [text.lower() for text in plan.aggregate.grouped_by]
    if keyed != [_OBJECT] or plan.aggregate.function == "distinct":
        return plan
    several = _as_several(plan.aggregate)
    names = {value.name.casefold() for value in several.values}
    lasts = tuple(
        Value(name=axis, function="last", argument=axis)
        for axis in PLACE
        if axis not in names
    )
    return replace(plan, aggregate=replace(several, values=(*several.values, *lasts)))


def _with_columns(columns: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The columns, and behind them those of the place that are not there."""
    names = {name.casefold() for name, _ in columns}
    return (*columns, *((axis, axis) for axis in PLACE if axis not in names))


def _as_several(aggregate: Aggregate) -> Aggregate:
    """One value of each object as the first of several, called by its function."""
    if aggregate.function == "several" or aggregate.function == "distinct":  # noqa: PLR1714 - for the type
        return aggregate
    value = Value(
        name=aggregate.function,
        function=aggregate.function,
        argument=aggregate.argument,
    )
    return Aggregate(function="several", values=(value,), keys=((_OBJECT, _OBJECT),))
