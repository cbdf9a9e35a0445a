"""What a query counts: one value of each group or several, by which keys, and which groups are told (SPEC G9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from st_common.record import values_of

_OfRows = Literal["count", "count_distinct", "sum", "avg", "min", "max", "avgspd"]
Function = Literal[_OfRows, "distinct", "several"]
ValueFunction = Literal[
    _OfRows,
    "stddev",
    "var",
    "median",
    "quantile",
    "first",
    "last",
    "collect",
    "travelled",
    "odometer",
]

MOST_VALUES = 32
"""Of one group: what is judged has room for as many in each row."""
MOST_COLLECTED = 100
"""Different values in one list; where there are more, null is the last."""
AS_JSON = ("first", "last", "collect")
"""Functions whose value is one of their argument, or a list of these, as JSON; those of all others are numbers."""
MOST_TOLD = 10_000
"""Groups that are the greatest, of all or of each key."""
OF_WAYS = ("avgspd", "travelled", "odometer")
"""Functions of the way of one object, in its window or since the query knows it, and of no argument."""
COUNTS = ("count", "count_distinct")
"""Functions whose value is a whole number, and 0 of nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One of several values of a group: it is called `name`; `argument` is an expression (None: `*`, or the object).

    `stddev` and `var` are of a sample; `share` says which quantile: 0 is the least, 1 the greatest value. `first` and
    `last` are by event time, of one time by the object's id; `collect` lists the different values in their order.
    `avgspd` is as in `Aggregate`, `travelled` the metres that the object came there, and `odometer` those since its way
    began: all three are of groups that are one object each.
    """

    name: str
    function: ValueFunction
    argument: str | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The groups with the greatest values, or the least ones: `limit` of all, or of those alike in the key `per`.

    `value` and `per` are names. Of groups with the same value the one whose name is first as text goes first; groups
    without a value go last. With `having`, canonical SQL over names of keys and numbers, they are chosen among the
    groups of which it holds; without a `limit`, and then without a value, these are all of them.
    """

    value: str | None = None
    limit: int | None = None
    descending: bool = False
    per: str | None = None
    having: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One value per group of an answer. `argument` is an expression (None: `*`), `group` one or None.

    `distinct` has a group and no value: the distinct values of `group`. `avgspd` is the average speed of each object
    over its fixes in a frame, in metres per second, and has no group of its own (CQL-S, SPEC W7).
    `several` has `values` in the place of an argument, and names of `keys` with their expressions in that of a group;
    with a `top` only some of its groups are told.
    """

    function: Function
    argument: str | None = None
    group: str | None = None
    values: tuple[Value, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    top: Top | None = None

    @property
    def grouped_by(self) -> tuple[str, ...]:
        """The expressions whose values name the groups: of average speeds the object; none where there is one group."""
        if self.function == "avgspd":
            return ("object",)
        if self.function == "several":
            return tuple(text for _, text in self.keys)
        return () if self.group is None else (self.group,)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The expressions that are counted, summed and so on."""
        given = (self.argument, *(value.argument for value in self.values))
        return tuple(text for text in given if text is not None)


def asks_ways(aggregate: Aggregate | None) -> bool:
    """Whether an average speed or a length of a way is asked for, alone or as one of several values."""
    if aggregate is None:
        return False
    functions = [value.function for value in aggregate.values]
    return not {aggregate.function, *functions}.isdisjoint(OF_WAYS)


def has_value(aggregate: Aggregate) -> bool:
    """Whether the one value of a group is that of a change: no distinct one, not one of several, and a number."""
    if aggregate.function == "several":
        functions = [value.function for value in aggregate.values]
        return len(functions) == 1 and functions[0] not in AS_JSON
    return aggregate.function != "distinct"


def aggregate_to_json(aggregate: Aggregate) -> dict[str, Any]:
    """An aggregate as JSON values without what is default."""
    written = values_of(aggregate)
    if aggregate.values:
        written["values"] = [values_of(value) for value in aggregate.values]
    if aggregate.top is not None:
        written["top"] = values_of(aggregate.top)
    return written


def aggregate_from_json(value: Mapping[str, Any]) -> Aggregate:
    """The aggregate that `aggregate_to_json` gave."""
    values = tuple([Value(**one) for one in value.get("values", ())])
    keys = tuple([(name, text) for name, text in value.get("keys", ())])
    top = Top(**value["top"]) if value.get("top") else None
    return Aggregate(**{**value, "values": values, "keys": keys, "top": top})
