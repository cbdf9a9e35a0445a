"""Calls of `H3_CELL` and `GRID_CELL` in a text: how large cells are is a number; who names no place means the fix's."""

import math

from sqlglot import exp

from st_common.query.cells import FINEST, GRID, H3
from st_common.query.grammar.nodes import Refused, Span
from st_common.written import whole_number


def check_cell(node: exp.Expr, span: Span) -> None:
    """Checks a call by its name in capitals, and writes the place of the fix into one that names none.

    Args:
        node: a call of any function.
        span: where it stands.

    Raises:
        Refused: the size is none.
    """
    if node.name not in (H3, GRID):
        return
    *place, size = node.expressions
    if len(place) == 1:
        raise Refused(f"{node.name} takes a size, or x, y and a size", span)
    _check_size(node.name, size, span)
    if not place:
        node.set("expressions", [exp.column("x"), exp.column("y"), size])


def _check_size(name: str, size: exp.Expr, span: Span) -> None:
    is_number = isinstance(size, exp.Literal) and not size.is_string
    said = size.this if is_number else ""
    if name == H3 and whole_number(said, FINEST) is None:
        hint = "H3_CELL(9): hexagons of 200 m along a side; a finer one has a seventh of the area"
        raise Refused(f"expected a resolution from 0 to {FINEST}", span, hint)
    if name == GRID and not (said and 0 < float(said) < math.inf):
        hint = "in the unit of the plane: GRID_CELL(500)"
        raise Refused("expected the side of a square, a number above 0", span, hint)
