"""JOIN: pairs with the features of a layer, or with the other objects of the stream."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from sqlglot import exp

from st_common.query.grammar.nodes import SPATIAL as NAMES
from st_common.query.grammar.nodes import (
    Intersects,
    Near,
    Refused,
    Span,
    Within,
    span_of,
)
from st_common.query.lowering.condition import OWN_COLUMNS, Conditions, is_nearest
from st_common.query.lowering.expression import Term, is_same, term_of
from st_common.query.lowering.quantity import metres
from st_common.query.lowering.scope import Scope
from st_common.query.plan import MOST_NEAREST, LayerJoin, PairJoin
from st_common.query.problem import did_you_mean
from st_common.written import whole_number

_SPATIAL = ("ST_Intersects", "ST_Within", "ST_Contains", "ST_DWithin")


def layer_join_of(
    layer: str, parts: Sequence[exp.Expr], scope: Scope, chosen: Conditions
) -> tuple[LayerJoin, tuple[Term, ...]]:
    """The join with a layer, and the expression whose value a key of the layer must equal."""
    conditions = [part.unnest() for part in parts]
    nearest = [each for each in conditions if is_nearest(each)]
    by_key = [each for each in conditions if isinstance(each, exp.EQ)]
    by_place = [each for each in conditions if each not in (*nearest, *by_key)]
    for several in (by_key, by_place, nearest):
        if len(several) > 1:
            _refuse_second(several[1])
    join = LayerJoin(
        layer=layer,
        predicate="equals",
        kinds=tuple(chosen.kinds),
        tags=tuple(chosen.tags),
    )
    if by_place:
        join = _by_place(join, by_place[0], scope)
    if nearest:
        count = _nearest(nearest[0], scope)
        predicate = join.predicate if by_place or by_key else "nearest"
        join = replace(join, predicate=predicate, nearest=count)
    if not by_key:
        return join, ()
    left, right = _key(by_key[0], scope)
    return replace(join, left=left.text, right=right), (left,)


def _by_place(join: LayerJoin, condition: exp.Expr, scope: Scope) -> LayerJoin:
    """The join by where a fix is."""
    if not isinstance(condition, Intersects | Within | Near):
        listed = f"{', '.join(_SPATIAL[:-1])} or {_SPATIAL[-1]}"
        hint = _meant(condition) or f"or {scope.label}.a = {scope.other_label}.fid"
        raise Refused(f"expected {listed}", span_of(condition), hint)
    _check_sides(condition, scope)
    if isinstance(condition, Near):
        far = metres(condition.args["distance"])
        return replace(join, predicate="dwithin", distance_m=far)
    if isinstance(condition, Within):
        _check_within(condition, scope)
        return replace(join, predicate="within")
    return replace(join, predicate="intersects")


def _meant(condition: exp.Expr) -> str:
    """The spatial condition that an unknown function seems to mean, as a hint."""
    is_call = isinstance(condition, exp.Anonymous)
    return did_you_mean(condition.name, _SPATIAL) if is_call else ""


def _refuse_second(condition: exp.Expr) -> NoReturn:
    hint = (
        "the others are about the stream alone, or choose kinds and tags of the layer"
    )
    message = "one condition by place and one key join a layer"
    raise Refused(message, span_of(condition), hint)


def pair_join_of(
    parts: Sequence[exp.Expr], scope: Scope
) -> tuple[PairJoin, tuple[Term, ...]]:
    """The join of a stream with itself: a distance, keys that are equal on both sides, or both."""
    distance_m: float | None = None
    nearest: int | None = None
    keys: list[Term] = []
    for part in parts:
        condition = part.unnest()
        if isinstance(condition, Near) and distance_m is None:
            _check_sides(condition, scope)
            distance_m = metres(condition.args["distance"])
        elif is_nearest(condition) and nearest is None:
            nearest = _nearest(condition, scope)
        elif isinstance(condition, exp.EQ):
            keys.append(_pair_key(condition, scope))
        else:
            _refuse_pairing(condition, scope)
    texts = tuple(key.text for key in keys)
    return PairJoin(distance_m=distance_m, keys=texts, nearest=nearest), tuple(keys)


def _nearest(call: exp.Expr, scope: Scope) -> int:
    """How many of the nearest others pair with an object: NEAREST (a, b, 2)."""
    like = f"NEAREST ({scope.label}, {scope.other_label}, 2)"
    parts = call.expressions
    names = [one.name.casefold() for one in parts[:2]]
    is_of_both = len(parts) == 3 and names[0] in scope.own and names[1] in scope.other
    count = parts[-1] if parts else call
    is_plain = isinstance(count, exp.Literal) and not count.is_string
    number = whole_number(count.name, MOST_NEAREST) if is_plain else None
    if not is_of_both or not number:
        message = f"NEAREST is of the two of a pair, and of a number from 1 to {MOST_NEAREST:,}"
        raise Refused(message, span_of(call), like)
    return number


def _check_within(condition: Within, scope: Scope) -> None:
    """What lies within is the object, a point."""
    if condition.this.name.casefold() not in scope.own:
        hint = f"ST_Within({scope.label}, {scope.other_label}), or ST_Contains({scope.other_label}, {scope.label})"
        raise Refused("an object contains nothing", span_of(condition.this), hint)


def _refuse_pairing(condition: exp.Expr, scope: Scope) -> None:
    span = span_of(condition)
    if isinstance(condition, Near):
        raise Refused("there is a distance already", span)
    like = f"ST_DWithin({scope.label}, {scope.other_label}, 1 km), or {scope.label}.a = {scope.other_label}.a"
    if isinstance(condition, Intersects | Within):
        hint = "two objects pair by ST_DWithin; of a layer with the stream's name say JOIN LAYER"
        raise Refused(f"{NAMES[type(condition)]} needs a layer", span, hint)
    raise Refused("expected a distance or a key", span, _meant(condition) or like)


def _check_sides(condition: exp.Expr, scope: Scope) -> None:
    """One side must name the stream, the other what it joins, each by its alias or its own name."""
    sides = [condition.this, condition.expression]
    for one, other in (sides, sides[::-1]):
        if one.name.casefold() in scope.own and other.name.casefold() in scope.other:
            return
    known = scope.own | scope.other
    wrong = next(
        (side for side in sides if side.name.casefold() not in known), sides[1]
    )
    hint = (
        did_you_mean(wrong.name, known - {wrong.name.casefold()})
        or f"{scope.label} and {scope.other_label}"
    )
    what = (
        "the stream and the layer"
        if scope.joined == "layer"
        else f"{scope.label} and {scope.other_label}"
    )
    raise Refused(f"expected {what}, not {wrong.name!r}", span_of(wrong), hint)


def _key(condition: exp.EQ, scope: Scope) -> tuple[Term, str]:
    """The expression over the fix, and the name of the feature's column or tag that it must equal."""
    for right, left in (
        (condition.expression, condition.this),
        (condition.this, condition.expression),
    ):
        column = right.unnest()
        if isinstance(column, exp.Column) and scope.is_other(column):
            _check_single(left)
            name = column.name
            if name.lower() in OWN_COLUMNS and not column.this.args.get("quoted"):
                name = name.lower()
            if not name:
                raise Refused("expected the name of a tag", span_of(column))
            return term_of(left, scope, needs="text"), name
    hint = f"{scope.label}.a = {scope.other_label}.fid, .kind or the name of a tag"
    raise Refused(
        f"expected a column of {scope.other_label} at one side",
        span_of(condition),
        hint,
    )


