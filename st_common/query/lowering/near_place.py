"""WHERE ST_DWithin(s, ST_Point(x, y), 500 m): what has a point within a distance of a place (SPEC P3).

It is another way to write a circle, and is lowered as that:

    FROM stations s WHERE ST_DWithin(s, ST_Point(24.9, 60.1), 500 m) AND s.kind = 'fuel'
    FROM stations s WHERE s.kind = 'fuel' INTERSECTS CIRCLE (24.9, 60.1, 500 m)
"""

from sqlglot import exp

from st_common.query.grammar.nodes import (
    Inside,
    Near,
    Point,
    Refused,
    span_of,
)
from st_common.query.group_names import split_name
from st_common.query.lowering.expression import conjuncts

_LIKE = "ST_DWithin({}, ST_Point(x, y), 500 m)"


def with_circle(select: exp.Expr) -> None:
    """Puts a circle in the place of the distance from a point; a SELECT without one stays as it is.

    Raises:
        Refused: a point stands elsewhere, several do, or one stands beside a region.
    """
    points = list(select.find_all(Point))
    if not points:
        return
    source, where = select.args["from_"].this, select.args.get("where")
    like = _LIKE.format(source.alias_or_name)
    parts = list(conjuncts(where.this)) if where is not None else []
    near = next((one for one in parts if _is_near(one.unnest(), points[0])), None)
    # Whatever is said of points is said here.
    rest = [one for one in parts if one.find(Point) is None]
    select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    if rest and where is not None:
        select.args["where"].meta.update(where.meta)
    if near is None or len(points) > 1:
        message = "ST_Point stands in one condition, joined to others by AND"
        raise Refused(message, span_of(points[-1]), f"WHERE {like}")
    bare = near.unnest()
    other = bare.this if bare.expression is points[0] else bare.expression
    own = {source.name, split_name(source.name)[1], source.alias_or_name}
    if other.name.casefold() not in {name.casefold() for name in own}:
        raise Refused(f"expected {source.alias_or_name}", span_of(other), like)
    if select.args.get("inside") is not None:
        message = "ST_DWithin of a point and a region exclude each other"
        hint = "INSIDE (region AND CIRCLE (x, y, 500 m)) is in both"
        raise Refused(message, span_of(bare), hint)
    select.set("inside", _circle(bare, points[0]))


def _is_near(condition: exp.Expr, point: Point) -> bool:
    is_side = point in (condition.this, condition.args.get("expression"))
    return isinstance(condition, Near) and is_side


def _circle(near: exp.Expr, point: Point) -> Inside:
    parts = [*point.expressions, near.args["distance"]]
    circle = Inside(expressions=parts, form=exp.Var(this="circle"))
    meets = Inside(expressions=[circle], form=exp.Var(this="meets"))
    for made in (circle, meets):
        made.meta.update({name: near.meta[name] for name in ("start", "end")})
    return meets
