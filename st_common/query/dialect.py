"""The words of the query language, for sqlglot: it cuts the text and reads SELECT and expressions, this adds the rest.

New words take token types that no SQL of ours uses, so that they are never read as an alias. A clause of SQL that
continuous queries do not have yet is refused where it stands.
"""

from collections.abc import Collection
from typing import Any, ClassVar, NoReturn

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from st_common.query.problem import did_you_mean

STATEMENTS = ("REGISTER QUERY", "REPLACE QUERY", "DROP QUERY")
EMITS = ("CHANGES", "EVERY")
_CLAUSES = ("JOIN", "WHERE", "INSIDE", "EMIT")
_NO_TOKEN = Token(TokenType.SENTINEL, "")


class Refused(ParseError):  # noqa: N818 - not an error for people: it becomes a Problem
    """What the parser refuses: a message, a hint, and the offsets (start, end) of the place."""

    def __init__(self, message: str, span: tuple[int, int], hint: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


class Register(exp.Expression):
    """REGISTER QUERY this AS expression, or REPLACE QUERY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "replace": False}


class Unregister(exp.Expression):
    """DROP QUERY this."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Inside(exp.Expression):
    """INSIDE (x1, y1, x2, y2)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Intersects(exp.Expression):
    """ST_Intersects(this, expression)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Within(exp.Expression):
    """ST_DWithin(this, expression, distance unit)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "distance": True, "unit": True}


class FairwayParser(parser.Parser):
    """sqlglot's parser with our statements, INSIDE, EMIT, and functions that take names."""

    STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.INSTALL: lambda self: self._parse_register(replace=False),
        TokenType.REPLACE: lambda self: self._parse_register(replace=True),
        TokenType.DROP: lambda self: self._parse_unregister(),
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.WHERE: lambda self: ("where", self._parse_choice()),
        TokenType.POLICY: lambda self: ("inside", self._parse_inside()),
        TokenType.POOL: lambda self: ("emit", self._parse_emit()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar[set[TokenType]] = set(QUERY_MODIFIER_PARSERS)
    TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = parser.Parser.TABLE_ALIAS_TOKENS - {
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.WINDOW,
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "ST_INTERSECTS": lambda self: self._parse_spatial(distance=False),
        "ST_DWITHIN": lambda self: self._parse_spatial(distance=True),
    }

    def raise_error(self, message: str, token: Token = _NO_TOKEN) -> NoReturn:
        """Refuses at a token, or at the one that comes next."""
        self._refuse(message.rstrip("."), token or self._curr)

    def _refuse(self, message: str, token: Token, hint: str = "") -> NoReturn:
        end = self._prev.end + 1 if self._prev else 0
        raise Refused(message, (token.start, token.end + 1) if token else (end, end), hint)

    def _expected(self, what: str, words: Collection[str] = ()) -> NoReturn:
        """Refuses the next token; a word that it, or the word before it, seems to mean makes the hint."""
        for token in (self._curr, self._prev):
            if token and token.token_type == TokenType.VAR and (hint := did_you_mean(token.text, words)):
                self._refuse(f"expected {what}, not {token.text!r}", token, hint)
        found = repr(self._curr.text) if self._curr else "the end"
        statement = self._curr.token_type in self.STATEMENT_PARSERS
        self._refuse(f"expected {what}, not {found}", self._curr, "a statement ends with ;" if statement else "")

    def _parse_statement(self) -> exp.Expr | None:
        if not self._match_set(self.STATEMENT_PARSERS):
            words = [word.partition(" ")[0] for word in STATEMENTS]
            self._expected(f"{', '.join(STATEMENTS[:-1])} or {STATEMENTS[-1]}", words)
        statement: exp.Expr = self.STATEMENT_PARSERS[self._prev.token_type](self)
        if self._curr:
            more = isinstance(statement, Register)
            self._expected(f"{', '.join(_CLAUSES)} or ';'" if more else "';'", _CLAUSES if more else ())
        return statement

    def _parse_register(self, *, replace: bool) -> exp.Expr:
        name = self._parse_query_name()
        if not self._match(TokenType.ALIAS):
            if self._curr and self._curr.start == self._prev.end + 1:
                self._refuse(f"expected AS, not {self._curr.text!r}", self._curr, "such a name stands in double quotes")
            self._expected("AS", ("AS",))
        if not self._match(TokenType.SELECT):
            self._expected("SELECT", ("SELECT",))
        select = self._parse_select_all()
        return self.expression(Register(this=name, expression=select, replace=replace))

    def _parse_select_all(self) -> exp.Expr:
        if not self._match(TokenType.STAR):
            self._refuse("expected * after SELECT", self._curr, "changes carry the object and its partner")
        if not self._match(TokenType.FROM):
            self._expected("FROM", ("FROM",))
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=self._parse_table()))
        return self._parse_query_modifiers(select)

    def _parse_unregister(self) -> exp.Expr:
        return self.expression(Unregister(this=self._parse_query_name()))

    def _parse_query_name(self) -> exp.Expr:
        if not self._match_text_seq("QUERY"):
            self._expected("QUERY", ("QUERY",))
        return self._parse_name("a name for the query")

    def _parse_name(self, what: str) -> exp.Expr:
        name = self._parse_id_var(any_token=False)
        if name is None:
            self._expected(what)
        return name

    def _parse_table(self, *_: Any, **options: Any) -> exp.Expr:
        """A stream or a layer is a name and perhaps an alias: no path, no subquery, no sample."""
        name = self._parse_name("the name of a stream or a layer")
        return self.expression(exp.Table(this=name, alias=self._parse_table_alias(options.get("alias_tokens"))))

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        if self._match(TokenType.ALIAS):
            alias: exp.Expr | None = self._parse_name("an alias")
        else:
            alias = self._parse_id_var(any_token=False, tokens=alias_tokens or self.TABLE_ALIAS_TOKENS)
        return self.expression(exp.TableAlias(this=alias)) if alias else None

    def _parse_join(self, *_: Any, **options: Any) -> exp.Join | None:
        """[INNER] JOIN layer ON condition; other joins have no meaning for a stream and a layer."""
        if self._match_pair(TokenType.INNER, TokenType.JOIN, advance=False):
            self._advance()
        if not self._match(TokenType.JOIN):
            return None
        layer = self._parse_table(**options)
        if not self._match(TokenType.ON):
            self._expected("ON and a condition", ("ON",))
        return self.expression(exp.Join(this=layer, on=self._parse_condition_of("ON")))

    def _parse_choice(self) -> exp.Where:
        self._advance()
        return self.expression(exp.Where(this=self._parse_condition_of("WHERE")))

    def _parse_condition_of(self, clause: str) -> exp.Expr:
        condition = self._parse_disjunction()
        if condition is None:
            self._expected(f"a condition after {clause}")
        return condition

    def _parse_inside(self) -> exp.Expr:
        self._advance()
        if not self._match(TokenType.L_PAREN):
            self._expected("(x1, y1, x2, y2)")
        numbers = [self._parse_signed_number()]
        while self._match(TokenType.COMMA):
            numbers.append(self._parse_signed_number())
        if not self._match(TokenType.R_PAREN):
            self._expected("',' or ')'")
        return self.expression(Inside(expressions=numbers))

    def _parse_signed_number(self) -> exp.Expr:
        sign = self._curr
        negative = self._match(TokenType.DASH)
        if not negative:
            self._match(TokenType.PLUS)
        if self._curr.token_type not in (TokenType.NUMBER, TokenType.DOT):
            self._expected("a number")
        number = self._parse_primary()
        if not isinstance(number, exp.Literal):
            self._refuse("expected a number", sign)
        number.update_positions(self._prev)
        return self.expression(exp.Neg(this=number).update_positions(sign)) if negative else number

    def _parse_emit(self) -> exp.Expr:
        self._advance()
        if not self._match_texts(EMITS):
            self._expected(" or ".join(EMITS), EMITS)
        return exp.Var(this=self._prev.text.lower())

    def _parse_spatial(self, *, distance: bool) -> exp.Expr:
        called = self._tokens[self._index - 2]  # before the parenthesis
        left = self._parse_name("the stream or the layer")
        self._comma()
        right = self._parse_name("the stream or the layer")
        if not distance:
            made: exp.Expr = Intersects(this=left, expression=right)
        else:
            self._comma()
            number = self._parse_signed_number()
            if self._curr.token_type == TokenType.R_PAREN:
                self._expected("a unit after the distance, such as m")
            unit = self._parse_name("a unit after the distance, such as m")
            made = Within(this=left, expression=right, distance=number, unit=unit)
        if not self._match(TokenType.R_PAREN, advance=False):  # sqlglot takes it, but does not mind when it is absent
            self._expected("')'")
        return self.expression(made, called)

    def _comma(self) -> None:
        if not self._match(TokenType.COMMA):
            self._expected("','")


class Fairway(Dialect):
    """The dialect of continuous queries."""

    class Tokenizer(tokens.Tokenizer):
        """The words of SQL, and ours."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{word: kind for word, kind in tokens.Tokenizer.KEYWORDS.items() if word != "/*+"},
            "REGISTER": TokenType.INSTALL,
            "INSIDE": TokenType.POLICY,
            "EMIT": TokenType.POOL,
        }
        COMMANDS: ClassVar[set[TokenType]] = set()  # no statement takes its tail as raw text

    Parser = FairwayParser
