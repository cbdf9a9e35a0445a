"""Several values of each group, and several keys: SELECT line, COUNT(*) AS n, AVG(speed) .. GROUP BY line (SPEC G9)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from st_common.query.binding import PARTNER
from st_common.query.grammar.nodes import Refused, Span, span_of
from st_common.query.lowering.expression import Needs, Term, is_same, term_of
from st_common.query.lowering.functions import AGGREGATES
from st_common.query.lowering.scope import Scope
from st_common.query.pair_columns import MEASURES, is_of_pair
from st_common.query.plan import (
    AS_JSON,
    COUNTS,
    MOST_VALUES,
    OF_WAYS,
    Aggregate,
    Value,
    ValueFunction,
)
from st_common.query.several import name_of_key, name_of_value

FUNCTIONS: Mapping[str, ValueFunction] = {
    "COUNT": "count",
    "SUM": "sum",
    "AVG": "avg",
    "MIN": "min",
    "MAX": "max",
    "STDDEV": "stddev",
    "VAR": "var",
    "MEDIAN": "median",
    "QUANTILE": "quantile",
    "FIRST": "first",
    "LAST": "last",
    "COLLECT": "collect",
    "AVGSPD": "avgspd",
    "TRAVELLED": "travelled",
    "ODOMETER": "odometer",
}
"""The functions of values, as texts call them."""
SINGLE = ("COUNT", "SUM", "AVG", "MIN", "MAX")
"""Those that may be the one value of a change; all others stand among several."""
_ANOTHER_NAME = "give one of them another name: ... AS name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One value, with the term of its argument and the place of its name."""

    value: Value
    term: Term | None
    span: Span


def several_of(
    items: Sequence[exp.Expr], grouped: Sequence[Term], scope: Scope
) -> tuple[Aggregate, tuple[Term, ...]]:
    """The values and keys that a SELECT names, and the terms of both.

    Args:
        items: what stands after SELECT: aggregates and keys, in any order.
        grouped: what stands after GROUP BY.
        scope: what names mean.

    Raises:
        Refused: an item is neither, or two are called alike.
    """
    values, names = list[Called](), [_own_name(term, scope) for term in grouped]
    spans = [term.span for term in grouped]
    for item in items:
        bare = item.this if isinstance(item, exp.Alias) else item
        if is_call(bare):
            values.append(value_of(bare, scope, name=_alias_of(item)))
            continue
        place = _place_of(bare, grouped, scope)
        names[place] = _alias_of(item) or names[place]
        spans[place] = span_of(item)
    _check_names(
        [
            *zip(names, spans, strict=True),
            *((one.value.name, one.span) for one in values),
        ]
    )
    keys = zip(names, (term.text for term in grouped), strict=True)
    made = Aggregate(
        function="several",
        values=tuple(one.value for one in values),
        keys=tuple(keys),
    )
    return made, (*terms_of(values), *grouped)


def terms_of(values: Iterable[Called]) -> Iterator[Term]:
    """The terms of the arguments of values."""
    return (one.term for one in values if one.term is not None)


