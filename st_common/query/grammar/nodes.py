"""What stands in the tree of a statement beside sqlglot's own nodes, and how the tree points back into the text."""

from typing import Any, ClassVar, Literal

from sqlglot import exp

Op = Literal[
    "register",
    "replace",
    "drop",
    "show",
    "explain",
    "create_area",
    "replace_area",
    "drop_area",
    "create_stream",
    "drop_stream",
    "create_table",
    "drop_table",
    "ask",
]
"""What a statement does."""

Span = tuple[int, int]
INCOMPLETE = "incomplete"  # in the meta of a SELECT of which something that other clauses lean on was refused

REFUSED = "refused"  # there, too: the first words of the clauses that were refused
TWICE = "twice"  # there, too: what was refused because it stands there twice
FIRST = "first"  # in the meta of a region: the word that its clause begins with


class Refused(Exception):  # noqa: N818 - not an error for people: it becomes a Problem
    """What is refused: a message, a hint, and the offsets (start, end) of the place."""

    def __init__(self, message: str, span: Span, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint

    def __reduce__(self) -> "tuple[type[Refused], tuple[str, Span, str]]":
        """A tree that is copied may hold one that is told later."""
        return type(self), (self.message, self.span, self.hint)


class Register(exp.Expression):
    """REGISTER QUERY this AS expression, perhaps FROM somewhere (beginning), or REPLACE QUERY.

    Here and below `conditional` is IF NOT EXISTS, or IF EXISTS.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "replace": False,
        "beginning": False,
        "conditional": False,
    }


class CreateStream(Register):
    """CREATE STREAM this AS expression: a query and the stream of its rows, both called so."""


class From(exp.Expression):
    """FROM this, a text; without it FROM BEGINNING."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False}


class Unregister(exp.Expression):
    """DROP QUERY this."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "conditional": False}


class DropStream(Unregister):
    """DROP STREAM this, one that CREATE STREAM made."""


class CreateArea(exp.Expression):
    """CREATE AREA this AS expression, a region; with `replaces` CREATE OR REPLACE AREA."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "replaces": False,
        "conditional": False,
    }


class DropArea(exp.Expression):
    """DROP AREA this."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "conditional": False}


class CreateTable(exp.Expression):
    """CREATE TABLE this (expressions, columns) WITH (options)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": True,
        "options": False,
        "conditional": False,
    }


class TableColumn(exp.Expression):
    """this, a column, with its type (`kind`), and whether it is the key."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": False, "key": False}


class DropTable(exp.Expression):
    """DROP TABLE this, or a layer."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "conditional": False}


class Show(exp.Expression):
    """SHOW this, "queries", "areas", "streams" or "tables"."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Explain(exp.Expression):
    """EXPLAIN this, the name of a query, or EXPLAIN expression, a SELECT; `analyze`: EXPLAIN ANALYZE."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": False,
        "expression": False,
        "analyze": False,
    }


class Ask(exp.Expression):
    """expression, a SELECT that stands alone, with the past that it asks about."""

    arg_types: ClassVar[dict[str, bool]] = {"expression": True, "past": False}


class AskedPast(exp.Expression):
    """AS OF expression, or BETWEEN this AND expression: texts."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "expression": True}


class Source(exp.Table):
    """A stream or a layer, its alias, and the windows in brackets behind it."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.Table.arg_types, "windows": False}


class Rows(exp.Expression):
    """(this), a SELECT whose rows another one asks about, and its alias."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": False}


class Bracket(exp.Expression):
    """[RANGE this, SLIDE slide], each a reach."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "slide": False}


class Reach(exp.Expression):
    """How far a window goes back or on: a quantity or a region, `by` "space", "time", "rows" or "session"."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "by": True}


class Inside(exp.Expression):
    """A region: (expressions), CIRCLE (..), CORRIDOR (..), FEATURE (..), 'WKT', or a name; `form` says which.

    Of the forms "all", "any", "not" and "meets" (INTERSECTS) the expressions are regions; of "ahead" (WILL ENTER) they
    are a region, a time, and perhaps by what.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "form": True}


class Holding(exp.Expression):
    """FOR expressions, each a quantity of time or of fixes."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Until(exp.Expression):
    """UNTIL this, a condition."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Detect(exp.Expression):
    """DETECT expressions, each an event."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Detected(exp.Expression):
    """ENTER, EXIT and so on (this), of DWELL with a quantity of time."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": False}


class Greatest(exp.Expression):
    """ORDER BY this, perhaps DESC, LIMIT count, perhaps PER expression."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "descending": False,
        "count": True,
        "expression": False,
    }


class Comparing(exp.Expression):
    """COMPARE WITH (expressions), or COMPARE WITH NOT (expressions)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "negative": False}


class Using(exp.Expression):
    """USING this (expressions), ...: each step is one."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Step(exp.Expression):
    """this (expressions), a step of USING."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


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
    """EMIT this, "changes" or "every", of EVERY perhaps an interval; perhaps WITH VALID UNTIL."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "interval": False,
        "valid_until": False,
    }


class Options(exp.Expression):
    """WITH (name = 'text', name = quantity, ...); several quantities of one option are a tuple."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Intersects(exp.Expression):
    """ST_Intersects(this, expression)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Within(exp.Expression):
    """ST_Within(this, expression), or ST_Contains(expression, this)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Near(exp.Expression):
    """ST_DWithin(this, expression, distance with its unit)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "distance": True,
    }


class Point(exp.Expression):
    """ST_Point(x, y): its expressions are two quantities."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Exists(exp.Expression):
    """EXISTS (SELECT 1 FROM .. WHERE ..): `this` is a join with what stands behind FROM, on what WHERE says."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


SPATIAL = {Intersects: "ST_Intersects", Within: "ST_Within", Near: "ST_DWithin"}
_LOCATED = (
    Inside,
    Knn,
    Lasting,
    Holding,
    Until,
    Detect,
    Detected,
    Emit,
    Options,
    Rows,
    Bracket,
    Reach,
    Greatest,
    Comparing,
    Using,
    Step,
    Exists,
    exp.Tuple,
    exp.Paren,
    exp.Identifier,
    exp.Literal,
)  # they know all that they take


def span_of(node: Any) -> Span:
    """The offsets (start, end) of what a node, or the names and numbers below it, take in the text."""
    if isinstance(node, _LOCATED) and "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    metas = [
        inner.meta for inner in node.walk() if inner.meta and "start" in inner.meta
    ]
    if not metas:
        return 0, 0
    return min(meta["start"] for meta in metas), max(meta["end"] for meta in metas) + 1
