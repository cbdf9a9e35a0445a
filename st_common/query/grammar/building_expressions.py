"""The rules of expressions as sqlglot's nodes, which say them in DuckDB's dialect."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from st_common.config.units import METRES, SECONDS, SPEEDS, Domain, Measure
from st_common.query.grammar.located import (
    at,
    identifier,
    number_literal,
    text_literal,
)
from st_common.query.grammar.nodes import Exists, Intersects, Near, Point, Within
from st_common.query.grammar.tokens import Token

TYPES = {
    "BIGINT": "BIGINT",
    "BOOL": "BOOLEAN",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "DOUBLE": "DOUBLE",
    "INT": "INT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "STRING": "VARCHAR",
    "TEXT": "VARCHAR",
    "TIME": "TIME",
    "TIMESTAMP": "TIMESTAMP",
    "VARCHAR": "VARCHAR",
}
_BINARY: dict[str, type[exp.Expr]] = {
    "=": exp.EQ,
    "==": exp.EQ,
    "<>": exp.NEQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "%": exp.Mod,
}
_VALUES: Mapping[str, Callable[[], exp.Expr]] = {
    "NULL": exp.Null,
    "TRUE": exp.true,
    "FALSE": exp.false,
}
_LIKES = {"LIKE": exp.Like, "ILIKE": exp.ILike}
_COLUMN = (
    "this",
    "table",
    "db",
    "catalog",
)  # what the names of a column are, from the last one on
Parts = Sequence[Any]


class BuildingExpressions:
    """Conditions and values."""

    def or_(self, parts: Parts) -> exp.Expr:
        return _joined(exp.Or, parts)

    def and_(self, parts: Parts) -> exp.Expr:
        return _joined(exp.And, parts)

    def not_(self, parts: Parts) -> exp.Expr:
        word, negated = parts
        return at(exp.Not(this=negated), word, negated)

    def binary(self, parts: Parts) -> exp.Expr:
        sign = parts[1]
        if sign == "/":
            made: exp.Expr = exp.Div(
                this=parts[0], expression=parts[2], typed=False, safe=False
            )
        elif sign == "||":
            made = exp.DPipe(this=parts[0], expression=parts[2], safe=True)
        else:
            made = _BINARY[sign](this=parts[0], expression=parts[2])
        return at(made, parts[0], parts[2])

    def is_(self, parts: Parts) -> exp.Expr:
        made = exp.Is(this=parts[0], expression=_VALUES[parts[-1].upper()]())
        return _negated(made, parts)

    def is_distinct(self, parts: Parts) -> exp.Expr:
        kind = exp.NullSafeEQ if _is_negated(parts) else exp.NullSafeNEQ
        return at(kind(this=parts[0], expression=parts[-1]), parts[0], parts[-1])

    def in_(self, parts: Parts) -> exp.Expr:
        first, *others = _nodes(parts)
        return _negated(exp.In(this=first, expressions=others), parts)

    def between(self, parts: Parts) -> exp.Expr:
        value, low, high = _nodes(parts)
        return _negated(exp.Between(this=value, low=low, high=high), parts)

    def like(self, parts: Parts) -> exp.Expr:
        kind, negate = _LIKES[parts[-2].upper()], _is_negated(parts) or None
        made = kind(this=parts[0], expression=parts[-1], negate=negate)
        return at(made, parts[0], parts[-1])

    def neg(self, parts: Parts) -> exp.Expr:
        sign, value = parts
        return at(exp.Neg(this=value), sign, value)

    def pos(self, parts: Parts) -> exp.Expr:
        value: exp.Expr = parts[1]
        return value

    def typed(self, parts: Parts) -> exp.Expr:
        value, _, kind = parts
        return at(exp.Cast(this=value, to=_type(kind)), value, kind)

    def cast(self, parts: Parts) -> exp.Expr:
        word, _, value, _, kind, end = parts
        made = exp.TryCast if word.upper() == "TRY_CAST" else exp.Cast
        return at(made(this=value, to=_type(kind)), word, end)

    def extract(self, parts: Parts) -> exp.Expr:
        word, _, part, _, value, end = parts
        return at(exp.Extract(this=part, expression=value), word, end)

    def at_time_zone(self, parts: Parts) -> exp.Expr:
        value, _, zone = parts
        return at(exp.AtTimeZone(this=value, zone=zone), value, zone)

    def part_of_time(self, parts: Parts) -> exp.Expr:
        (part,) = parts
        return exp.Var(this=(part if isinstance(part, Token) else part.name).upper())

    def exists(self, parts: Parts) -> exp.Expr:
        layer = isinstance(parts[5], Token)
        join = exp.Join(this=parts[-4], on=parts[-2], kind="LAYER" if layer else None)
        return at(Exists(this=join), parts[0], parts[-1])

    def paren(self, parts: Parts) -> exp.Expr:
        begin, value, end = parts
        return at(exp.Paren(this=value), begin, end)

    def number(self, parts: Parts) -> exp.Expr:
        return number_literal(parts[0])

    def string(self, parts: Parts) -> exp.Expr:
        return text_literal(parts[0])

    def null(self, parts: Parts) -> exp.Expr:
        return at(exp.Null(), parts[0], parts[0])

    def boolean(self, parts: Parts) -> exp.Expr:
        return at(_VALUES[parts[0].upper()](), parts[0], parts[0])

    def measure(self, parts: Parts) -> exp.Expr:
        """A number with a unit counts metres, seconds or metres per second."""
        domain, times, per = _unit(parts)
        amount = float(parts[0])
        value = repr(amount * times / per).removesuffix(".0")
        made = at(exp.Literal(this=value, is_string=False), parts[0], parts[-1])
        made.meta["measure"] = Measure(
            domain=domain, times=times, per=per, amount=amount
        )
        return made

    def column(self, parts: Parts) -> exp.Expr:
        if len(parts) == 1:
            return at(exp.Column(this=parts[0]), parts[0], parts[0])
        names = dict(zip(_COLUMN, parts[::-2], strict=False))
        return at(exp.Column(**names), parts[0], parts[-1])

    def call(self, parts: Parts) -> exp.Expr:
        name, given = parts[0], _nodes(parts)
        if type(parts[2]) is Token and parts[2].type == "DISTINCT":
            given = [exp.Distinct(expressions=given)]
        return at(exp.Anonymous(this=str(name), expressions=given), name, parts[-1])

    def function(self, parts: Parts) -> Token:
        (name,) = parts
        assert isinstance(name, Token)  # noqa: S101 - by the grammar
        return name

    def spatial(self, parts: Parts) -> exp.Expr:
        word, _, left, _, right = parts[:5]
        name = word.upper()
        made: exp.Expr
        if name == "ST_DWITHIN":
            made = Near(this=left, expression=right, distance=parts[6])
        elif name == "ST_INTERSECTS":
            made = Intersects(this=left, expression=right)
        else:
            inner, outer = (right, left) if name == "ST_CONTAINS" else (left, right)
            made = Within(this=inner, expression=outer)
        return at(made, word, parts[-1])

    def point(self, parts: Parts) -> exp.Expr:
        return at(Point(expressions=[parts[2], parts[4]]), parts[0], parts[-1])

    def case(self, parts: Parts) -> exp.Expr:
        ifs = [part for part in parts if isinstance(part, exp.If)]
        made = exp.Case(ifs=ifs)
        if isinstance(parts[1], exp.Expr) and parts[1] is not ifs[0]:
            made.set("this", parts[1])
        if isinstance(parts[-3], Token) and parts[-3].type == "ELSE":
            made.set("default", parts[-2])
        return at(made, parts[0], parts[-1])

    def when(self, parts: Parts) -> exp.Expr:
        word, condition, _, value = parts
        return at(exp.If(this=condition, true=value), word, value)

    def name(self, parts: Parts) -> exp.Expr:
        return identifier(parts[0])

    def member(self, parts: Parts) -> exp.Expr:
        (name,) = parts
        return identifier(name) if isinstance(name, Token) else name


def _nodes(parts: Parts) -> list[exp.Expr]:
    return [part for part in parts if isinstance(part, exp.Expr)]


def _joined(kind: type[exp.Expr], parts: Parts) -> exp.Expr:
    left, _, right = parts
    return at(kind(this=left, expression=right), left, right)


def _is_negated(parts: Parts) -> bool:
    return any(isinstance(part, Token) and part.upper() == "NOT" for part in parts[1:3])


def _negated(made: exp.Expr, parts: Parts) -> exp.Expr:
    """The comparison, or what NOT says of it; the parts are all of it."""
    at(made, parts[0], parts[-1])
    return at(exp.Not(this=made), parts[0], parts[-1]) if _is_negated(parts) else made


def _type(word: Token) -> exp.DataType:
    return exp.DataType(this=exp.DType[TYPES[word.upper()]])


def _unit(parts: Parts) -> tuple[Domain, float, float]:
    """What the unit of a number measures, and by which factor and divisor a number of it becomes metres or seconds."""
    word = parts[1].lower()
    if len(parts) > 2:
        return "speed", METRES[word], SECONDS[parts[3].lower()]
    if word in SPEEDS:
        return "speed", *SPEEDS[word]
    if word in SECONDS:
        return "time", SECONDS[word], 1.0
    return "space", METRES[word], 1.0
