"""Expressions as canonical text: DuckDB's dialect, columns unqualified, quotes only where a name needs them.

Only what gives one value for one row, the same at every evaluation, is let through: no query, no table, no file, no
clock, no chance. Where SQL's precedence is read in two ways, parentheses are asked for.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from sqlglot import exp

from st_common.config.units import Measure
from st_common.query.grammar import words
from st_common.query.grammar.comparing import COMPARING
from st_common.query.grammar.nodes import SPATIAL, Exists, Refused, Span, span_of
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.lowering.cells import check_cell
from st_common.query.lowering.compared import MEASURE, check_units
from st_common.query.lowering.functions import AGGREGATES, FUNCTIONS
from st_common.query.lowering.nearness import with_places
from st_common.query.lowering.pairing import as_of_pair, measured
from st_common.query.lowering.scope import Scope
from st_common.query.lowering.tags import with_numbers
from st_common.query.lowering.zones import check_zone
from st_common.query.near_columns import CALLS, is_of_near
from st_common.query.pair_columns import MEASURES, is_of_pair
from st_common.query.problem import did_you_mean

Needs = Literal["any", "boolean", "number", "text", "plain"]

COMPARISONS = (*COMPARING, exp.Is, exp.Like, exp.ILike)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe)
_ALLOWED = frozenset(
    (
        *COMPARISONS,
        *_ARITHMETIC,
        exp.And,
        exp.Or,
        exp.Not,
        exp.Paren,
        exp.Case,
        exp.If,
        exp.Anonymous,
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.Boolean,
        exp.Null,
        exp.Cast,
        exp.TryCast,
        exp.DataType,
        exp.Extract,
        exp.AtTimeZone,
        exp.Var,
    )
)
_WINDOWS = frozenset({"WINDOW", "TUMBLE", "HOP", "SESSION"})
"""What windows are called elsewhere, where they are functions behind GROUP BY."""
_PARTS = frozenset(
    {
        "YEAR",
        "MONTH",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "EPOCH",
        "DOW",
        "ISODOW",
        "DOY",
        "WEEK",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """An expression of a query: its canonical text, what value it needs, and where it and its columns stand.

    `measures` are its numbers with units: which of the text's literals each is, from left to right, and its place.
    `of_pair`: it names columns that a pair has and its first object has not; `of_feature`: the other is a feature.
    `of_near`: it names what a member is among the nearest (see `near_columns`).
    """

    text: str
    needs: Needs
    span: Span
    columns: tuple[tuple[str, Span], ...]
    partner: bool = False
    of_pair: bool = False
    of_feature: bool = False
    of_near: bool = False
    measures: tuple[tuple[int, Measure, Span], ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        """The columns of a feature that it names, as plans call them."""
        names = {name for name, _ in self.columns if is_of_pair(name)}
        return tuple(sorted(names)) if self.of_feature else ()

    @property
    def of_objects(self) -> bool:
        """Whether it names columns of a pair of two objects."""
        return self.of_pair and not self.of_feature


def term_of(
    node: exp.Expr,
    scope: Scope,
    *,
    needs: Needs = "any",
    partner: bool = False,
    of_pair: bool = False,
    of_near: bool = False,
) -> Term:
    """The term of a tree, which is changed by this. With `partner` the layer's `fid` may stand in it.

    With `of_pair`, where the stream is joined with itself, columns of the other object may, and what is measured
    between the two. With `of_near` `rank()` and `distance()` may, where rows are objects.

    Raises:
        Refused: at the first thing that an expression cannot have.
    """
    span = span_of(node)
    of_pair = of_pair and scope.joined in ("stream", "layer")
    of_near = of_near and scope.joined in ("nothing", "layer")
    root = with_places(node.unnest()) if of_near else node.unnest()
    root = _with_pair(root, scope) if of_pair else root
    columns: list[tuple[str, Span]] = []
    for each in list(root.walk()):
        _check(each, span)
        if isinstance(each, exp.Column):
            columns.append(_resolved(each, scope, partner=partner, of_pair=of_pair))
        elif isinstance(each, exp.Identifier):
            each.set("quoted", not words.is_plain(each.name))
    measures = _measures(root)
    return Term(
        text=text_of(root),
        needs=needs,
        span=span,
        columns=tuple(columns),
        partner=partner,
        of_pair=of_pair and any(is_of_pair(name) for name, _ in columns),
        of_feature=of_pair and scope.joined == "layer",
        of_near=of_near and any(is_of_near(name) for name, _ in columns),
        measures=measures,
    )


def _measures(root: exp.Expr) -> tuple[tuple[int, Measure, Span], ...]:
    """The numbers of a tree that have units: see `Term`."""
    return tuple(
        (at, each.meta[MEASURE], span_of(each))
        for at, each in enumerate(root.find_all(exp.Literal, bfs=False))
        if MEASURE in each.meta
    )


def _with_pair(root: exp.Expr, scope: Scope) -> exp.Expr:
    """The tree with what is said of a pair as plans say it."""
    told = measured(root, scope)
    if scope.joined == "stream":
        return told
    return with_numbers(told, scope, COMPARISONS, MEASURE)


def shifted(term: Term, by: int) -> Term:
    """The term with all its places moved by so many characters."""

    def moved(span: Span) -> Span:
        return span[0] + by, span[1] + by

    columns = tuple((name, moved(span)) for name, span in term.columns)
    measures = tuple((at, measure, moved(span)) for at, measure, span in term.measures)
    return replace(term, span=moved(term.span), columns=columns, measures=measures)


def is_same(one: str, other: str) -> bool:
    """Whether two canonical texts say the same; names are the same in any case, texts in quotes are not."""
    return one == other or _folded(one) == _folded(other)


def _folded(text: str) -> str:
    tree = expression_of(text)
    for column in tree.find_all(exp.Column):
        column.this.set("this", column.name.casefold())
    return text_of(tree)


def and_of(terms: list[Term], trees: list[exp.Expr]) -> Term:
    """One condition of several that all hold; `trees` are what the terms were made of."""
    span = min(term.span[0] for term in terms), max(term.span[1] for term in terms)
    loose = [isinstance(tree.unnest(), exp.Or) and len(terms) > 1 for tree in trees]
    texts = [
        f"({term.text})" if wrapped else term.text
        for term, wrapped in zip(terms, loose, strict=True)
    ]
    columns = tuple(column for term in terms for column in term.columns)
    counts = (len(list(tree.find_all(exp.Literal))) for tree in trees)
    before = accumulate(counts, initial=0)
    measures = tuple(
        (first + at, measure, place)
        for first, term in zip(before, terms, strict=False)
        for at, measure, place in term.measures
    )
    return Term(
        text=" AND ".join(texts),
        needs="boolean",
        span=span,
        columns=columns,
        of_pair=any(term.of_pair for term in terms),
        of_feature=any(term.of_feature for term in terms),
        measures=measures,
    )


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a condition joins by AND, in order, without parentheses around it."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        bare = each.unnest()
        if isinstance(bare, exp.And):
            waiting += [bare.expression, bare.this]
        else:
            yield each


def _check(node: exp.Expr, whole: Span) -> None:
    if type(node) not in _ALLOWED:
        _refuse_kind(node, whole)
    check = _CHECKS.get(type(node).__name__)
    if check is not None:
        check(node, whole)
    if isinstance(node, COMPARISONS):
        check_units(node)
    loose = (
        (*COMPARISONS, exp.Not)
        if isinstance(node, (*COMPARISONS, *_ARITHMETIC))
        else ()
    )
    for side in node.iter_expressions() if loose else ():
        if isinstance(side, loose):
            hint = "put parentheses around what belongs together"
            raise Refused("this can be read in two ways", _place(side, whole), hint)


def _refuse_kind(node: exp.Expr, whole: Span) -> None:
    name = next(
        (name for kind, name in SPATIAL.items() if isinstance(node, kind)), None
    )
    if name is not None:
        hint = f"it stands after ON: JOIN layer ON {name}(...)"
        raise Refused(f"{name} has no place here", _place(node, whole), hint)
    if isinstance(node, Exists):
        message = "EXISTS stands in WHERE, alone or joined by AND to what else is asked"
        hint = "WHERE a = 1 AND NOT EXISTS (SELECT 1 FROM layer WHERE ..)"
        raise Refused(message, _place(node, whole), hint)
    if isinstance(node, exp.Star):
        raise Refused(
            "* has no place here",
            _place(node, whole),
            "COUNT(*) counts, SELECT * takes everything",
        )
    if isinstance(node, exp.Distinct):
        raise Refused(
            "DISTINCT has no place here",
            _place(node, whole),
            "SELECT DISTINCT x, or COUNT(DISTINCT x)",
        )
    message = f"{type(node).__name__} has no place in an expression"
    raise Refused(
        message,
        _place(node, whole),
        "comparisons, arithmetic, AND, OR, CASE, CAST and functions of a row",
    )


def _place(node: exp.Expr, whole: Span) -> Span:
    span = span_of(node)
    return span if span[1] else whole


def _check_call(node: exp.Expr, whole: Span) -> None:
    name = node.name.upper()
    if name in AGGREGATES:
        hint = "nothing is computed from it there; HAVING asks about it, and so does the WHERE around FROM (SELECT ..)"
        raise Refused(
            f"{name} stands alone in the list after SELECT", _place(node, whole), hint
        )
    if name in CALLS and not node.expressions:
        hint = "among the columns after SELECT, of a query with KNN (k, ..)"
        raise Refused(f"{name.lower()}() has no place here", _place(node, whole), hint)
    if name in MEASURES:
        hint = "in WHERE, and as a column beside no aggregate, of a stream that is joined with itself or with a layer"
        raise Refused(f"{name} has no place here", _place(node, whole), hint)
    if name in _WINDOWS:
        message = f"{name} is no function: a window is a clause of its own"
        hint = "[RANGE '5 min', SLIDE '5 min'] behind the stream, or WINDOW 5 min for who was lately there"
        raise Refused(message, _place(node, whole), hint)
    if name not in FUNCTIONS:
        hint = (
            did_you_mean(name, FUNCTIONS)
            or "see the query language's list of functions"
        )
        raise Refused(f"unknown function {name}", _place(node, whole), hint)
    _check_count(name, node, whole)
    node.set("this", name)
    check_cell(node, _place(node, whole))


def _check_count(name: str, node: exp.Expr, whole: Span) -> None:
    """The number of a function's arguments."""
    least, most = FUNCTIONS[name]
    if not least <= len(node.expressions) <= most:
        count = (
            f"{least}"
            if least == most
            else f"{least} to {most}"
            if most < len(FUNCTIONS)
            else f"at least {least}"
        )
        message = f"{name} takes {count} argument{'' if count == '1' else 's'}, not {len(node.expressions)}"
        raise Refused(message, _place(node, whole))


