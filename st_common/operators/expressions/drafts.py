"""Drafts of shapes, read from trees of conditions: see `shapes`, which needs no sqlglot (it is slow to import)."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from st_common.operators.expressions.shapes import (
    Class,
    Draft,
    Pieces,
    Slot,
    filled,
    flat,
)
from st_common.query.grammar.comparing import COMPARING
from st_common.query.grammar.nodes import Refused
from st_common.query.grammar.statements import expression_of, text_of

_MARK = re.compile("(\x00[0-9]+\x00|\x01[0-9]+\x01)")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_TEXTS = (exp.Like, exp.ILike)


@lru_cache(maxsize=4096)
def draft_of(key: str) -> Draft | None:
    """The draft of the conditions with a key (see `cut`); None of a constant, and of what is no canonical text.

    Example:
        ABS(load - 3) > 9      slots 3 (arithmetic, beside load) and 9 (comparison, beside ABS(load - 3)); columns load
    """
    kinds, *between = key.split("\x00")
    if "\x01" in key:
        return None
    # Any literals of these kinds: how a condition is read does not depend on their values.
    tree = tree_of(key, ["'a'" if kind == "t" else "1" for kind in kinds])
    if tree is None:
        return None
    draft = _drawn(tree)
    alike = "".join(
        piece if isinstance(piece, str) else f"\x00{piece}\x00"
        for piece in flat(draft.pieces)
    )
    wanted = "".join(
        piece if isinstance(piece, str) else f"\x00{piece}\x00"
        for piece in _zipped(between)
    )
    # Only if the tree gives the same text again: then nothing was lost in reading.
    is_read = alike.casefold() == wanted.casefold()
    return draft if is_read and draft.columns else None


def tree_of(key: str, literals: Sequence[str]) -> exp.Expr | None:
    """The tree of the condition with a key (see `cut`) and some literals; None of what cannot be read."""
    kinds, *between = key.split("\x00")
    if len(between) != len(kinds) + 1:
        return None
    try:
        return expression_of(filled(_zipped(between), literals))
    except (Refused, SqlglotError):
        return None


def _zipped(between: Sequence[str]) -> list[str | int]:
    """Texts with the numbers 0, 1, .. between them."""
    out: list[str | int] = [between[0]]
    for number, text in enumerate(between[1:]):
        out += [number, text]
    return out


def _drawn(tree: exp.Expr) -> Draft:
    columns = dict.fromkeys(column.name for column in tree.find_all(exp.Column))
    literals = list(tree.find_all(exp.Literal))
    # Numbered as they come out of the tree; the text says afterwards which is which from left to right.
    for number, literal in enumerate(literals):
        literal.replace(exp.Literal.number(f"\x00{number}\x00"))
    order = {
        int(mark): place
        for place, mark in enumerate(re.findall("\x00([0-9]+)\x00", text_of(tree)))
    }
    slots = list[Slot]()
    for node, beside, operator in list(_places(tree)):
        slots.append(
            Slot(
                constant=_pieces(text_of(node.copy()), order, ()),
                beside=tuple(_pieces(text_of(one.copy()), order, ()) for one in beside),
                operator=operator,
            )
        )
        node.replace(exp.Literal.number(f"\x01{len(slots) - 1}\x01"))
    return Draft(pieces=_pieces(text_of(tree), order, slots), columns=tuple(columns))


def _places(
    tree: exp.Expr,
) -> Iterator[tuple[exp.Expr, list[exp.Expr], Class]]:
    """The parts that may become parameters, with those beside them and what their operator does."""
    for node in tree.walk():
        operator = _class_of(node)
        sides = list(node.iter_expressions()) if operator else []
        beside = [side for side in sides if side.find(exp.Column)]
        for side in sides if beside else ():
            if operator and not side.find(exp.Column) and side.find(exp.Literal):
                yield side, [one.copy() for one in beside], operator


def _class_of(node: exp.Expr) -> Class | None:
    if isinstance(node, _ARITHMETIC):
        return "arithmetic"
    if isinstance(node, COMPARING):
        return "comparison"
    return "text" if isinstance(node, _TEXTS) else None


def _pieces(text: str, order: dict[int, int], slots: Sequence[Slot]) -> Pieces:
    """The parts of a text with marks; literals by their place from left to right."""
    out = list[str | int | Slot]()
    for part in _MARK.split(text):
        if part.startswith("\x00"):
            out.append(order[int(part[1:-1])])
        elif part.startswith("\x01"):
            out.append(slots[int(part[1:-1])])
        elif part:
            out.append(part)
    return tuple(out)
