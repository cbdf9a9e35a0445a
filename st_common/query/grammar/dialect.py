"""The dialect of continuous queries: statements for sqlglot's parser, around what `selection` reads."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from st_common.query.grammar import words
from st_common.query.grammar.nodes import (
    CreateArea,
    DropArea,
    Explain,
    Register,
    Show,
    Unregister,
)
from st_common.query.grammar.selection import SelectionParser

STATEMENTS = (
    "REGISTER QUERY",
    "REPLACE QUERY",
    "DROP QUERY",
    "CREATE AREA",
    "CREATE OR REPLACE AREA",
    "DROP AREA",
    "SHOW",
    "EXPLAIN",
)
_SHOWN = ("QUERIES", "AREAS", "STREAMS")
_Tree = exp.Expr | None


class FairwayParser(SelectionParser):
    """sqlglot's parser with our statements."""

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

    def parse_expression(self, raw_tokens: Sequence[Token], sql: str) -> exp.Expr:
        """The tree of a single expression, of which nothing may be left over."""
        found = self._parse(
            lambda _: self._parse_condition_of("nothing"), list(raw_tokens), sql
        )[0]
        assert found is not None  # noqa: S101 - an absent one was refused
        return found

    def _parse_batch_statements(
        self, parse_method: Callable[[Any], _Tree], *_: Any, **__: Any
    ) -> list[_Tree]:
        """One statement or expression; sqlglot's own knows BEGIN, ELSE and END between statements."""
        self._advance_chunk()
        found = parse_method(self)
        if self._curr:
            self._expected("the end")
        return [found]

    def parse_select(self, raw_tokens: Sequence[Token], sql: str) -> exp.Expr:
        """The tree of a SELECT that stands alone, as an EXPLAIN."""
        found = self._parse(
            lambda _: self._to_the_end(self._parse_selection()), list(raw_tokens), sql
        )[0]
        assert found is not None  # noqa: S101 - an absent one was refused
        return found

    def _parse_statement(self) -> exp.Expr | None:
        start = (
            self.STARTS.get(self._curr.text.upper())
            if self._curr.token_type == TokenType.VAR
            else None
        )
        if start is not None:
            self._advance()
        elif not self._match_set(self.STATEMENT_PARSERS):
            known = [word.partition(" ")[0] for word in STATEMENTS]
            self._expected(f"{', '.join(STATEMENTS[:-1])} or {STATEMENTS[-1]}", known)
        return self._to_the_end(
            (start or self.STATEMENT_PARSERS[self._prev.token_type])(self)
        )

    def _to_the_end(self, statement: exp.Expr) -> exp.Expr:
        if self._curr:
            self._expected("';'")
        return statement

    def _parse_create_area(self) -> exp.Expr:
        replaces = bool(self._match_text_seq("OR"))
        if replaces and not self._match_text_seq("REPLACE"):
            self._expected("REPLACE", ("REPLACE",))
        if not self._match_text_seq("AREA"):
            self._expected("AREA" if replaces else "AREA or OR REPLACE AREA")
        name = self._parse_name("a name for the area")
        if not self._match(TokenType.ALIAS):
            self._expected("AS and a region")
        return self.expression(
            CreateArea(
                this=name,
                expression=self._located(self._parse_region),
                replaces=replaces,
            )
        )

    def _parse_shown(self) -> exp.Expr:
        if not self._match_texts(_SHOWN):
            self._expected(f"{', '.join(_SHOWN[:-1])} or {_SHOWN[-1]}", _SHOWN)
        return self.expression(
            Show(
                this=exp.Var(this=self._prev.text.lower()).update_positions(self._prev)
            )
        )

    def _parse_explain(self) -> exp.Expr:
        if self._curr.token_type == TokenType.SELECT:
            return self._parse_selection()
        return self.expression(
            Explain(this=self._parse_name("the name of a query, or SELECT"))
        )

    def _parse_selection(self) -> exp.Expr:
        if not self._match(TokenType.SELECT):
            self._expected("SELECT", ("SELECT",))
        return self.expression(Explain(expression=self._parse_selected()))

    def _parse_register(self, *, replace: bool) -> exp.Expr:
        name = self._parse_query_name()
        if not self._match(TokenType.ALIAS):
            if self._curr and self._curr.start == self._prev.end + 1:
                self._refuse(
                    f"expected AS, not {self._curr.text!r}",
                    self._curr,
                    "such a name stands in double quotes",
                )
            self._expected("AS", ("AS",))
        if not self._match(TokenType.SELECT):
            self._expected("SELECT", ("SELECT",))
        return self.expression(
            Register(this=name, expression=self._parse_selected(), replace=replace)
        )

    def _parse_unregister(self) -> exp.Expr:
        if self._match_text_seq("AREA"):
            return self.expression(
                DropArea(this=self._parse_name("the name of an area"))
            )
        return self.expression(Unregister(this=self._parse_query_name()))

    def _parse_query_name(self) -> exp.Expr:
        if not self._match_text_seq("QUERY"):
            area = self._prev.token_type == words.DROP
            self._expected(
                "QUERY or AREA" if area else "QUERY",
                ("QUERY", "AREA") if area else ("QUERY",),
            )
        return self._parse_name("a name for the query")


class Fairway(Dialect):
    """The dialect of continuous queries."""

    Tokenizer = words.FairwayTokenizer
    Parser = FairwayParser


def expression_of(text: str) -> exp.Expr:
    """The tree of an expression.

    Raises:
        Refused: the text is no expression.
    """
    return FairwayParser(dialect=_FAIRWAY).parse_expression(
        _FAIRWAY.tokenize(text), text
    )


_FAIRWAY = Fairway()
