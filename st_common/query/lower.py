"""From the tree of a SELECT to a plan. What a plan cannot say is refused where it stands."""

import math
from typing import Any

from sqlglot import exp

from st_common.query.dialect import Inside, Intersects, Refused, Within
from st_common.query.plan import Box, Emit, LayerJoin, Plan
from st_common.query.problem import did_you_mean

METRES = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344, "nmi": 1852.0}
_CORNERS = 4
_KIND = "kind"
_SPATIAL = ("ST_Intersects", "ST_DWithin")


def plan_of(select: exp.Expr) -> Plan:
    """The plan of a parsed SELECT.

    Raises:
        Refused: at the first thing that a continuous query cannot have.
    """
    source = select.args["from_"].this
    joins = select.args.get("joins") or []
    where, inside, emit = (select.args.get(key) for key in ("where", "inside", "emit"))
    if len(joins) > 1:
        raise Refused("a query joins one layer", span_of(joins[1]))
    if where and not joins:
        raise Refused("WHERE needs a layer to choose from", span_of(where), "FROM stream JOIN layer ON ...")
    mode: Emit = "every" if emit and emit.this == "every" else "changes"
    return Plan(
        stream=source.name,
        inside=_box(inside) if inside else None,
        join=_join(source, joins[0], where) if joins else None,
        emit=mode,
    )


def span_of(node: Any) -> tuple[int, int]:
    """The offsets (start, end) of what a node, or the names and numbers below it, take in the text."""
    metas = [found.meta for found in node.walk() if found.meta and "start" in found.meta]
    if not metas:
        return 0, 0
    return min(meta["start"] for meta in metas), max(meta["end"] for meta in metas) + 1


def _box(inside: Inside) -> Box:
    if len(inside.expressions) != _CORNERS:
        message = f"expected 4 numbers, not {len(inside.expressions)}"
        raise Refused(message, span_of(inside), "INSIDE (x1, y1, x2, y2): two corners")
    return Box.of_corners(*(_number(node) for node in inside.expressions))


def _number(node: exp.Expr) -> float:
    value = -float(node.this.this) if isinstance(node, exp.Neg) else float(node.this)
    if not math.isfinite(value):
        raise Refused("the number is too large", span_of(node))
    return value


def _join(source: exp.Expr, join: exp.Expr, where: exp.Expr | None) -> LayerJoin:
    layer = join.this
    condition = join.args["on"]
    if not isinstance(condition, (Intersects, Within)):
        called = condition.name if isinstance(condition, exp.Anonymous) else ""
        hint = did_you_mean(called, _SPATIAL) or "one of them, and nothing else, stands after ON"
        raise Refused(f"expected {' or '.join(_SPATIAL)}", span_of(condition), hint)
    _check_sides(source, layer, condition)
    kinds = _kinds(where.this.unnest(), layer) if where else ()
    if isinstance(condition, Intersects):
        return LayerJoin(layer=layer.name, predicate="intersects", kinds=kinds)
    return LayerJoin(layer=layer.name, predicate="dwithin", distance_m=_distance(condition), kinds=kinds)


def _check_sides(source: exp.Expr, layer: exp.Expr, condition: exp.Expr) -> None:
    """One side must name the stream, the other the layer, each by its alias or its own name."""
    if source.alias_or_name == layer.alias_or_name:
        raise Refused(f"two things are called {layer.alias_or_name!r}", span_of(layer), "give the layer an alias")
    of_stream, of_layer = ({table.name, table.alias_or_name} for table in (source, layer))
    sides = [condition.this, condition.expression]
    for one, other in (sides, sides[::-1]):
        if one.name in of_stream and other.name in of_layer:
            return
    known = of_stream | of_layer
    wrong = next((side for side in sides if side.name not in known), sides[1])
    hint = did_you_mean(wrong.name, known - {wrong.name}) or f"{source.alias_or_name} and {layer.alias_or_name}"
    raise Refused(f"expected the stream and the layer, not {wrong.name!r}", span_of(wrong), hint)


def _distance(condition: Within) -> float:
    number, unit = condition.args["distance"], condition.args["unit"]
    if unit.name.lower() not in METRES:
        hint = did_you_mean(unit.name, METRES) or f"one of {', '.join(METRES)}"
        raise Refused(f"unknown unit {unit.name!r}", span_of(unit), hint)
    distance_m = _number(number) * METRES[unit.name.lower()]
    if not 0 <= distance_m < math.inf:
        raise Refused("a distance is 0 or more, and finite", span_of(number))
    return distance_m


def _kinds(condition: exp.Expr, layer: exp.Expr) -> tuple[str, ...]:
    """The kinds of `layer.kind = 'a'` or `layer.kind IN ('a', 'b')`."""
    pattern = f"{layer.alias_or_name}.{_KIND} = 'forest', or {layer.alias_or_name}.{_KIND} IN ('forest', 'park')"
    if isinstance(condition, exp.EQ):
        column, texts = condition.this, [condition.expression]
        if isinstance(column, exp.Literal):
            column, texts = condition.expression, [column]
    elif isinstance(condition, exp.In) and set(condition.args) - {"this", "expressions"} <= _falsy(condition):
        column, texts = condition.this, condition.expressions
    else:
        raise Refused("WHERE chooses kinds of the layer, and nothing else", span_of(condition), pattern)
    _check_kind_column(column, layer, pattern)
    for text in texts:
        if not (isinstance(text, exp.Literal) and text.is_string):
            hint = f"'{text.name}'" if isinstance(text, exp.Column) and not text.table else pattern
            raise Refused("expected a text in single quotes", span_of(text), hint)
    if not texts or not all(text.this for text in texts):
        raise Refused("expected at least one kind", span_of(condition), pattern)
    return tuple(text.this for text in texts)


def _falsy(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if not value}


def _check_kind_column(column: exp.Expr, layer: exp.Expr, pattern: str) -> None:
    if not isinstance(column, exp.Column) or column.table not in (layer.name, layer.alias_or_name):
        raise Refused(f"expected {layer.alias_or_name}.{_KIND}", span_of(column), pattern)
    if column.name.lower() != _KIND:
        hint = did_you_mean(column.name, (_KIND,)) or pattern
        raise Refused(f"unknown column {column.name!r}", span_of(column), hint)
