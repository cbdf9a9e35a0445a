"""INSIDE FEATURE (zones, s.zone): a region for each object, which a column of its fixes names (SPEC X12).

It is another way to write the join by place and key, and is lowered as that:

    FROM trucks s INSIDE FEATURE (zones, s.zone)
    FROM trucks s JOIN zones ON ST_Intersects(s, zones) AND s.zone = zones.fid
"""

from sqlglot import exp

from st_common.query.grammar.nodes import Inside, Intersects, Refused, Source, span_of
from st_common.query.group_names import split_name

_LABEL = "its own feature"
"""What the layer is called where the stream has its name."""


def with_own_region(select: exp.Expr) -> None:
    """Puts the join in the place of a region that a column names; a SELECT without one stays as it is.

    Raises:
        Refused: such a region is a part of another one, or stands beside a join.
    """
    inside = select.args.get("inside")
    key = None if inside is None else _key_below(inside)
    if inside is None or key is None:
        return
    select.set("inside", None)  # whatever is said of it is said here
    if inside.args["form"].name != "feature":
        message = "a region for each object stands alone, without AND, OR and NOT"
        raise Refused(message, span_of(key), "register one query for each")
    if len(inside.expressions) != len(("layer", "key")):
        raise Refused(
            "expected a layer and a column", span_of(inside), "FEATURE (zones, s.zone)"
        )
    if select.args.get("joins"):
        message = "a region for each object and JOIN exclude each other"
        raise Refused(message, span_of(inside), "it is a join by itself")
    select.set("joins", [_join(select, inside, key)])


def _key_below(inside: exp.Expr) -> exp.Column | None:
    """The column that names a feature, in a region or in one of its parts."""
    for part in inside.expressions:
        if isinstance(part, exp.Column):
            return part
        below = _key_below(part) if isinstance(part, Inside) else None
        if below is not None:
            return below
    return None


def _join(select: exp.Expr, inside: Inside, key: exp.Column) -> exp.Expr:
    source, layer = select.args["from_"].this, inside.expressions[0]
    if not isinstance(layer, exp.Identifier):
        message = "expected the name of a layer"
        raise Refused(message, span_of(layer), "FEATURE (zones, s.zone)")
    taken = {split_name(source.name)[1].casefold(), source.alias_or_name.casefold()}
    name = split_name(layer.name)[1]
    label = _LABEL if name.casefold() in taken else name
    stream = _placed(exp.to_identifier(source.alias_or_name), inside)
    other = _placed(exp.to_identifier(label, quoted=True), inside)
    fid = exp.Column(this=exp.to_identifier("fid"), table=other.copy())
    by_place = _placed(Intersects(this=stream, expression=other), inside)
    by_key = _placed(exp.EQ(this=key, expression=fid), inside)
    return exp.Join(
        this=Source(this=layer, alias=exp.TableAlias(this=other.copy()), windows=[]),
        on=exp.And(this=by_place, expression=by_key),
        kind="LAYER",
    )


def _placed(node: exp.Expr, inside: Inside) -> exp.Expr:
    """The node, which stands where the region is written."""
    for inner in node.walk():
        inner.meta.setdefault("start", inside.meta["start"])
        inner.meta.setdefault("end", inside.meta["end"])
    return node
