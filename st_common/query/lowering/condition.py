"""WHERE: kinds of the joined layer beside a condition on the fix."""

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.lowering.expression import Term, and_of, conjuncts, term_of
from st_common.query.lowering.scope import Scope
from st_common.query.problem import did_you_mean

_KIND = "kind"


def condition_of(where: exp.Expr, scope: Scope) -> tuple[tuple[str, ...], Term | None]:
    """The kinds that a WHERE chooses from the layer, and the condition on the fix (None when there is none)."""
    kinds: tuple[str, ...] = ()
    trees: list[exp.Expr] = []
    for part in conjuncts(where.this):
        if scope.joined != "layer" or not _is_about_layer(part, scope):
            trees.append(part)
        elif kinds:
            raise Refused("the kinds are chosen twice", span_of(part), f"{scope.other_label}.kind IN ('a', 'b')")
        else:
            kinds = _kinds(part.unnest(), scope)
    terms = [term_of(tree, scope, needs="boolean") for tree in trees]
    return kinds, and_of(terms, trees) if terms else None


def _is_about_layer(part: exp.Expr, scope: Scope) -> bool:
    return any(scope.is_other(column) for column in part.find_all(exp.Column))


def _kinds(condition: exp.Expr, scope: Scope) -> tuple[str, ...]:
    """The kinds of `layer.kind = 'a'` or `layer.kind IN ('a', 'b')`."""
    column, texts = _sides(condition, scope)
    pattern = _pattern(scope)
    if not (isinstance(column, exp.Column) and scope.is_other(column)):
        raise Refused(f"expected {scope.other_label}.{_KIND}", span_of(column), pattern)
    if column.name.lower() != _KIND:
        hint = did_you_mean(column.name, (_KIND,)) or pattern
        raise Refused(f"unknown column {column.name!r}", span_of(column), hint)
    for text in texts:
        if not (isinstance(text, exp.Literal) and text.is_string):
            hint = f"'{text.name}'" if isinstance(text, exp.Column) and not text.table else pattern
            raise Refused("expected a text in single quotes", span_of(text) or span_of(condition), hint)
    if not texts or not all(text.this for text in texts):
        raise Refused("expected at least one kind", span_of(condition), pattern)
    return tuple(text.this for text in texts)


def _sides(condition: exp.Expr, scope: Scope) -> tuple[exp.Expr, list[exp.Expr]]:
    if isinstance(condition, exp.EQ):
        column, text = condition.this, condition.expression
        return (text, [column]) if isinstance(column, exp.Literal) else (column, [text])
    if isinstance(condition, exp.In) and {key for key, value in condition.args.items() if value} <= _IN:
        return condition.this, condition.expressions
    raise Refused("WHERE chooses kinds of the layer, and nothing else of it", span_of(condition), _pattern(scope))


_IN = {"this", "expressions"}


def _pattern(scope: Scope) -> str:
    return f"{scope.other_label}.{_KIND} = 'forest', or {scope.other_label}.{_KIND} IN ('forest', 'park')"
