"""Expressions for sqlglot's parser: numbers with units, functions that take names, types that CAST knows."""

from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.tokenizer_core import TokenType

from st_common.query.grammar import words
from st_common.query.grammar.sources import SPATIAL, SourceParser
from st_common.units import METRES, SECONDS, SPEEDS, Domain, Measure, domain_of

_BASE = parser.Parser


class ExpressionParser(SourceParser):
    """What stands in conditions and columns."""

    FUNCTIONS: ClassVar[
        dict[str, Any]
    ] = {}  # a function is its name and what it is given, nothing is rewritten
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {}
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        kind: _BASE.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": _BASE.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CAST": lambda self: self._parse_casting(exp.Cast),
        "TRY_CAST": lambda self: self._parse_casting(exp.TryCast),
        "EXTRACT": _BASE.FUNCTION_PARSERS["EXTRACT"],
        "ST_INTERSECTS": lambda self: self._parse_spatial("ST_INTERSECTS"),
        "ST_WITHIN": lambda self: self._parse_spatial("ST_WITHIN"),
        "ST_CONTAINS": lambda self: self._parse_spatial("ST_CONTAINS"),
        "ST_DWITHIN": lambda self: self._parse_spatial("ST_DWITHIN"),
    }

    def _parse_type(self, *given: Any, **options: Any) -> exp.Expr | None:
        """A number may have a unit: it counts metres, seconds or metres per second then."""
        first = self._curr
        found = super()._parse_type(*given, **options)
        if (
            not isinstance(found, exp.Literal)
            or found.is_string
            or self._curr.token_type != TokenType.VAR
        ):
            return found
        unit = self._parse_unit()
        if unit is None:
            return found
        domain, times, per = unit
        amount = float(found.this)
        value = repr(amount * times / per).removesuffix(".0")
        made = exp.Literal.number(value).update_positions(
            start=first.start, end=self._prev.end
        )
        made.meta["measure"] = Measure(
            domain=domain, times=times, per=per, amount=amount
        )
        return made

    def _parse_unit(self) -> tuple[Domain, float, float] | None:
        """What a unit measures, and by which factor and divisor a number of it becomes metres, seconds, or both."""
        word = self._curr.text.lower()
        domain = domain_of(word)
        if domain is None:
            return None
        self._advance()
        if word in SPEEDS:
            return domain, *SPEEDS[word]
        if domain == "time":
            return domain, SECONDS[word], 1.0
        if (
            self._curr.token_type == TokenType.SLASH
            and self._next.text.lower() in SECONDS
        ):
            self._advance(2)
            return "speed", METRES[word], SECONDS[self._prev.text.lower()]
        return domain, METRES[word], 1.0

    def _parse_paren(self) -> exp.Expr | None:
        """Parentheses that were written know their place; those that sqlglot adds do not."""
        return (
            self._located(super()._parse_paren)
            if self._curr.token_type == TokenType.L_PAREN
            else None
        )

    def _parse_function_call(self, *given: Any, **options: Any) -> exp.Expr | None:
        name = self._curr.text
        called = name.upper() if self._next.token_type == TokenType.L_PAREN else ""
        if called.startswith("ST_") and called not in {
            each.upper() for each in SPATIAL
        }:
            self._refuse_spatial(name)
        return super()._parse_function_call(*given, **options)

    def _parse_select(self, *_: Any, **__: Any) -> exp.Expr | None:
        """A query inside of an expression: continuous queries have none."""
        if self._curr.token_type in (
            TokenType.SELECT,
            TokenType.WITH,
            TokenType.VALUES,
            TokenType.FROM,
        ):
            self._refuse("a query has no place inside of an expression", self._curr)
        return None

    def _parse_casting(self, kind: type[exp.Cast]) -> exp.Expr:
        this = self._parse_disjunction()
        if not self._match(TokenType.ALIAS):
            self._expected("AS and a type", ("AS",))
        return self.expression(kind(this=this, to=self._parse_types()))

    def _parse_types(
        self,
        check_func: bool = False,  # noqa: FBT001, FBT002 - theirs
        *_: Any,
        **__: Any,
    ) -> exp.Expr | None:
        """The type of a CAST; elsewhere (`check_func`) a word is no type."""
        if check_func:
            return None
        if self._curr.text.upper() not in words.TYPES:
            self._expected(
                f"a type such as {', '.join(sorted(set(words.TYPES.values())))}",
                words.TYPES,
            )
        self._advance()
        return exp.DataType(this=exp.DType[words.TYPES[self._prev.text.upper()]])
