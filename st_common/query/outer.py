"""What the rows of a query are called where another one asks about them: FROM (SELECT ..) r WHERE r.value > 3.

(SELECT * FROM s KNN (5, 1, 2))                      object
(SELECT speed FROM s JOIN zones ON ..)               object, partner, feature, speed
(SELECT line, COUNT(*) FROM s GROUP BY line)         object, line, value
(SELECT line, COUNT(*) AS n, AVG(v) FROM s ..)       object, line, n, avg(v)
(SELECT COUNT(*) FROM s)                             value
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from st_common.query.binding import Columns, bound, columns_of
from st_common.query.complaint import Complaint
from st_common.query.grammar.words import is_plain
from st_common.query.near_columns import names_near
from st_common.query.pair_columns import pair_names
from st_common.query.plan import AS_JSON, COUNTS, Outer, Plan, Value, has_value
from st_common.query.several import name_of_key, wrong_in_top

Source = Literal["object", "partner", "value", "selected"]
"""Which column of a row of changes has a column of rows; `selected` ones are among its fields."""

TYPES = MappingProxyType({"object": "VARCHAR", "partner": "VARCHAR", "value": "DOUBLE"})
"""Of the columns that are not selected, in DuckDB."""

_OF_NUMBERS = (
    *("sum", "avg", "min", "max"),
    *("stddev", "var", "median", "quantile"),
)
_NEEDS = MappingProxyType(
    {**dict.fromkeys(_OF_NUMBERS, "number"), **dict.fromkeys(AS_JSON, "plain")}
)


def sources_of(plan: Plan) -> dict[str, Source]:
    """By the name of each column of a plan's rows, what it is; those of the key first, the selected ones last.

    A group is `object`, and is called by its column too; a feature is `partner` and `feature`. A column that is
    selected by one of these names is not among them twice: `complaints_of_outer` sees to it that it is the same.
    """
    sources = _of_key(plan)
    for name in (name for name, _ in shown_of(plan)):
        if name.casefold() not in sources:
            sources[name] = "selected"
    called = {name.casefold() for name in sources}
    also = dict(_also_called(plan))
    return sources | {
        name: source for name, source in also.items() if name.casefold() not in called
    }


def shown_of(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The names and expressions of what rows of a plan show beside their key: selected columns, or keys and values."""
    grouped = plan.aggregate
    if grouped is None or grouped.function != "several":
        return plan.columns
    values = tuple((value.name, value.argument or "*") for value in grouped.values)
    return (*grouped.keys, *values)


def _of_key(plan: Plan) -> dict[str, Source]:
    """The columns that rows have without a selection."""
    grouped, sources = plan.aggregate, dict[str, Source]()
    names = {name.casefold() for name, _ in grouped.keys} if grouped else set[str]()
    # A key of this name is what people mean by it, and no name of a group.
    if (grouped is None or grouped.grouped_by) and "object" not in names:
        sources["object"] = "object"
    if grouped is None and plan.gives_pairs and plan.frame is None:
        sources["partner"] = "partner"
    if grouped is not None and has_value(grouped):
        sources["value"] = "value"
    return sources


def _also_called(plan: Plan) -> Iterator[tuple[str, Source]]:
    """Other names of columns of the key: a group's own, and `feature`."""
    grouped = plan.aggregate
    if grouped is not None and grouped.function != "several":
        keys = map(name_of_key, grouped.grouped_by)
        yield from ((key, "object") for key in keys if is_plain(key))
    is_joined = plan.join is not None and plan.gives_pairs
    if plan.aggregate is None and is_joined and plan.frame is None:
        yield "feature", "partner"


def columns_below(plan: Plan, attributes: Mapping[str, str]) -> Columns:
    """The columns that expressions among the columns of a plan may use, with their types in DuckDB."""
    tags = tuple(name for _, text in plan.columns for name in pair_names(text))
    is_pair = plan.pairs is not None
    is_near = any(names_near(text) for _, text in plan.columns)
    tags = () if is_pair else tags
    return columns_of(attributes, pair=is_pair, tags=tags, near=is_near)