def _pair_key(condition: exp.EQ, scope: Scope) -> Term:
    """The one expression that both sides of a key say, each about its own object."""
    like = f"{scope.label}.a = {scope.other_label}.a"
    sides = [
        (side, _side(side, scope, like))
        for side in (condition.this, condition.expression)
    ]
    spans = [span for _, (_, span) in sides]
    first, second = (is_other for _, (is_other, _) in sides)
    if first == second:
        name = scope.other_label if first else scope.label
        raise Refused(
            f"both sides of this key are of {name!r}", span_of(condition), like
        )
    terms = [_term_of_side(side, scope) for side, _ in sides]
    if not is_same(terms[0].text, terms[1].text):
        message = (
            f"the sides of a key say the same, not {terms[0].text} and {terms[1].text}"
        )
        raise Refused(message, (spans[0][0], spans[1][1]), like)
    return terms[0]


def _side(side: exp.Expr, scope: Scope, like: str) -> tuple[bool, Span]:
    """Whether a side of a key is about the partner, and where it stands."""
    _check_single(side)
    columns = list(side.find_all(exp.Column))
    bare = next((column for column in columns if not column.table), None)
    if bare is not None or not columns:
        raise Refused(
            "expected a column of one of the two",
            span_of(bare if bare is not None else side),
            like,
        )
    of_other = {scope.is_other(column) for column in columns}
    if len(of_other) > 1:
        raise Refused("one side of a key is about one of the two", span_of(side), like)
    return of_other.pop(), span_of(side)


def _term_of_side(side: exp.Expr, scope: Scope) -> Term:
    for column in side.find_all(exp.Column):
        column.args["table"].set("this", scope.label)
    return term_of(side, scope)


def _check_single(side: exp.Expr) -> None:
    if isinstance(side, exp.Predicate | exp.Not | exp.Connector):
        raise Refused(
            "this can be read in two ways",
            span_of(side),
            "put parentheses around what belongs together",
        )