def _check_literal(node: exp.Expr, whole: Span) -> None:
    if node.args.get("is_string"):
        if "\0" in node.this:
            raise Refused("a text cannot hold the character NUL", _place(node, whole))
    elif not math.isfinite(float(node.this)):
        raise Refused("the number is too large", _place(node, whole))


def _check_part(node: exp.Expr, whole: Span) -> None:
    part = node.this.name.upper()
    if part not in _PARTS:
        hint = did_you_mean(part, _PARTS) or ", ".join(sorted(_PARTS))
        raise Refused(f"unknown part {part!r} of a time", _place(node, whole), hint)


_CHECKS: dict[str, Callable[[exp.Expr, Span], None]] = {
    "Anonymous": _check_call,
    "Literal": _check_literal,
    "Extract": _check_part,
    "AtTimeZone": lambda node, whole: check_zone(node, _place(node, whole)),
}


def _resolved(
    column: exp.Column, scope: Scope, *, partner: bool, of_pair: bool
) -> tuple[str, Span]:
    span = span_of(column)
    if not isinstance(column.this, exp.Identifier) or column.args.get("db"):
        raise Refused("expected a column", span, f"{scope.label}.name, or name alone")
    if of_pair and as_of_pair(column, scope):
        return column.name, span
    if scope.is_other(column):
        if not (partner and scope.joined == "layer"):
            raise Refused(
                f"{_shown(column)} has no place here", span, _other_hint(scope)
            )
        if column.name.lower() != "fid":
            raise Refused(
                f"unknown column {_shown(column)!r}",
                span,
                f"GROUP BY {scope.other_label}.fid",
            )
        column.set("this", exp.to_identifier("partner"))
        column.set("table", None)
        return "partner", span
    of_fixes = partner and scope.joined != "rows"
    if of_fixes and column.name.lower() == "partner":
        raise Refused(
            "partner is not a column of the stream",
            span,
            "GROUP BY layer.fid groups by the partner",
        )
    column.set("table", None)
    return column.name, span


def _other_hint(scope: Scope) -> str:
    if scope.joined == "layer":
        label = scope.other_label
        return f"of the layer: tags in WHERE and among the columns after SELECT, {label}.fid in GROUP BY"
    return f"columns of {scope.other_label} stand in WHERE, and among the columns after SELECT"


def _shown(column: exp.Column) -> str:
    return f"{column.table}.{column.name}"
