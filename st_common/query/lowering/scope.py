"""What the names before a dot mean in a query: its stream, and the layer or the other object that it joins."""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, span_of
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


def scope_of(source: exp.Expr, join: exp.Expr | None) -> Scope:
    """The names of a FROM and of a JOIN behind it."""
    name, alias = source.name.casefold(), source.alias_or_name.casefold()
    own = frozenset({name, alias})
    if join is None:
        return Scope(label=source.alias_or_name, own=own)
    other = join.this
    other_name, other_alias = other.name.casefold(), other.alias_or_name.casefold()
    if alias == other_alias:
        message = f"two things are called {other.alias_or_name!r}"
        raise Refused(
            message,
            span_of(other),
            "give the second one an alias: JOIN name alias ON ...",
        )
    names = frozenset({other_name, other_alias})
    if name == other_name:  # only the labels tell them apart
        own, names = frozenset({alias}), frozenset({other_alias})
    pairs = name == other_name and not join.args.get("kind")
    return Scope(
        label=source.alias_or_name,
        own=own - {other_alias},
        joined="stream" if pairs else "layer",
        other_label=other.alias_or_name,
        other=names - {alias},
    )
