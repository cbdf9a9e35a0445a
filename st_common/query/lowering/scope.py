"""What the names before a dot mean in a query: its stream, and the layer or the other object that it joins."""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.problem import did_you_mean

Joined = Literal["nothing", "layer", "stream"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """`label` and `other_label` are how errors call the stream and what it joins."""

    label: str
    own: frozenset[str]
    joined: Joined = "nothing"
    other_label: str = ""
    other: frozenset[str] = frozenset()

    def is_other(self, column: exp.Column) -> bool:
        """Whether a column belongs to what is joined; an unqualified one is the stream's."""
        table = column.args.get("table")
        if table is None or table.name in self.own:
            return False
        if table.name in self.other:
            return True
        known = self.own | self.other
        hint = did_you_mean(table.name, known) or f"known: {', '.join(sorted(known))}"
        raise Refused(f"unknown name {table.name!r}", span_of(table), hint)


def scope_of(source: exp.Expr, join: exp.Expr | None) -> Scope:
    """The names of a FROM and of a JOIN behind it."""
    own = frozenset({source.name, source.alias_or_name})
    if join is None:
        return Scope(label=source.alias_or_name, own=own)
    other = join.this
    if source.alias_or_name == other.alias_or_name:
        message = f"two things are called {other.alias_or_name!r}"
        raise Refused(message, span_of(other), "give the second one an alias: JOIN name alias ON ...")
    names = frozenset({other.name, other.alias_or_name})
    if source.name == other.name:  # only the labels tell them apart
        own, names = frozenset({source.alias_or_name}), frozenset({other.alias_or_name})
    pairs = source.name == other.name and not join.args.get("kind")
    return Scope(
        label=source.alias_or_name,
        own=own - {other.alias_or_name},
        joined="stream" if pairs else "layer",
        other_label=other.alias_or_name,
        other=names - {source.alias_or_name},
    )
