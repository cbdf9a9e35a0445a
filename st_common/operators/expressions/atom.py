"""What a condition asks of a column."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Atom:
    """What is asked of a column: one of some texts, or a number of a range.

    Attributes:
        column: its name, as it is written; of one that is computed its expression.
        texts: the texts; none of a range.
        low: the constant at the lower end, "" for none; `high` likewise.
        open_low: the end is not of the range; `open_high` likewise.
        is_computed: the column is an expression.
        loose: others have numbers of the range, too: what it was made of must hold as well.
        is_parts: the texts are parts of the column's text, one of which it has; such an atom is loose.
        or_unknown: a point may satisfy it, too, where the column has no value.
    """

    column: str
    texts: tuple[str, ...] = ()
    low: str = ""
    high: str = ""
    open_low: bool = False
    open_high: bool = False
    is_computed: bool = False
    loose: bool = False
    is_parts: bool = False
    or_unknown: bool = False
