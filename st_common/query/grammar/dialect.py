"""Statements, SELECT and JOIN for sqlglot's parser: it reads expressions, this says what stands around them.

A clause of SQL that continuous queries do not have is refused where it stands.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from st_common.query.grammar import words
from st_common.query.grammar.clauses import ClauseParser
from st_common.query.grammar.nodes import Intersects, Register, Unregister, Within
from st_common.query.problem import did_you_mean

SPATIAL = ("ST_Intersects", "ST_DWithin")
STATEMENTS = ("REGISTER QUERY", "REPLACE QUERY", "DROP QUERY")
_CLAUSES = ("JOIN", "WHERE", "INSIDE", "KNN", "GROUP BY", "WINDOW", "EMIT", "WITH")
_BASE = parser.Parser
_Tree = exp.Expr | None


class FairwayParser(ClauseParser):
    """sqlglot's parser with our statements and clauses, and functions that take names."""

    STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {
        words.REGISTER: lambda self: self._parse_register(replace=False),
        words.REPLACE: lambda self: self._parse_register(replace=True),
        words.DROP: lambda self: self._parse_unregister(),
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.WHERE: lambda self: ("where", self._parse_choice()),
        words.INSIDE: lambda self: ("inside", self._located(self._parse_inside)),
        words.KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.REVERSE_KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.GROUP_KNN: lambda self: ("knn", self._located(self._parse_knn)),
        TokenType.GROUP_BY: lambda self: ("group", self._parse_grouping()),
        TokenType.WINDOW: lambda self: ("window", self._located(self._parse_lasting)),
        words.EMIT: lambda self: ("emit", self._parse_emit()),
        TokenType.WITH: lambda self: ("options", self._located(self._parse_options)),
    }
    QUERY_MODIFIER_TOKENS: ClassVar[set[TokenType]] = set(QUERY_MODIFIER_PARSERS)
    TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = _BASE.TABLE_ALIAS_TOKENS - {
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.WINDOW,
    }
    FUNCTIONS: ClassVar[dict[str, Any]] = {}  # a function is its name and what it is given, nothing is rewritten
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {}
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        kind: _BASE.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": _BASE.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CAST": lambda self: self._parse_casting(exp.Cast),
        "TRY_CAST": lambda self: self._parse_casting(exp.TryCast),
        "EXTRACT": _BASE.FUNCTION_PARSERS["EXTRACT"],
        "ST_INTERSECTS": lambda self: self._parse_spatial(distance=False),
        "ST_DWITHIN": lambda self: self._parse_spatial(distance=True),
    }

    def parse_expression(self, raw_tokens: Sequence[Token], sql: str) -> exp.Expr:
        """The tree of a single expression, of which nothing may be left over."""
        found = self._parse(lambda _: self._parse_condition_of("nothing"), list(raw_tokens), sql)[0]
        assert found is not None  # noqa: S101 - an absent one was refused
        return found

    def _parse_batch_statements(self, parse_method: Callable[[Any], _Tree], *_: Any, **__: Any) -> list[_Tree]:
        """One statement or expression; sqlglot's own knows BEGIN, ELSE and END between statements."""
        self._advance_chunk()
        found = parse_method(self)
        if self._curr:
            self._expected("the end")
        return [found]

    def _parse_statement(self) -> exp.Expr | None:
        if not self._match_set(self.STATEMENT_PARSERS):
            known = [word.partition(" ")[0] for word in STATEMENTS]
            self._expected(f"{', '.join(STATEMENTS[:-1])} or {STATEMENTS[-1]}", known)
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
        return self.expression(Register(this=name, expression=self._parse_selected(), replace=replace))

    def _parse_selected(self) -> exp.Expr:
        distinct = self._match(TokenType.DISTINCT)
        items = self._located(lambda: exp.Tuple(expressions=self._parse_items()))
        if not self._match(TokenType.FROM):
            starred = isinstance(items.expressions[0], exp.Star)
            self._expected("FROM" if starred else "',', AS or FROM", ("FROM",))
        source = exp.From(this=self._parse_table())
        select = exp.Select(expressions=[items], from_=source, distinct=exp.Distinct() if distinct else None)
        return self._parse_query_modifiers(select)

    def _parse_items(self) -> list[exp.Expr]:
        if self._match(TokenType.STAR):
            if self._curr.token_type == TokenType.COMMA:
                self._refuse("* stands alone after SELECT", self._curr, "or name every column")
            return [exp.Star().update_positions(self._prev)]
        items = [self._parse_item()]
        while self._match(TokenType.COMMA):
            items.append(self._parse_item())
        return items

    def _parse_item(self) -> exp.Expr:
        item = self._located(self._parse_disjunction)
        if item is None:
            self._expected("* or an expression")
        if not self._match(TokenType.ALIAS):
            return item
        return self.expression(exp.Alias(this=item, alias=self._parse_name("a name for the column")))

    def _parse_unregister(self) -> exp.Expr:
        return self.expression(Unregister(this=self._parse_query_name()))

    def _parse_query_name(self) -> exp.Expr:
        if not self._match_text_seq("QUERY"):
            self._expected("QUERY", ("QUERY",))
        return self._parse_name("a name for the query")

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
        """[INNER] JOIN [LAYER] name ON condition; other joins have no meaning for a stream."""
        if self._match_pair(TokenType.INNER, TokenType.JOIN, advance=False):
            self._advance()
        if not self._match(TokenType.JOIN):
            return None
        layer = self._match_layer()
        table = self._parse_table(**options)
        if not self._match(TokenType.ON):
            self._expected("ON and a condition", ("ON",))
        condition = self._parse_condition_of("ON")
        return self.expression(exp.Join(this=table, on=condition, kind="LAYER" if layer else None))

    def _match_layer(self) -> bool:
        """The word LAYER before a name; a layer of that name stands alone, or in double quotes."""
        names = self._next.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        named = self._curr.token_type == TokenType.VAR and self._curr.text.upper() == "LAYER" and names
        if named:
            self._advance()
        return named

    def _parse_choice(self) -> exp.Where:
        self._advance()
        return self.expression(exp.Where(this=self._parse_condition_of("WHERE")))

    def _parse_grouping(self) -> exp.Group:
        self._advance()
        return self.expression(exp.Group(expressions=[self._parse_condition_of("GROUP BY", "an expression")]))

    def _parse_condition_of(self, clause: str, what: str = "a condition") -> exp.Expr:
        condition = self._located(self._parse_disjunction)
        if condition is None:
            self._expected(f"{what} after {clause}")
        return condition

    def _parse_paren(self) -> exp.Expr | None:
        """Parentheses that were written know their place; those that sqlglot adds do not."""
        return self._located(super()._parse_paren) if self._curr.token_type == TokenType.L_PAREN else None

    def _parse_function_call(self, *given: Any, **options: Any) -> exp.Expr | None:
        name = self._curr.text
        if name.upper().startswith("ST_") and self._next.token_type == TokenType.L_PAREN:
            known = {each.upper(): each for each in SPATIAL}
            if name.upper() not in known:
                self._refuse(f"expected {' or '.join(SPATIAL)}, not {name!r}", self._curr, did_you_mean(name, SPATIAL))
        return super()._parse_function_call(*given, **options)

    def _parse_select(self, *_: Any, **__: Any) -> exp.Expr | None:
        """A query inside of an expression: continuous queries have none."""
        if self._curr.token_type in (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM):
            self._refuse("a query has no place inside of an expression", self._curr)
        return None

    def _parse_casting(self, kind: type[exp.Cast]) -> exp.Expr:
        this = self._parse_disjunction()
        if not self._match(TokenType.ALIAS):
            self._expected("AS and a type", ("AS",))
        return self.expression(kind(this=this, to=self._parse_types()))

    def _parse_types(self, check_func: bool = False, *_: Any, **__: Any) -> exp.Expr | None:  # noqa: FBT001, FBT002 - theirs
        """The type of a CAST; elsewhere (`check_func`) a word is no type."""
        if check_func:
            return None
        if self._curr.text.upper() not in words.TYPES:
            self._expected(f"a type such as {', '.join(sorted(set(words.TYPES.values())))}", words.TYPES)
        self._advance()
        return exp.DataType(this=exp.DType[words.TYPES[self._prev.text.upper()]])

    def _parse_spatial(self, *, distance: bool) -> exp.Expr:
        called = self._tokens[self._index - 2]  # before the parenthesis
        left = self._parse_name("the stream or the layer")
        self._comma()
        right = self._parse_name("the stream or the layer")
        if not distance:
            made: exp.Expr = Intersects(this=left, expression=right)
        else:
            self._comma()
            far = self._parse_quantity()
            if far.args.get("unit") is None:
                self._expected("a unit after the distance, such as m")
            made = Within(this=left, expression=right, distance=far)
        if not self._match(TokenType.R_PAREN, advance=False):  # sqlglot takes it, but does not mind when it is absent
            self._expected("')'")
        return self.expression(made, called)

    def _comma(self) -> None:
        if not self._match(TokenType.COMMA):
            self._expected("','")


class Fairway(Dialect):
    """The dialect of continuous queries."""

    Tokenizer = words.FairwayTokenizer
    Parser = FairwayParser


def expression_of(text: str) -> exp.Expr:
    """The tree of an expression.

    Raises:
        Refused: the text is no expression.
    """
    return FairwayParser(dialect=_FAIRWAY).parse_expression(_FAIRWAY.tokenize(text), text)


_FAIRWAY = Fairway()
