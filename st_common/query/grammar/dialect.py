"""Statements and SELECT for sqlglot's parser: it reads expressions, this says what stands around them.

A clause of SQL that continuous queries do not have is refused where it stands.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from st_common.query.grammar import words
from st_common.query.grammar.nodes import INCOMPLETE, CreateArea, DropArea, Explain, Refused, Register, Show, Unregister
from st_common.query.grammar.sources import SPATIAL, SourceParser
from st_common.units import METRES, SECONDS, SPEEDS, Domain, Measure, domain_of

STATEMENTS = ("REGISTER QUERY", "REPLACE QUERY", "DROP QUERY", "CREATE AREA", "DROP AREA", "SHOW", "EXPLAIN")
STREAMS = ("ISTREAM", "DSTREAM", "RSTREAM")
_CLAUSES = ("JOIN", "WHERE", "INSIDE", "KNN", "GROUP BY", "WINDOW", "COMPARE WITH", "USING", "EMIT", "WITH")
_ALONE = frozenset((  # clauses that others do not lean on
    words.INSIDE, words.KNN, words.REVERSE_KNN, words.GROUP_KNN, TokenType.WINDOW, words.COMPARE, words.USING,
    words.EMIT, TokenType.WITH,
))  # fmt: skip
_SHOWN = ("QUERIES", "AREAS", "STREAMS")
_BASE = parser.Parser
_Tree = exp.Expr | None


class FairwayParser(SourceParser):
    """sqlglot's parser with our statements and clauses, and functions that take names."""

    STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {
        words.REGISTER: lambda self: self._parse_register(replace=False),
        words.REPLACE: lambda self: self._parse_register(replace=True),
        words.DROP: lambda self: self._parse_unregister(),
    }
    STARTS: ClassVar[dict[str, Any]] = {  # words that are names elsewhere
        "CREATE": lambda self: self._parse_create_area(),
        "SHOW": lambda self: self._parse_shown(),
        "EXPLAIN": lambda self: self._parse_explain(),
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.WHERE: lambda self: ("where", self._parse_choice()),
        words.INSIDE: lambda self: ("inside", self._located(self._parse_inside)),
        words.KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.REVERSE_KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.GROUP_KNN: lambda self: ("knn", self._located(self._parse_knn)),
        TokenType.GROUP_BY: lambda self: ("group", self._parse_grouping()),
        TokenType.WINDOW: lambda self: ("window", self._located(self._parse_lasting)),
        words.COMPARE: lambda self: ("compare", self._located(self._parse_compare)),
        words.USING: lambda self: ("using", self._located(self._parse_using)),
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
        "ST_INTERSECTS": lambda self: self._parse_spatial("ST_INTERSECTS"),
        "ST_WITHIN": lambda self: self._parse_spatial("ST_WITHIN"),
        "ST_CONTAINS": lambda self: self._parse_spatial("ST_CONTAINS"),
        "ST_DWITHIN": lambda self: self._parse_spatial("ST_DWITHIN"),
    }

    def reset(self) -> None:
        """Forgets what was parsed; `refusals` holds what was refused of a statement that could be read on."""
        super().reset()
        self.refusals: list[Refused] = []

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

    def parse_select(self, raw_tokens: Sequence[Token], sql: str) -> exp.Expr:
        """The tree of a SELECT that stands alone, as an EXPLAIN."""
        found = self._parse(lambda _: self._to_the_end(self._parse_selection()), list(raw_tokens), sql)[0]
        assert found is not None  # noqa: S101 - an absent one was refused
        return found

    def _parse_statement(self) -> exp.Expr | None:
        start = self.STARTS.get(self._curr.text.upper()) if self._curr.token_type == TokenType.VAR else None
        if start is not None:
            self._advance()
        elif not self._match_set(self.STATEMENT_PARSERS):
            known = [word.partition(" ")[0] for word in STATEMENTS]
            self._expected(f"{', '.join(STATEMENTS[:-1])} or {STATEMENTS[-1]}", known)
        return self._to_the_end((start or self.STATEMENT_PARSERS[self._prev.token_type])(self))

    def _to_the_end(self, statement: exp.Expr) -> exp.Expr:
        if self._curr:
            self._expected("';'")
        return statement

    def _parse_create_area(self) -> exp.Expr:
        if not self._match_text_seq("AREA"):
            self._expected("AREA")
        name = self._parse_name("a name for the area")
        if not self._match(TokenType.ALIAS):
            self._expected("AS and a region")
        return self.expression(CreateArea(this=name, expression=self._located(self._parse_region)))

    def _parse_shown(self) -> exp.Expr:
        if not self._match_texts(_SHOWN):
            self._expected(f"{', '.join(_SHOWN[:-1])} or {_SHOWN[-1]}", _SHOWN)
        return self.expression(Show(this=exp.Var(this=self._prev.text.lower()).update_positions(self._prev)))

    def _parse_explain(self) -> exp.Expr:
        if self._curr.token_type == TokenType.SELECT:
            return self._parse_selection()
        return self.expression(Explain(this=self._parse_name("the name of a query, or SELECT")))

    def _parse_selection(self) -> exp.Expr:
        if not self._match(TokenType.SELECT):
            self._expected("SELECT", ("SELECT",))
        return self.expression(Explain(expression=self._parse_selected()))

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
        """SELECT [DISTINCT] items, or SELECT ISTREAM ([DISTINCT] items), then FROM and clauses.

        What is wrong is kept in `refusals`, and reading goes on behind it.
        """
        start = self._index
        try:
            select = self._parse_projection()
        except Refused as refused:
            self._retreat(self._from_behind(start, refused))
            self._advance()
            self.refusals.append(refused)
            select = exp.Select(expressions=[exp.Tuple(expressions=[exp.Star()])])
            select.meta[INCOMPLETE] = True
        self._parse_sources(select)
        self._attempt_clause(select, self._parse_joined)
        while self._curr:
            self._attempt_clause(select, self._parse_clause)
        return select

    def _parse_projection(self) -> exp.Select:
        told = self._match_told()
        distinct = self._match(TokenType.DISTINCT)
        items = self._located(lambda: exp.Tuple(expressions=self._parse_items()))
        if told is not None and not self._match(TokenType.R_PAREN):
            self._expected("',', AS or ')'")
        if not self._match(TokenType.FROM):
            starred = told is not None or isinstance(items.expressions[0], exp.Star)
            self._expected("FROM" if starred else "',', AS or FROM", ("FROM",))
        return exp.Select(expressions=[items], kind=told, distinct=exp.Distinct() if distinct else None)

    def _from_behind(self, start: int, refused: Refused) -> int:
        """Where FROM stands behind a wrong list of items; the refusal goes on when there is none."""
        depth = 0
        for index in range(start, len(self._tokens)):
            kind = self._tokens[index].token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            if kind == TokenType.FROM and depth <= 0:
                return index
        raise refused

    def _attempt_clause(self, select: exp.Select, parse: Callable[[exp.Select], None]) -> None:
        """Parses a clause; a refusal is kept, and the next clause goes on."""
        first, index = self._curr, self._index
        try:
            parse(select)
        except Refused as refused:
            self.refusals.append(refused)
            if first.token_type not in _ALONE:
                select.meta[INCOMPLETE] = True
            ends = self._curr.token_type in self.STATEMENT_PARSERS
            while self._curr and (ends or self._index == index or not self._starts_clause()):
                self._advance()

    def _starts_clause(self) -> bool:
        options = self._curr.token_type != TokenType.WITH or self._next.token_type == TokenType.L_PAREN
        return self._curr.token_type in self.QUERY_MODIFIER_PARSERS and options

    def _parse_joined(self, select: exp.Select) -> None:
        for join in iter(self._parse_join, None):
            select.append("joins", join)

    def _parse_clause(self, select: exp.Select) -> None:
        token = self._curr
        if token.token_type not in self.QUERY_MODIFIER_PARSERS:
            units = (*METRES, *SECONDS, *SPEEDS) if self._prev.token_type == TokenType.NUMBER else ()
            self._expected(f"{', '.join(_CLAUSES)} or ';'", (*_CLAUSES, *units))
        key, clause = self.QUERY_MODIFIER_PARSERS[token.token_type](self)
        if select.args.get(key):
            self._refuse(f"Found multiple '{token.text.upper()}' clauses", token)
        select.set(key, clause)

    def _match_told(self) -> exp.Expr | None:
        """CQL's ISTREAM, DSTREAM or RSTREAM before parentheses."""
        if self._next.token_type != TokenType.L_PAREN or not self._match_texts(STREAMS):
            return None
        told = exp.Var(this=self._prev.text.lower()).update_positions(self._prev)
        self._advance()
        return told

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
        if self._match_text_seq("AREA"):
            return self.expression(DropArea(this=self._parse_name("the name of an area")))
        return self.expression(Unregister(this=self._parse_query_name()))

    def _parse_query_name(self) -> exp.Expr:
        if not self._match_text_seq("QUERY"):
            area = self._prev.token_type == words.DROP
            self._expected("QUERY or AREA" if area else "QUERY", ("QUERY", "AREA") if area else ("QUERY",))
        return self._parse_name("a name for the query")

    def _parse_choice(self) -> exp.Where:
        self._advance()
        return self.expression(exp.Where(this=self._parse_condition_of("WHERE")))

    def _parse_grouping(self) -> exp.Group:
        self._advance()
        return self.expression(exp.Group(expressions=[self._parse_condition_of("GROUP BY", "an expression")]))

    def _parse_type(self, *given: Any, **options: Any) -> exp.Expr | None:
        """A number may have a unit: it counts metres, seconds or metres per second then."""
        first = self._curr
        found = super()._parse_type(*given, **options)
        if not isinstance(found, exp.Literal) or found.is_string or self._curr.token_type != TokenType.VAR:
            return found
        unit = self._parse_unit()
        if unit is None:
            return found
        domain, times, per = unit
        amount = float(found.this)
        value = repr(amount * times / per).removesuffix(".0")
        made = exp.Literal.number(value).update_positions(start=first.start, end=self._prev.end)
        made.meta["measure"] = Measure(domain=domain, times=times, per=per, amount=amount)
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
        if self._curr.token_type == TokenType.SLASH and self._next.text.lower() in SECONDS:
            self._advance(2)
            return "speed", METRES[word], SECONDS[self._prev.text.lower()]
        return domain, METRES[word], 1.0

    def _parse_paren(self) -> exp.Expr | None:
        """Parentheses that were written know their place; those that sqlglot adds do not."""
        return self._located(super()._parse_paren) if self._curr.token_type == TokenType.L_PAREN else None

    def _parse_function_call(self, *given: Any, **options: Any) -> exp.Expr | None:
        name = self._curr.text
        called = name.upper() if self._next.token_type == TokenType.L_PAREN else ""
        if called.startswith("ST_") and called not in {each.upper() for each in SPATIAL}:
            self._refuse_spatial(name)
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
