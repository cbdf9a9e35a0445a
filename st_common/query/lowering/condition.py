"""ON and WHERE: what joins, what is chosen of the joined layer, and conditions on the fix."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from st_common.query.grammar.nodes import SPATIAL, Refused, span_of
from st_common.query.lowering.expression import Term, and_of, conjuncts, term_of
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.scope import Scope
from st_common.query.problem import did_you_mean

OWN_COLUMNS = ("fid", "kind")  # of a feature; other columns are its tags
_KIND, _FID = "kind", "fid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The conditions of a query: those that join, and all others."""

    joining: tuple[exp.Expr, ...] = ()
    others: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the others say: kinds and tags (the fid among them) of the layer, and the condition on the fix, if any."""

    kinds: list[str] = field(default_factory=list)
    tags: list[tuple[str, str]] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    trees: list[exp.Expr] = field(default_factory=list)

    @property
    def term(self) -> Term | None:
        """All conditions on the fix as one."""
        return and_of(self.terms, self.trees) if self.terms else None


def parts_of(join: exp.Expr | None, where: exp.Expr | None, scope: Scope) -> Parts:
    """The conditions of ON and WHERE. Where a comma joins, those of WHERE that are about both join."""
    others = tuple(conjuncts(where.this)) if where is not None else ()
    if join is None:
        return Parts(others=others)
    if join.args.get("on") is not None:
        on = tuple(conjuncts(join.args["on"]))
        return (
            Parts(joining=on, others=others)
            if scope.joined == "stream"
            else _split(on, others, scope)
        )
    joining = _joining(others, scope)
    if not joining:
        like = f"WHERE {scope.label}.a = {scope.other_label}.a, or ST_DWithin({scope.label}, {scope.other_label}, 5 m)"
        raise Refused(
            f"expected a condition in WHERE that joins {scope.other_label}",
            span_of(join.this),
            like,
        )
    return Parts(
        joining=joining, others=tuple(part for part in others if part not in joining)
    )


def parts_beside(join: exp.Expr, scope: Scope, clause: str) -> Parts:
    """The conditions of an EXISTS, or of ON (`clause`) where objects without a partner stay.

    About the stream itself those that are about both join, as where a comma does.

    Raises:
        Refused: nothing joins, or a column does not say which of two objects of one stream it is of.
    """
    if scope.joined == "layer":
        return parts_of(join, None, scope)
    asked = tuple(conjuncts(join.args["on"]))
    joining = _joining(asked, scope)
    if not joining:
        like = f"ST_DWithin({scope.label}, {scope.other_label}, 1 km), or {scope.label}.a = {scope.other_label}.a"
        message = f"expected a distance or a key in {clause}"
        raise Refused(message, span_of(join.args["on"]), like)
    others = tuple(part for part in asked if part not in joining)
    for part in others:
        _refuse_unqualified(part, scope)
    return Parts(joining=joining, others=others)


def is_nearest(condition: exp.Expr) -> bool:
    """Whether a condition is `NEAREST (a, b, 2)`."""
    return isinstance(condition, exp.Anonymous) and condition.name.upper() == "NEAREST"


def _refuse_unqualified(part: exp.Expr, scope: Scope) -> None:
    """In SQL a bare column in EXISTS is of the inner one, elsewhere here of the first: so it must say which."""
    sides = scope.own | scope.other
    for column in part.find_all(exp.Column):
        is_side = column.name.casefold() in sides  # as in distance(a, b)
        if column.args.get("table") is None and not is_side:
            like = f"{scope.label}.{column.name}, or {scope.other_label}.{column.name}"
            message = "expected a column of one of the two"
            raise Refused(message, span_of(column), like)


def _joining(parts: tuple[exp.Expr, ...], scope: Scope) -> tuple[exp.Expr, ...]:
    """Those that join; a word alone beside a key is a column when nothing else joins."""
    clear = tuple(part for part in parts if _joins(part, scope, words=False))
    return clear or tuple(part for part in parts if _joins(part, scope, words=True))


def _joins(part: exp.Expr, scope: Scope, *, words: bool) -> bool:
    """Whether a condition joins: it is spatial, asks for the nearest, or says that something of both is equal."""
    bare = part.unnest()
    if isinstance(bare, tuple(SPATIAL)) or is_nearest(bare):
        return True
    if not isinstance(bare, exp.EQ):
        return False
    if scope.joined == "stream":
        return len({scope.is_other(column) for column in bare.find_all(exp.Column)}) > 1
    return any(
        _is_key(*sides, scope, words=words)
        for sides in ((bare.this, bare.expression), (bare.expression, bare.this))
    )


def conditions_of(
    parts: Sequence[exp.Expr], scope: Scope, gathered: Gathered
) -> Conditions:
    """What conditions say that join nothing; each that is wrong is gathered."""
    conditions = Conditions()
    for part in parts:
        gathered.attempt(partial(_read, part, scope, conditions), None)
    return conditions


def _split(
    on: tuple[exp.Expr, ...], others: tuple[exp.Expr, ...], scope: Scope
) -> Parts:
    """Of a join with a layer one part of ON joins; a text that equals a key does when nothing else is there."""
    joining = _joining(on, scope)
    if not joining:
        keys = (
            part
            for part in on
            if isinstance(part.unnest(), exp.EQ) and _is_about_layer(part, scope)
        )
        joining = (next(keys, on[0]),)
    return Parts(
        joining=joining,
        others=(*(part for part in on if part not in joining), *others),
    )


def _is_key(column: exp.Expr, value: exp.Expr, scope: Scope, *, words: bool) -> bool:
    bare, other = column.unnest(), value.unnest()
    text = isinstance(other, exp.Literal) and other.is_string
    return (
        isinstance(bare, exp.Column)
        and scope.is_other(bare)
        and not text
        and (words or not _is_word(other))
    )


def _is_word(node: exp.Expr) -> bool:
    """A word in double quotes, or a bare one, where a text in single quotes was meant."""
    return isinstance(node, exp.Column) and not node.table


def _read(part: exp.Expr, scope: Scope, into: Conditions) -> None:
    is_choice = isinstance(part.unnest(), exp.EQ | exp.In) and scope.joined == "layer"
    if not (is_choice and _is_about_layer(part, scope)):
        into.terms.append(term_of(part, scope, needs="boolean", of_pair=True))
        into.trees.append(part)
        return
    name, texts = _choice(part.unnest(), scope)
    if name == _KIND and into.kinds:
        hint = f"{scope.other_label}.kind IN ('a', 'b')"
        raise Refused("the kinds are chosen twice", span_of(part), hint)
    if name == _KIND:
        into.kinds.extend(texts)
    else:
        into.tags.append((name, texts[0]))


def _is_about_layer(part: exp.Expr, scope: Scope) -> bool:
    return any(scope.is_other(column) for column in part.find_all(exp.Column))


def _choice(condition: exp.Expr, scope: Scope) -> tuple[str, tuple[str, ...]]:
    """The name and the texts of `layer.kind = 'a'`, `layer.kind IN ('a', 'b')` or `layer.tag = 'a'`."""
    column, texts = _sides(condition, scope)
    pattern = _pattern(scope)
    if not (isinstance(column, exp.Column) and scope.is_other(column)):
        raise Refused(f"expected {scope.other_label}.{_KIND}", span_of(column), pattern)
    name = _name(column)
    for text in texts:
        if not (isinstance(text, exp.Literal) and text.is_string):
            hint = (
                f"'{text.name}'"
                if isinstance(text, exp.Column) and not text.table
                else pattern
            )
            raise Refused(
                "expected a text in single quotes",
                span_of(text) or span_of(condition),
                hint,
            )
    if name == _KIND and not all(text.this for text in texts):
        raise Refused("expected at least one kind", span_of(condition), pattern)
    if name != _KIND and len(texts) != 1:
        what = "the fid" if name == _FID else "a tag"
        raise Refused(
            f"{what} equals one text",
            span_of(condition),
            f"{scope.other_label}.{name} = 'x'",
        )
    return name, tuple(text.this for text in texts)


def _name(column: exp.Column) -> str:
    """`kind`, `fid`, or the name of a tag: one that looks like a column of features stands in double quotes."""
    name, quoted = column.name, column.this.args.get("quoted")
    if name == _KIND or (name.lower() == _KIND and not quoted):
        return _KIND
    if name == _FID or (name.lower() == _FID and not quoted):
        return _FID
    near = did_you_mean(name, OWN_COLUMNS)
    if near and not quoted:
        raise Refused(
            f"unknown column {name!r}",
            span_of(column),
            f"{near} A tag of this name stands in double quotes",
        )
    if not name:
        raise Refused("expected the name of a tag", span_of(column))
    return name


def _sides(condition: exp.Expr, scope: Scope) -> tuple[exp.Expr, list[exp.Expr]]:
    if isinstance(condition, exp.EQ):
        column, text = condition.this, condition.expression
        return (text, [column]) if isinstance(column, exp.Literal) else (column, [text])
    if isinstance(condition, exp.In):
        return condition.this, condition.expressions
    message = "a condition chooses kinds and tags of the layer, and nothing else of it"
    raise Refused(message, span_of(condition), _pattern(scope))


def _pattern(scope: Scope) -> str:
    return f"{scope.other_label}.{_KIND} = 'forest', or {scope.other_label}.{_KIND} IN ('forest', 'park')"
