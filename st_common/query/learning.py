"""Statements that differ from one read before in names and literals alone are not parsed again.

A statement whose shape comes for the second time is made a `template`, when all that depends on its literals is known:
what it gives with its own literals must be what the parser gave.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, chain
from typing import Any

from sqlglot import exp

from st_common.query.areas import Areas
from st_common.query.grammar.nodes import Inside, Quantity, Span, span_of
from st_common.query.grammar.tokens import Token
from st_common.query.lowering.compared import MEASURE
from st_common.query.lowering.expression import COMPARISONS
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.lower import lowered
from st_common.query.lowering.quantity import is_moving
from st_common.query.pieces import Piece, literals_of, pattern_of
from st_common.query.plan import Plan
from st_common.query.template import Template, Understood

_SHAPES = 512
_NUMBERS_OF_BOX = 4
_VARIANTS = 64  # templates of one shape, which differ in literals that cannot be put in
_KINDS = {"'": "STRING", '"': "QUOTED"}
_MARK = re.compile("918273645([0-9]{5})|'\ue000([0-9]{5})\ue001'")
_local = (
    threading.local()
)  # of each thread, for the tree of a template is changed when it is used

Parse = Callable[[], exp.Expr | None]


@dataclass(slots=True)
class _Shape:
    """The templates of one shape by the literals that may not differ, which are `fixed`; None: it can have none."""

    fixed: tuple[int, ...] | None = None
    variants: dict[tuple[str, ...], Template | None] = field(default_factory=dict)


def template_of(text: str) -> tuple[Template, Sequence[str]] | None:
    """The template for a statement, and the statement's literals; None when there is none in this thread.

    Statements of one template mostly follow each other, so that of the last one is tried before all others.
    """
    last: Template | None = getattr(_local, "last", None)
    alike = last.pattern.fullmatch(text) if last is not None else None
    if last is not None and alike is not None:
        return last, alike.groups()
    shape, literals, _ = literals_of(text)
    known = _shapes().get(shape)
    if known is None or known.fixed is None:
        return None
    template = known.variants.get(tuple([literals[number] for number in known.fixed]))
    if template is None:
        return None
    _local.last = template
    return template, literals


def learn(
    piece: Piece,
    statement: Understood,
    tokens: Sequence[Token],
    parse: Parse,
    areas: Areas,
) -> None:
    """Makes a template of a statement that was read from a piece, when its shape comes for the second time."""
    shape, literals, _ = literals_of(piece.text)
    shapes = _shapes()
    known = shapes.get(shape)
    if known is None:
        shapes[shape] = _Shape()
        for old in list(shapes)[:-_SHAPES]:
            del shapes[old]
        return
    if len(known.variants) >= _VARIANTS:
        return
    template = _template(piece, statement, tokens, parse, areas)
    if known.fixed is None:
        varying = template.varying if template is not None else frozenset()
        known.fixed = tuple(
            number for number in range(len(literals)) if number not in varying
        )
    fits = template is not None and template.varying >= set(range(len(literals))) - set(
        known.fixed
    )
    known.variants[tuple([literals[number] for number in known.fixed])] = (
        template if fits else None
    )


def _shapes() -> dict[str, _Shape]:
    if not hasattr(_local, "shapes"):
        _local.shapes = {}
    shapes: dict[str, _Shape] = _local.shapes
    return shapes


def _template(
    piece: Piece,
    statement: Understood,
    tokens: Sequence[Token],
    parse: Parse,
    areas: Areas,
) -> Template | None:
    """The template of a statement; None when the tokens are other literals, or what it says depends on others."""
    _, literals, between = literals_of(piece.text)
    bounds = _bounds(literals, between)
    if (
        statement.plan is None
        or statement.plan.frame is not None
        or statement.plan.outer is not None
        or not _are_literals(piece, tokens, literals, bounds)
    ):
        return None
    tree = parse()
    if tree is None or span_of(tree.this) != _in_text(piece, bounds[0]):
        return None
    at = {start + piece.start: number for number, (start, _) in enumerate(bounds)}
    return _made(piece, statement, tree.args["expression"], at, areas)


def _in_text(piece: Piece, bounds: Span) -> Span:
    """Where bounds in a piece are in the whole text."""
    start, end = bounds
    return start + piece.start, end + piece.start


def _are_literals(
    piece: Piece,
    tokens: Sequence[Token],
    literals: Sequence[str],
    bounds: Sequence[Span],
) -> bool:
    """Whether the tokens of a statement have the same literals, a name first, and no other name among them."""
    if not bounds or (tokens and tokens[0].start_pos != piece.start):
        return False
    places = {(token.start_pos, token.end_pos): token for token in tokens}
    read = [places.get(_in_text(piece, span)) for span in bounds]
    pairs = zip(read, literals, strict=True)
    if not all(_is_literal(token, literal) for token, literal in pairs):
        return False
    # A name that is not the first is a word behind another QUERY.
    return not any(token and token.kind == "NAME" for token in read[1:])


def _made(
    piece: Piece,
    statement: Understood,
    select: exp.Expr,
    at: Mapping[int, int],
    areas: Areas,
) -> Template | None:
    """The template with the literals that may differ; None when filling it with its own gives something else.

    Args:
        piece: the statement.
        statement: what the parser gave.
        select: its tree below REGISTER QUERY.
        at: the number of the literal that begins at a place of the text.
        areas: the named areas.
    """
    plan = statement.plan
    if plan is None:
        return None
    _, literals, between = literals_of(piece.text)
    chosen, around = _condition(select, plan, at, areas)
    corners = _corners(select.args.get("inside"), at)
    clauses = ("knn",) if corners else ("inside", "knn")
    nodes = [
        pair for clause in clauses for pair in _literals(select.args.get(clause), at)
    ]
    varying = frozenset({0, *(number for number, _ in (*nodes, *corners)), *chosen})
    made = Template(
        statement=statement,
        pattern=pattern_of(literals, between, varying),
        varying=varying,
        bounds=tuple(_bounds(literals, between)),
        select=select,
        nodes=tuple(nodes),
        corners=corners,
        chosen=chosen,
        around=around,
        behind=len(piece.text) - len(statement.text),
        fields=_said(plan),
    )
    again = made.filled(literals, areas)
    return made if again == (statement.name, statement.plan, statement.terms) else None


def _said(plan: Plan) -> dict[str, Any]:
    """The fields of a plan that are not what they are by default."""
    values = {each.name: getattr(plan, each.name) for each in fields(Plan)}
    defaults = {each.name: each.default for each in fields(Plan)}
    return {
        name: value for name, value in values.items() if value is not defaults[name]
    }


def _bounds(literals: Sequence[str], between: Sequence[str]) -> list[Span]:
    lengths = [
        len(part) for part in chain.from_iterable(zip(between, literals, strict=False))
    ]
    ends = list(accumulate(lengths))
    return list(zip(ends[::2], ends[1::2], strict=True))


def _is_literal(token: Token | None, literal: str) -> bool:
    """Whether a token is the same literal."""
    kind = _KINDS.get(literal[0], "NUMBER" if literal[0].isdigit() else "NAME")
    return token is not None and token.kind == kind


def _literals(
    node: exp.Expr | None, at: Mapping[int, int]
) -> Iterator[tuple[int, exp.Expr]]:
    """The literals below a node, each with its number among those of the statement."""
    for literal in node.find_all(exp.Literal, bfs=False) if node is not None else ():
        number = at.get(literal.meta.get("start", -1))
        if number is not None:
            yield number, literal


def _corners(
    inside: exp.Expr | None, at: Mapping[int, int]
) -> tuple[tuple[int, float], ...]:
    """The literals of a rectangle's corners, each with its sign; nothing for another region, or for other numbers."""
    if (
        not isinstance(inside, Inside)
        or inside.args["form"].name != "parts"
        or is_moving(inside.expressions)
    ):
        return ()
    corners = [_signed(part, at) for part in inside.expressions]
    known = tuple(pair for pair in corners if pair is not None)
    return known if len(known) == len(corners) == _NUMBERS_OF_BOX else ()


