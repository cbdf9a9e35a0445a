"""Conditions that differ in literals alone have one shape, with a parameter where each may have another value (X13).

`ABS(load - 3) > 9 + 17 / 1e6` and `ABS(load - 4) > 9.5` are `ABS(load - $0) > $1`. What may become a parameter is the
largest part without a column beside an operator: there DuckDB asks a constant for nothing but its type. A literal that
is given to a function stays what it is, for functions look at constants when they are bound (`ROUND(load, 2)`,
`REGEXP_MATCHES(kind, '^a')`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Class = Literal["arithmetic", "comparison", "text"]
"""What an operator does: it decides which types of constants may stand in a column instead."""

Pieces = tuple["str | int | Slot", ...]
"""A text in parts: where an int stands, the literal of that number; where a slot stands, a constant."""

_LITERAL = re.compile(
    r"('(?:[^']|'')*'"
    r"|(?<![\w.])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))"
    r'|"(?:[^"]|"")*"'
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of a condition without a column, which may become a parameter.

    Attributes:
        constant: its text, in pieces.
        beside: what stands beside it at the same operator and has a column.
        operator: what that operator does.
    """

    constant: Pieces
    beside: tuple[Pieces, ...]
    operator: Class


@dataclass(frozen=True, slots=True)
class Draft:
    """A condition with its slots.

    Attributes:
        pieces: its text, in which slots stand for parts that may become parameters.
        columns: the columns that it names, each as it is written first.
    """

    pieces: Pieces
    columns: tuple[str, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots in the order of the text."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Slot))


def cut(condition: str) -> tuple[str, list[str]]:
    """What is the same in all conditions that are read alike, as a key, and the literals in order.

    Texts and numbers are told apart in the key; `ABS(load - 3) > 9` has the literals 3 and 9, both numbers, and the
    same key as `ABS(load - 4) > 8`.
    """
    between, literals, at = list[str](), list[str](), 0
    for match in _LITERAL.finditer(condition):
        if match[1] is not None:
            between.append(condition[at : match.start()])
            literals.append(match[1])
            at = match.end()
    # A text and a number at one place are read otherwise: that is part of the key.
    kinds = "".join("t" if text[0] == "'" else "n" for text in literals)
    return "\x00".join([kinds, *between, condition[at:]]), literals


def filled(pieces: Sequence[str | int], literals: Sequence[str]) -> str:
    """The text of pieces without slots.

    Args:
        pieces: texts, and numbers of literals.
        literals: the literals by number.
    """
    return "".join(
        piece if isinstance(piece, str) else literals[piece] for piece in pieces
    )


def flat(pieces: Pieces) -> Iterator[str | int]:
    """The pieces with constants where slots stand."""
    for piece in pieces:
        if isinstance(piece, Slot):
            yield from flat(piece.constant)
        else:
            yield piece
