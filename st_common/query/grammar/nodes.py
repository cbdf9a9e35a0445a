"""What stands in the tree of a statement beside sqlglot's own nodes, and how the tree points back into the text."""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError

Span = tuple[int, int]


class Refused(ParseError):  # noqa: N818 - not an error for people: it becomes a Problem
    """What is refused: a message, a hint, and the offsets (start, end) of the place."""

    def __init__(self, message: str, span: Span, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


class Register(exp.Expression):
    """REGISTER QUERY this AS expression, or REPLACE QUERY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "replace": False}


class Unregister(exp.Expression):
    """DROP QUERY this."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Inside(exp.Expression):
    """INSIDE (expressions), INSIDE CIRCLE (expressions), or INSIDE 'WKT'."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "circle": False}


class Knn(exp.Expression):
    """KNN, REVERSE KNN or GROUP KNN (expressions); `this` is "nearest", "reverse" or "group"."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class Quantity(exp.Expression):
    """A number with its sign and perhaps a unit."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": False}


class Lasting(exp.Expression):
    """WINDOW this, a quantity of time or of tuples."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Emit(exp.Expression):
    """EMIT this, "changes" or "every", perhaps WITH VALID UNTIL."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "valid_until": False}


class Options(exp.Expression):
    """WITH (name = 'text', ...)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Intersects(exp.Expression):
    """ST_Intersects(this, expression)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Within(exp.Expression):
    """ST_DWithin(this, expression, distance with its unit)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "distance": True}


_LOCATED = (Inside, Knn, Lasting, Emit, Options, exp.Tuple, exp.Paren, exp.Identifier, exp.Literal)  # know all of it


def span_of(node: Any) -> Span:
    """The offsets (start, end) of what a node, or the names and numbers below it, take in the text."""
    if isinstance(node, _LOCATED) and "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    metas = [found.meta for found in node.walk() if found.meta and "start" in found.meta]
    if not metas:
        return 0, 0
    return min(meta["start"] for meta in metas), max(meta["end"] for meta in metas) + 1
