"""Operators as every database has them: source, selection, groups, columns; and what of the answer is told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.binding import PARTNER, bound
from st_common.query.complaint import Complaint
from st_common.query.outer import type_of_value
from st_common.query.pair_columns import (
    is_other_column,
    names_pair,
    of_feature,
    pair_names,
)
from st_common.query.plan import (
    COUNTS,
    OF_WAYS,
    Aggregate,
    Emit,
    Order,
    Value,
    asks_ways,
)
from st_common.query.several import name_of_key, wrong_in_top
from st_common.query.tree.node import Above, Column, Node, beside, excluded, walk

_UNIT = {"avgspd": "m/s", "travelled": "m", "odometer": "m"}
_OF_ARGUMENT = (
    *("sum", "avg", "min", "max"),
    *("stddev", "median", "quantile", "first", "last"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """The last fix of every object of a stream; `fields_of_fixes` are the columns that every fix has."""

    at: ClassVar[str] = "stream"
    parts: ClassVar[Mapping[str, str]] = {"stream": "stream"}
    only_selects: ClassVar[bool] = True
    stream: str
    fix_columns: tuple[Column, ...] = ()

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "FROM"

    @property
    def inputs(self) -> tuple[Node, ...]:
        """None: the stream's log stands below."""
        return ()

    @property
    def key(self) -> tuple[str, ...]:
        """See `Node`."""
        return ("object",)

    def columns(self) -> tuple[Column, ...]:
        """See `Node`."""
        return self.fix_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Above):
    """The rows that satisfy a condition."""

    at: ClassVar[str] = "where"
    parts: ClassVar[Mapping[str, str]] = {"where": "where"}
    only_selects: ClassVar[bool] = True
    where: str

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "WHERE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Above):
    """One value for each group of rows, found anew when one of its rows changed, came or left."""

    at: ClassVar[str] = "select"
    parts: ClassVar[Mapping[str, str]] = {"aggregate": "aggregate"}
    aggregate: Aggregate

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "an aggregate"

    @property
    def ticks_itself(self) -> bool:
        """A value is of all rows at one time."""
        return True

    @property
    def key(self) -> tuple[str, ...]:
        """The expressions that name the groups; empty where there is one group."""
        return self.aggregate.grouped_by

    def columns(self) -> tuple[Column, ...]:
        """The group and its value, or its values; distinct values have no other."""
        counted = self.aggregate
        if counted.function == "several":
            keys = [Column(name=name, type="VARCHAR") for name, _ in counted.keys]
            return (*keys, *(self._value(value) for value in counted.values))
        group = [Column(name=name_of_key(text), type="VARCHAR") for text in self.key]
        if counted.function == "distinct":
            return tuple(group)
        value = Column(
            name=counted.function,
            type="DOUBLE",
            unit=self._unit(counted.function, counted.argument),
            nullable=counted.function not in COUNTS,
        )
        return (*group, value)

    def _value(self, value: Value) -> Column:
        """One of several values."""
        below = tuple((one.name, one.type) for one in self.input.columns())
        return Column(
            name=value.name,
            type=type_of_value(value, below),
            unit=self._unit(value.function, value.argument),
            nullable=value.function not in (*COUNTS, "collect"),
        )

    def refused(self) -> Iterator[Complaint]:
        """Features are of objects that are joined with a layer; a speed is one over fixes, of each object."""
        is_of_fixes = "fix" in self.input.key
        by = self.aggregate.grouped_by
        if is_of_fixes and (PARTNER in by or any(map(names_pair, by))):
            message = "GROUP BY a feature and a window in brackets exclude each other"
            hint = "register one query for each"
            yield Complaint(at="group", message=message, hint=hint)
        has_window = any(one.at == "window" for one in walk(self.input))
        if has_window and any(map(names_pair, by)):
            message = "GROUP BY a tag and WINDOW exclude each other"
            hint = "group by the feature: layer.fid"
            yield Complaint(at="group", message=message, hint=hint)
        if asks_ways(self.aggregate):
            yield from self._of_ways(is_of_fixes=is_of_fixes)
        wrong = wrong_in_top(self.aggregate)
        if wrong:
            yield Complaint(at="top", message=wrong, hint="ORDER BY n DESC LIMIT 3")

    def _of_ways(self, *, is_of_fixes: bool) -> Iterator[Complaint]:
        """That a value of ways is of no fixes, or of others than those of each object."""
        functions = (
            self.aggregate.function,
            *(v.function for v in self.aggregate.values),
        )
        name = next(one for one in functions if one in OF_WAYS).upper()
        if not is_of_fixes:
            message = f"{name} needs a window in brackets after the stream"
            hint = (
                "FROM stream [RANGE BY 50 km RATTR SPACE, SLIDE BY 10 km SATTR SPACE]"
            )
            yield Complaint(at=self.at, message=message, hint=hint)
        if [key.lower() for key in self.key] != ["object"]:
            message = f"{name} is of each object and has no other group"
            yield Complaint(at="group", message=message, hint="GROUP BY object")

    def _unit(self, function: str, argument: str | None) -> str:
        """The unit of a value: that of the column that is summed, if it is a column."""
        if function in _OF_ARGUMENT:
            units = {one.name: one.unit for one in self.input.columns()}
            return units.get(argument or "", "")
        return _UNIT.get(function, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Above):
    """The columns that a query selects: names and expressions, beside the key of its rows."""

    at: ClassVar[str] = "select"
    parts: ClassVar[Mapping[str, str]] = {"columns": "selected"}
    only_selects: ClassVar[bool] = True
    takes_events: ClassVar[bool] = True
    selected: tuple[tuple[str, str], ...]

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "columns"

    def columns(self) -> tuple[Column, ...]:
        """The selected ones, with the types that DuckDB gives to them."""
        below = {one.name: one for one in self.input.columns()}
        types = bound(
            [text for _, text in self.selected],
            tuple((one.name, one.type) for one in below.values()) + self._tags(),
        )
        out = []
        for (name, text), type_ in zip(self.selected, types, strict=True):
            same = below.get(_called(text))
            unit, nullable = (same.unit, same.nullable) if same else ("", True)
            out.append(Column(name=name, type=type_.type, unit=unit, nullable=nullable))
        events = [one for node in walk(self.input) for one in node.event_columns()]
        return beside(out, events)

    def _tags(self) -> tuple[tuple[str, str], ...]:
        """The tags of features that are named, with their types; they are there whatever a feature has."""
        if "feature" not in self.key:
            return ()
        return tuple(
            of_feature(name for _, text in self.selected for name in pair_names(text))
        )

    def refused(self) -> Iterator[Complaint]:
        """Columns are of rows of fixes: groups have their names and values."""
        groups = [one for one in walk(self.input) if isinstance(one, Group)]
        yield from excluded(self, groups, "register one query for each")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Above):
    """The answer as it is told: its changes, or one of CQL's streams; `order` is the option `plan` of the query."""

    at: ClassVar[str] = "emit"
    parts: ClassVar[Mapping[str, str]] = {"emit": "emit", "order": "order"}
    takes_events: ClassVar[bool] = True
    emit: Emit = "changes"
    order: Order = "auto"

    @property
    def noun(self) -> str:
        """See `Node`."""
        return emit_in_words(self.emit)

    @property
    def ticks_itself(self) -> bool:
        """RSTREAM tells all rows again at one time."""
        return self.emit == "rstream"

    def refused(self) -> Iterator[Complaint]:
        """Further fixes of members are told where rows are members; what of events is told they say themselves."""
        if self.emit == "every" and "fix" in _keys_below(self):
            message = "EMIT EVERY and a window in brackets exclude each other"
            hint = "RSTREAM tells what stays"
            yield Complaint(at=self.at, message=message, hint=hint)
        rows = [one for one in walk(self.input) if one.is_query]
        if self.emit == "every":
            yield from excluded(
                self, rows, "rows have no fixes; RSTREAM tells what stays"
            )
        for events in (one for one in walk(self.input) if one.gives_events):
            yield from self._of_events(events)

    def _of_events(self, events: Node) -> Iterator[Complaint]:
        """That events are told in one way, and found in one order."""
        is_told = self.emit == "changes" or (
            self.emit == "every" and events.tells_every
        )
        if not is_told:
            yield from excluded(
                self, [events], f"{events.noun} says itself what is told"
            )
        if self.order != "auto":
            message = f"the option plan and {events.noun} exclude each other"
            hint = "leave it out: there is one order"
            yield Complaint(at="options", message=message, hint=hint)


def emit_in_words(emit: Emit) -> str:
    """What is told, as a statement says it."""
    return "EMIT EVERY" if emit == "every" else emit.upper()


def _called(text: str) -> str:
    """The name of a column that plans call otherwise than people, without its quotes; any other text as it is."""
    name = text[1:-1]
    return name if is_other_column(name) else text


def _keys_below(node: Node) -> set[str]:
    """What tells rows apart anywhere below a node."""
    return {name for below in walk(node) for name in below.key}
