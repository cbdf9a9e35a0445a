"""What is asked of the rows of a query though nobody wrote so: FROM (SELECT ..) is put around it.

Aggregates about the other object of a pair, or about its feature, are asked of the rows of the pairs (SPEC X12).

SELECT b.line, AVG(distance(a, b)) AS m FROM buses a JOIN buses b ON .. GROUP BY b.line

SELECT "b.line", AVG("distance(a, b)") AS m
FROM (SELECT b.line AS "b.line", distance(a, b) AS "distance(a, b)" FROM buses a JOIN buses b ON ..)
GROUP BY "b.line"                                                                     is the same

So are those about which of the nearest a member is, and how far away.

SELECT MAX(distance()) AS m FROM taxis KNN (3, 1, 2)
SELECT MAX("distance()") AS m FROM (SELECT distance() AS "distance()" FROM taxis KNN (3, 1, 2))  is the same

WINDOW above what is judged at ticks is one of rows, for no fix of it qualifies at its own time (SPEC P5).

SELECT COUNT(*) FROM taxis KNN (3, 1, 2) WINDOW 10 min
SELECT COUNT(*) FROM (SELECT * FROM taxis KNN (3, 1, 2)) WINDOW 10 min                is the same
FOR likewise, where rows and not fixes must last:

SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 10 m) FOR 5 min
SELECT * FROM (SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 10 m)) FOR 5 min  is the same
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from st_common.query.areas import Areas
from st_common.query.grammar.located import quoted_column
from st_common.query.grammar.nodes import Refused, Rows, span_of
from st_common.query.grammar.statements import text_of
from st_common.query.lowering.nearness import is_of_place
from st_common.query.lowering.scope import is_same_table
from st_common.query.lowering.several import is_call
from st_common.query.lowering.space import region_of
from st_common.query.pair_columns import MEASURES
from st_common.regions.region import MovingRegion

_ABOVE = (
    *("expressions", "group", "having", "top"),
    *("kind", "distinct", "emit", "window", "lasting", "until"),
)
"""What is said of the rows; all else is about the pairs."""


def with_rows_below(select: exp.Expr, areas: Areas) -> exp.Expr:
    """A SELECT about the rows of one in parentheses, where it is one; else as it is."""
    arguments, keys = list(_arguments(select)), list(_keys(select))
    asked = [*arguments, *keys]
    pairs = _other_of(select)
    is_of_pairs = pairs and any(_is_of_other(node, pairs) for node in asked)
    is_long = select.args.get("window") or select.args.get("lasting")
    lasts = is_long and (pairs or _is_at_ticks(select, areas))
    feature = _feature_of(select)
    # Keys of features are told of as they are: another version of the layer makes other groups.
    is_of_feature = feature and any(_is_of_other(node, feature) for node in arguments)
    is_near = select.args.get("knn") is not None and any(map(_is_of_nearest, asked))
    if not is_of_pairs and not lasts and not is_of_feature and not is_near:
        return select
    named = _named(asked)
    if named is None:
        return select
    outer = select.copy()
    for clause in [*outer.args]:
        if clause not in _ABOVE:
            outer.set(clause, None)
    if not _is_counted(select):
        outer.set("expressions", [_everything(select)])
    outer = outer.transform(lambda node: _of_rows(node, named), copy=False)
    outer.set("from_", exp.From(this=_rows(select, named)))
    return outer


def _rows(select: exp.Expr, named: dict[str, exp.Expr]) -> Rows:
    """What stands behind FROM: the SELECT in parentheses, at the place of the stream."""
    rows = Rows(this=_below(select, named))
    rows.meta.update(select.args["from_"].this.meta)
    return rows


def _named(asked: Sequence[exp.Expr]) -> dict[str, exp.Expr] | None:
    """What is asked of rows, by its text; None where one has none: it is refused where it is read."""
    of_rows = [node for node in asked if node.find(exp.Column) or _is_of_nearest(node)]
    texts = [(_text_of(node), node) for node in of_rows]
    named = {text: node for text, node in texts if text is not None}
    return None if any(text is None for text, _ in texts) else named


def _below(select: exp.Expr, named: dict[str, exp.Expr]) -> exp.Expr:
    """The SELECT in parentheses: who is in the answer, with what is counted of it, or with what was selected."""
    inner = select.copy()
    for clause in _ABOVE:
        inner.set(clause, None)
    selection = select.expressions[0].copy()
    if _is_counted(select):
        columns = [_aliased(node, name) for name, node in named.items()]
        selection = exp.Tuple(expressions=columns) if columns else _everything(select)
        selection.meta.update(select.expressions[0].meta)
    inner.set("expressions", [selection])
    return inner


def _is_at_ticks(select: exp.Expr, areas: Areas) -> bool:
    """Whether members come and go by ticks: the nearest, or who is in a region that goes with an object."""
    inside = select.args.get("inside")
    if select.args.get("knn") is not None or inside is None:
        return select.args.get("knn") is not None
    try:
        return isinstance(region_of(inside, areas), MovingRegion)
    except Refused:
        return False  # it is told of where it is read


def _is_counted(select: exp.Expr) -> bool:
    """Whether groups or values are asked for; else the rows themselves."""
    has_call = any(
        is_call(call)
        for item in select.expressions[0].expressions
        for call in item.find_all(exp.Anonymous)
    )
    clauses = (select.args.get(name) for name in ("distinct", "group", "having"))
    return has_call or any(clauses)


def _everything(select: exp.Expr) -> exp.Expr:
    """`*` where a SELECT says what it shows."""
    star = exp.Tuple(expressions=[exp.Star()])
    for node in (star, star.expressions[0]):
        node.meta.update(select.expressions[0].meta)
    return star


def _other_of(select: exp.Expr) -> str | None:
    """What the other object is called, in small letters; None where a stream is not joined with itself."""
    source, joins = select.args["from_"].this, select.args.get("joins") or []
    if len(joins) != 1 or joins[0].args.get("kind"):
        return None
    other = joins[0].this
    return other.alias_or_name.casefold() if is_same_table(source, other) else None


def _feature_of(select: exp.Expr) -> str | None:
    """What a feature is called, in small letters, where rows below have its columns; None without such a join."""
    source, joins = select.args["from_"].this, select.args.get("joins") or []
    of_fixes = ("window", "detect", "lasting")
    if source.args.get("windows") or any(map(select.args.get, of_fixes)):
        return None
    if len(joins) != 1 or is_same_table(source, joins[0].this):
        return None
    called: str = joins[0].this.alias_or_name.casefold()
    return called


def _arguments(select: exp.Expr) -> Iterator[exp.Expr]:
    """What aggregates are of."""
    for item in select.expressions[0].expressions:
        for call in item.find_all(exp.Anonymous):
            if is_call(call):
                given = (_different(one) for one in call.expressions)
                yield from (one for one in given if not _is_bare(one))


def _keys(select: exp.Expr) -> Iterator[exp.Expr]:
    """What groups are by, and what DISTINCT is of."""
    if select.args.get("distinct"):
        yield from select.expressions[0].expressions
    group = select.args.get("group")
    yield from () if group is None else group.expressions


def _different(node: exp.Expr) -> exp.Expr:
    """What is counted where different values are: COUNT(DISTINCT x)."""
    return node.expressions[0] if isinstance(node, exp.Distinct) else node


def _is_bare(node: exp.Expr) -> bool:
    """Whether an argument is no expression over a row: *, or a number such as the share of a quantile."""
    return isinstance(node, exp.Star | exp.Literal)


def _is_of_other(node: exp.Expr, other: str) -> bool:
    for part in node.walk():
        if isinstance(part, exp.Column) and part.table.casefold() == other:
            return True
        if isinstance(part, exp.Anonymous) and part.name.upper() in MEASURES:
            return True
    return False


def _is_of_nearest(node: exp.Expr) -> bool:
    """Whether it asks which of the nearest a member is, or how far away."""
    return any(map(is_of_place, node.walk()))


def _aliased(node: exp.Expr, name: str) -> exp.Expr:
    column = exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))
    start, end = span_of(node)
    column.meta.update(start=start, end=end - 1)
    return column


def _text_of(node: exp.Expr) -> str | None:
    """The text of a tree; None where a condition stands in it that is no expression, such as EXISTS."""
    try:
        return text_of(node.copy())
    except ValueError:
        return None


def _of_rows(node: exp.Expr, named: dict[str, exp.Expr]) -> exp.Expr:
    """The column of the rows in the place of what it says; else the node itself."""
    if isinstance(node, exp.Column | exp.Anonymous | exp.Binary | exp.Paren):
        name = _text_of(node)
        if name is not None and name in named:
            return quoted_column(name, node)
    return node