def is_call(node: exp.Expr) -> bool:
    """Whether an expression is an aggregate."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES


def value_of(call: exp.Expr, scope: Scope, *, name: str = "") -> Called:
    """The value that a call of an aggregate asks for; without a name it is called as it is written: `avg(speed)`.

    Raises:
        Refused: it takes other arguments.
    """
    function, term = function_of(call, scope)
    argument = None if term is None else term.text
    share = _share_of(call) if function == "quantile" else None
    called = name or name_of_value(function, argument, share)
    value = Value(name=called, function=function, argument=argument, share=share)
    return Called(value=value, term=term, span=span_of(call))


def function_of(call: exp.Expr, scope: Scope) -> tuple[ValueFunction, Term | None]:
    """The function of an aggregate and its argument; objects are counted each once (SPEC P5).

    Raises:
        Refused: it takes another argument.
    """
    name = call.name.upper()
    if FUNCTIONS[name] in OF_WAYS:
        check_of_stream(call, scope)
        return FUNCTIONS[name], None
    given = call.expressions[: 1 if name == "QUANTILE" else None]
    if len(given) != 1:
        raise Refused(f"{name} takes one argument, not {len(given)}", span_of(call))
    (argument,) = given
    if isinstance(argument, exp.Star):
        if name != "COUNT":
            span = span_of(argument) if span_of(argument)[1] else span_of(call)
            takes = "a value" if FUNCTIONS[name] in AS_JSON else "a number"
            raise Refused(f"{name} takes {takes}, not *", span)
        return "count", None
    distinct = isinstance(argument, exp.Distinct)
    if distinct:
        argument = _counted_once(call, argument)
    term = term_of(argument, scope, needs=needs_of(FUNCTIONS[name]))
    if name == "COUNT" and term.text.lower() == "object":
        return "count_distinct", None
    return "count_distinct" if distinct else FUNCTIONS[name], term


def check_of_stream(call: exp.Expr, scope: Scope) -> None:
    """Sees to it that a way is of the stream: `AVGSPD(*)`, or `AVGSPD(r)` where the stream is called r.

    Raises:
        Refused: it is of something else.
    """
    argument = call.expressions[0] if len(call.expressions) == 1 else call
    named = (
        isinstance(argument, exp.Column)
        and not argument.table
        and argument.name.casefold() in scope.own
    )
    if not (named or isinstance(argument, exp.Star)):
        span = span_of(argument) if span_of(argument)[1] else span_of(call)
        name = call.name.upper()
        hint = f"{name}({scope.label}), or {name}(*)"
        raise Refused(f"{name} is of a stream", span, hint)


def needs_of(function: str) -> Needs:
    """What kind of value the argument of an aggregate is."""
    if function in COUNTS:
        return "any"
    return "plain" if function in AS_JSON else "number"


def _share_of(call: exp.Expr) -> float:
    """The share of a quantile: a number from 0 to 1."""
    given = call.expressions[1:]
    is_number = [isinstance(one, exp.Literal) and not one.is_string for one in given]
    if is_number == [True] and 0 <= float(given[0].this) <= 1:
        return float(given[0].this)
    span = span_of(given[0]) if given else span_of(call)
    message = "QUANTILE takes a number and a share from 0 to 1"
    raise Refused(message, span, "QUANTILE(speed_mps, 0.9)")


def _counted_once(call: exp.Expr, argument: exp.Expr) -> exp.Expr:
    """What stands behind DISTINCT."""
    if call.name.upper() != "COUNT" or len(argument.expressions) != 1:
        message, hint = "DISTINCT takes one argument, of COUNT", "COUNT(DISTINCT x)"
        raise Refused(message, span_of(call), hint)
    counted: exp.Expr = argument.expressions[0]
    return counted


def key_of(node: exp.Expr, scope: Scope) -> Term:
    """The term of what is grouped by: of the object, or of the feature that it is joined with.

    Raises:
        Refused: it is of both.
    """
    span = span_of(node)
    term = term_like_key(node, scope)
    of_feature = [is_of_pair(name) for name, _ in term.columns]
    if any(of_feature) and not all(of_feature):
        message = "a key is about the object, or about the feature"
        raise Refused(message, span, "group by both: GROUP BY a, b")
    if any(name in MEASURES.values() for name, _ in term.columns):
        message = "a key is about the object, or about the feature, not about both"
        raise Refused(message, span, "show it: SELECT distance(a, b)")
    return term


def term_like_key(node: exp.Expr, scope: Scope) -> Term:
    """The term of an expression as it would be called as a key."""
    if scope.joined != "layer" or not _has_tags(node, scope):
        return term_of(node, scope, partner=True)
    return term_of(node, scope, of_pair=True)


def _has_tags(node: exp.Expr, scope: Scope) -> bool:
    """Whether columns of a feature are named, but for its id alone: that is the partner."""
    bare = node.unnest()
    columns = [
        one
        for one in node.find_all(exp.Column)
        if is_of_pair(one.name) or scope.is_other(one)
    ]
    return bool(columns) and not (columns == [bare] and bare.name.lower() == "fid")


def _place_of(item: exp.Expr, grouped: Sequence[Term], scope: Scope) -> int:
    """Which of the keys an item is."""
    term = key_of(item, scope)
    for place, key in enumerate(grouped):
        if is_same(term.text, key.text):
            return place
    raise Refused("expected what the query is grouped by", term.span, hint_of(grouped))


def hint_of(grouped: Sequence[Term]) -> str:
    """What to do about a column beside aggregates that is no key."""
    if not grouped:
        return "GROUP BY what stands beside the aggregate"
    keys = ", ".join(key.text for key in grouped)
    return f"the keys are {keys}: select one of them as it is written there, names by AS are none"


def _own_name(key: Term, scope: Scope) -> str:
    """What a key is called where nobody said: a column as it is called, the feature `fid`, all else by its text."""
    is_feature = key.text == PARTNER and scope.joined == "layer"
    return "fid" if is_feature else name_of_key(key.text)


def _alias_of(item: exp.Expr) -> str:
    return item.args["alias"].name if isinstance(item, exp.Alias) else ""


def _check_names(names: Sequence[tuple[str, Span]]) -> None:
    """Names are the same in any case, for SQL that is asked about the rows."""
    if len(names) > MOST_VALUES:
        span = names[MOST_VALUES][1]
        raise Refused(f"a group has {MOST_VALUES} keys and values at most", span)
    known = set[str]()
    for name, span in names:
        if name.casefold() in known:
            raise Refused(f"two columns are called {name!r}", span, _ANOTHER_NAME)
        known.add(name.casefold())