def _signed(part: exp.Expr, at: Mapping[int, int]) -> tuple[int, float] | None:
    if not isinstance(part, Quantity) or part.args.get("unit") is not None:
        return None
    sign, value = (
        (-1.0, part.this.this) if isinstance(part.this, exp.Neg) else (1.0, part.this)
    )
    number = (
        at.get(value.meta.get("start", -1))
        if isinstance(value, exp.Literal) and not value.is_string
        else None
    )
    return None if number is None else (number, sign)


def _condition(
    select: exp.Expr, plan: Plan, at: Mapping[int, int], areas: Areas
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The literals that are compared in a condition, and the parts of its text around them.

    They are lowered once as marks, which are looked for in the text.
    """
    nothing: tuple[tuple[int, ...], tuple[str, ...]] = (), ()
    marked = [
        (number, node)
        for number, node in _literals(select.args.get("where"), at)
        if _is_compared(node)
    ]
    for number, node in marked:
        node.args["this"] = (
            f"\ue000{number:05}\ue001"
            if node.args["is_string"]
            else f"918273645{number:05}"
        )
    gathered = Gathered()
    marked_plan = lowered(select, areas, gathered)
    if (
        not marked
        or marked_plan is None
        or gathered.found
        or marked_plan.plan.where is None
    ):
        return nothing
    numbers = tuple(
        int(mark[1] or mark[2]) for mark in _MARK.finditer(marked_plan.plan.where)
    )
    around = tuple(_MARK.sub("\0", marked_plan.plan.where).split("\0"))
    same = replace(marked_plan.plan, where=plan.where) == plan and sorted(
        numbers
    ) == sorted(number for number, _ in marked)
    return (numbers, around) if same else nothing


def _is_compared(literal: exp.Expr) -> bool:
    """Whether a literal is one side of a comparison: what the statement says does not depend on its value."""
    side = literal.parent if isinstance(literal.parent, exp.Neg) else literal
    return isinstance(side.parent, COMPARISONS) and MEASURE not in literal.meta
