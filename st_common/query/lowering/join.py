"""JOIN: pairs with the features of a layer, or with the other objects of the stream."""

from sqlglot import exp

from st_common.query.grammar.dialect import SPATIAL
from st_common.query.grammar.nodes import Intersects, Refused, Span, Within, span_of
from st_common.query.lowering.expression import Term, conjuncts, term_of
from st_common.query.lowering.quantity import metres
from st_common.query.lowering.scope import Scope
from st_common.query.plan import LayerJoin, PairJoin
from st_common.query.problem import did_you_mean

_OWN_COLUMNS = ("fid", "kind")  # of a feature; other columns are its tags


def layer_join_of(join: exp.Expr, scope: Scope, kinds: tuple[str, ...]) -> tuple[LayerJoin, tuple[Term, ...]]:
    """The join with a layer, and the expression whose value a key of the layer must equal."""
    layer = join.this.name
    condition = join.args["on"].unnest()
    if isinstance(condition, Intersects):
        _check_sides(condition, scope)
        return LayerJoin(layer=layer, predicate="intersects", kinds=kinds), ()
    if isinstance(condition, Within):
        _check_sides(condition, scope)
        far = metres(condition.args["distance"])
        return LayerJoin(layer=layer, predicate="dwithin", distance_m=far, kinds=kinds), ()
    if isinstance(condition, exp.EQ):
        left, right = _key(condition, scope)
        return LayerJoin(layer=layer, predicate="equals", kinds=kinds, left=left.text, right=right), (left,)
    hint = f"or {scope.label}.a = {scope.other_label}.fid; it stands alone after ON"
    raise Refused(f"expected {' or '.join(SPATIAL)}", span_of(condition), hint)


def pair_join_of(join: exp.Expr, scope: Scope) -> tuple[PairJoin, tuple[Term, ...]]:
    """The join of a stream with itself: a distance, keys that are equal on both sides, or both."""
    distance_m: float | None = None
    keys: list[Term] = []
    for part in conjuncts(join.args["on"]):
        condition = part.unnest()
        if isinstance(condition, Within) and distance_m is None:
            _check_sides(condition, scope)
            distance_m = metres(condition.args["distance"])
        elif isinstance(condition, exp.EQ):
            keys.append(_pair_key(condition, scope))
        else:
            _refuse_pairing(condition, scope)
    return PairJoin(distance_m=distance_m, keys=tuple(key.text for key in keys)), tuple(keys)


def _refuse_pairing(condition: exp.Expr, scope: Scope) -> None:
    span = span_of(condition)
    if isinstance(condition, Within):
        raise Refused("there is a distance already", span)
    like = f"ST_DWithin({scope.label}, {scope.other_label}, 1 km), or {scope.label}.a = {scope.other_label}.a"
    if isinstance(condition, Intersects):
        hint = "two objects pair by ST_DWithin; of a layer with the stream's name say JOIN LAYER"
        raise Refused("ST_Intersects needs a layer", span, hint)
    raise Refused("expected a distance or a key", span, like)


def _check_sides(condition: exp.Expr, scope: Scope) -> None:
    """One side must name the stream, the other what it joins, each by its alias or its own name."""
    sides = [condition.this, condition.expression]
    for one, other in (sides, sides[::-1]):
        if one.name in scope.own and other.name in scope.other:
            return
    known = scope.own | scope.other
    wrong = next((side for side in sides if side.name not in known), sides[1])
    hint = did_you_mean(wrong.name, known - {wrong.name}) or f"{scope.label} and {scope.other_label}"
    what = "the stream and the layer" if scope.joined == "layer" else f"{scope.label} and {scope.other_label}"
    raise Refused(f"expected {what}, not {wrong.name!r}", span_of(wrong), hint)


def _key(condition: exp.EQ, scope: Scope) -> tuple[Term, str]:
    """The expression over the fix, and the name of the feature's column or tag that it must equal."""
    for right, left in ((condition.expression, condition.this), (condition.this, condition.expression)):
        column = right.unnest()
        if isinstance(column, exp.Column) and scope.is_other(column):
            _check_single(left)
            name = column.name
            if name.lower() in _OWN_COLUMNS and not column.this.args.get("quoted"):
                name = name.lower()
            if not name:
                raise Refused("expected the name of a tag", span_of(column))
            return term_of(left, scope, needs="text"), name
    hint = f"{scope.label}.a = {scope.other_label}.fid, .kind or the name of a tag"
    raise Refused(f"expected a column of {scope.other_label} at one side", span_of(condition), hint)


def _pair_key(condition: exp.EQ, scope: Scope) -> Term:
    """The one expression that both sides of a key say, each about its own object."""
    like = f"{scope.label}.a = {scope.other_label}.a"
    sides = [(side, _side(side, scope, like)) for side in (condition.this, condition.expression)]
    spans = [span for _, (_, span) in sides]
    first, second = (is_other for _, (is_other, _) in sides)
    if first == second:
        name = scope.other_label if first else scope.label
        raise Refused(f"both sides of this key are of {name!r}", span_of(condition), like)
    terms = [_term_of_side(side, scope) for side, _ in sides]
    if terms[0].text != terms[1].text:
        message = f"the sides of a key say the same, not {terms[0].text} and {terms[1].text}"
        raise Refused(message, (spans[0][0], spans[1][1]), like)
    return terms[0]


def _side(side: exp.Expr, scope: Scope, like: str) -> tuple[bool, Span]:
    """Whether a side of a key is about the partner, and where it stands."""
    _check_single(side)
    columns = list(side.find_all(exp.Column))
    bare = next((column for column in columns if not column.table), None)
    if bare is not None or not columns:
        raise Refused("expected a column of one of the two", span_of(bare if bare is not None else side), like)
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
        raise Refused("this can be read in two ways", span_of(side), "put parentheses around what belongs together")
