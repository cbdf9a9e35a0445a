"""Tags of features: as texts, and as numbers where they are compared with numbers, or computed with.

t.speed_mps > r.maxspeed        the speed that the tag says, in metres per second
t.speed > r.maxspeed            likewise, in the unit of the attribute (see `attribute_units`)
r.maxspeed >= 30 mph            likewise
r.lanes > 2                     TRY_CAST("other.lanes" AS DOUBLE)
t.speed_mps - r.maxspeed        as beside a speed
r.name LIKE 'A%'                the text
"""

from collections.abc import Iterator

from sqlglot import exp

from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.located import quoted_column
from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.lowering.scope import Scope
from st_common.query.pair_columns import OF_FEATURES, as_speed, of_other, speed_tag

_WITHIN = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren)
_NUMBERS = (
    *("x", "y", "elapsed_s", "heading_deg", "acceleration_mps2"),
    *OF_FEATURES.values(),
)
_SPEED = "speed_mps"


def with_numbers(
    root: exp.Expr,
    scope: Scope,
    comparisons: tuple[type[exp.Expr], ...],
    measure: str,
) -> exp.Expr:
    """The tree of an expression with tags called as plans do, as numbers where they stand beside such.

    Args:
        root: the tree, which is changed.
        scope: what names mean.
        comparisons: the classes of comparisons.
        measure: by what name a number has its unit in its meta.

    Raises:
        Refused: the name of a tag cannot stand in a condition.
    """
    held = exp.Paren(this=root)
    for leaves in list(measured_together(held, comparisons)):
        # One that is called as a speed already is a number.
        tags = [
            leaf
            for leaf in leaves
            if _is_tag(leaf, scope) and speed_tag(_name(leaf)) is None
        ]
        others = [leaf for leaf in leaves if not _is_tag(leaf, scope)]
        if any(_is_speed(leaf, measure) for leaf in others):
            for tag in tags:
                tag.replace(quoted_column(as_speed(_name(tag)), tag))
        elif any(map(_is_number, others)) and not any(map(_is_attribute, others)):
            for tag in tags:
                tag.replace(as_number(quoted_column(_name(tag), tag)))
    for tag in list(held.find_all(exp.Column)):
        if _is_tag(tag, scope):
            tag.replace(quoted_column(_name(tag), tag))
    changed: exp.Expr = held.this
    return changed


def measured_together(
    root: exp.Expr, comparisons: tuple[type[exp.Expr], ...]
) -> Iterator[list[exp.Expr]]:
    """What is compared, added and so on with each other, for each comparison and each sum that is not compared.

    Args:
        root: parentheses around a tree.
        comparisons: the classes of comparisons.

    Example:
        ABS(a - b) > c + 2      [ABS(a - b), c, 2] and [a, b]
    """
    for node in root.find_all(*comparisons, *_WITHIN):
        is_part = isinstance(node.parent, (*comparisons, *_WITHIN))
        if isinstance(node, comparisons):
            yield [leaf for side in node.iter_expressions() for leaf in _leaves(side)]
        elif node is not root and (not is_part or node.parent is root):
            yield list(_leaves(node))


def _leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """What arithmetic is made of."""
    if isinstance(node, _WITHIN):
        for part in node.iter_expressions():
            yield from _leaves(part)
    else:
        yield node


def _is_tag(node: exp.Expr, scope: Scope) -> bool:
    return (
        isinstance(node, exp.Column)
        and node.args.get("table") is not None
        and scope.is_other(node)
    )


def _is_speed(node: exp.Expr, measure: str) -> bool:
    if isinstance(node, exp.Literal):
        return measure in node.meta and node.meta[measure].domain == "speed"
    return isinstance(node, exp.Column) and node.name.lower() == _SPEED


def _is_number(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return not node.is_string
    return isinstance(node, exp.Column) and node.name.lower() in _NUMBERS


def _is_attribute(node: exp.Expr) -> bool:
    """Whether the settings of the stream say what unit a column is in, or none."""
    known = (*BUILTINS, *OF_FEATURES.values())
    return isinstance(node, exp.Column) and node.name.lower() not in known


def _name(tag: exp.Expr) -> str:
    """What a plan calls a tag. DuckDB knows no case: of tags that differ in case alone it would take any."""
    name = tag.name if tag.this.args.get("quoted") else tag.name.lower()
    if name != name.lower() or not name:
        message = f"a tag in an expression is in small letters, not {name!r}"
        raise Refused(message, span_of(tag), "a tag that equals a text may be any")
    return of_other(name)


def as_number(column: exp.Expr) -> exp.Expr:
    """The number that a text is, null where it is none."""
    return exp.TryCast(this=column, to=exp.DataType.build("DOUBLE"))
