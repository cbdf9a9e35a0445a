"""What the names before a dot mean in a query: its stream, and the layer or the other object that it joins."""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, Source, span_of
from st_common.query.group_names import split_name
from st_common.query.problem import did_you_mean

Joined = Literal["nothing", "layer", "stream", "rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names of both, in small letters; `label` and `other_label` are how errors call them."""

    label: str
    own: frozenset[str]
    joined: Joined = "nothing"
    other_label: str = ""
    other: frozenset[str] = frozenset()

    def is_other(self, column: exp.Column) -> bool:
        """Whether a column belongs to what is joined; an unqualified one is the stream's."""
        table = column.args.get("table")
        if table is None or table.name.casefold() in self.own:
            return False
        if table.name.casefold() in self.other:
            return True
        known = self.own | self.other
        hint = did_you_mean(table.name, known) or f"known: {', '.join(sorted(known))}"
        raise Refused(f"unknown name {table.name!r}", span_of(table), hint)


def is_same_table(source: exp.Expr, other: exp.Expr) -> bool:
    """Whether two sources may be one stream: they are called alike, and no two groups are said."""
    group, name = split_name(source.name.casefold())
    other_group, other_name = split_name(other.name.casefold())
    return name == other_name and (group == other_group or not (group and other_group))


def stream_of(source: exp.Expr, join: exp.Expr | None) -> str:
    """What the stream is called, with its group where either side of a join with itself says it."""
    name: str = source.name
    if join is None or join.args.get("kind") or split_name(name)[0]:
        return name
    other: str = join.this.name
    return other if is_same_table(source, join.this) else name


def with_labels(select: exp.Expr) -> None:
    """Writes columns that say the group of their table, as metro.buses.speed, by the label of the table.

    One of a table that stands there twice is left, and refused where it is read.
    """
    columns = [one for one in select.find_all(exp.Column) if one.args.get("db")]
    sources = [one for one in select.find_all(Source) if columns]
    names = [one.name.casefold() for one in sources]
    for column in columns:
        full = f"{column.args['db'].name}.{column.table}".casefold()
        if names.count(full) == 1 and not column.args.get("catalog"):
            label = sources[names.index(full)].alias_or_name
            column.args["table"].set("this", label)
            column.set("db", None)


def scope_of(source: exp.Expr, join: exp.Expr | None) -> Scope:
    """The names of a FROM and of a JOIN behind it."""
    alias = source.alias_or_name.casefold()
    own = frozenset({*_names_of(source), alias})
    if join is None:
        return Scope(label=source.alias_or_name, own=own)
    other = join.this
    other_alias = other.alias_or_name.casefold()
    if alias == other_alias:
        message = f"two things are called {other.alias_or_name!r}"
        raise Refused(
            message,
            span_of(other),
            "give the second one an alias: JOIN name alias ON ...",
        )
    names = frozenset({*_names_of(other), other_alias})
    # What both are called tells them not apart.
    both = _names_of(source) & _names_of(other)
    own, names = own - both | {alias}, names - both | {other_alias}
    pairs = is_same_table(source, other) and not join.args.get("kind")
    return Scope(
        label=source.alias_or_name,
        own=own - {other_alias},
        joined="stream" if pairs else "layer",
        other_label=other.alias_or_name,
        other=names - {alias},
    )


def _names_of(source: exp.Expr) -> frozenset[str]:
    """The names of a table in small letters: its own, and that with its group where it is said."""
    name = source.name.casefold()
    return frozenset({name, split_name(name)[1]})