def typed_columns(plan: Plan, fixes: Columns) -> Columns:
    """The columns of a plan's rows with their types in DuckDB.

    Args:
        plan: whose rows they are.
        fixes: the columns of the fixes that it is about.
    """
    types = dict(_selected_types(plan, fixes))
    return tuple(
        (name, types[name] if source == "selected" else TYPES[source])
        for name, source in sources_of(plan).items()
    )


def _selected_types(plan: Plan, fixes: Columns) -> Iterator[tuple[str, str]]:
    """What is shown beside the key, with types in DuckDB; "" of an expression that is wrong."""
    grouped = plan.aggregate
    if grouped is None or grouped.function != "several":
        names, texts = [name for name, _ in plan.columns], dict(plan.columns).values()
        types = (one.type for one in bound(list(texts), fixes))
        yield from zip(names, types, strict=True)
        return
    yield from ((name, "VARCHAR") for name, _ in grouped.keys)
    for value in grouped.values:
        yield value.name, type_of_value(value, fixes)


def type_of_value(value: Value, columns: Columns) -> str:
    """The type of one of several values in DuckDB; of lists, which are JSON, that of their text.

    Args:
        value: the value.
        columns: what its argument is over.
    """
    if value.function in COUNTS:
        return "BIGINT"
    if value.function == "collect":
        return "VARCHAR"
    if value.function not in AS_JSON:
        return "DOUBLE"
    (read,) = bound([value.argument or ""], columns)
    return {"number": "DOUBLE", "boolean": "BOOLEAN"}.get(read.kind, "VARCHAR")


def complaints_of_outer(plan: Plan, fixes: Columns) -> Iterator[Complaint]:
    """What is wrong with the expressions over the rows of a plan; nothing where nobody asks about its rows.

    Args:
        plan: the plan.
        fixes: the columns of the fixes that it is about.
    """
    if plan.outer is None:
        return
    yield from _hidden(plan)
    yield from _without_time(plan.outer)
    counted = plan.outer.aggregate
    wrong = wrong_in_top(counted) if counted is not None else ""
    if wrong:
        yield Complaint(at="outer select", message=wrong, hint="ORDER BY n LIMIT 3")
    columns = typed_columns(plan, fixes)
    if not all(type_ for _, type_ in columns):
        return  # an expression of the inner query is wrong, which is told of it
    for at, text, needs in _needed(plan.outer):
        (read,) = bound([text], columns)
        names = ", ".join(name for name, _ in columns)
        if read.error:
            yield Complaint(
                at=at, message=read.error, hint=f"columns of the rows: {names}"
            )
        elif not read.fits(needs):
            message = f"expected a {needs}, not a value of type {read.type}"
            yield Complaint(at=at, message=message, hint=f"{text} is none")


def _hidden(plan: Plan) -> Iterator[Complaint]:
    """Selected columns that are called as what every row has, and are something else."""
    own = set(sources_of(plan)) & {*TYPES}
    for name, text in shown_of(plan):
        if name.casefold() in own and text.casefold() != name.casefold():
            message = f"every row has {name.casefold()!r} of its own"
            hint = "give the column another name: ... AS name"
            yield Complaint(at="select", message=message, hint=hint)


def _without_time(outer: Outer) -> Iterator[Complaint]:
    """Values that are by the time of a fix: rows of a query are of no one time."""
    values = outer.aggregate.values if outer.aggregate is not None else ()
    for value in values:
        if value.function in ("first", "last"):
            message = f"{value.function.upper()} is of fixes, by their times; rows of a query have none"
            yield Complaint(
                at="outer select", message=message, hint="MIN, MAX or COLLECT"
            )


def _needed(outer: Outer) -> Iterator[tuple[str, str, str]]:
    """Of each expression the clause that has it, its text, and the kind of value that it must be."""
    if outer.where is not None:
        yield "outer where", outer.where, "boolean"
    counted = outer.aggregate
    if counted is None:
        return
    if counted.argument is not None:
        yield "outer select", counted.argument, _NEEDS.get(counted.function, "any")
    for value in counted.values:
        if value.argument is not None:
            yield "outer select", value.argument, _NEEDS.get(value.function, "any")
    for key in counted.grouped_by:
        yield "outer group", key, "any"
