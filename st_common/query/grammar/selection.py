"""SELECT for sqlglot's parser: its columns and its clauses.

A clause of SQL that continuous queries do not have is refused where it stands.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.tokenizer_core import TokenType

from st_common.query.grammar import words
from st_common.query.grammar.expressions import ExpressionParser
from st_common.query.grammar.nodes import INCOMPLETE, REFUSED, Refused
from st_common.units import METRES, SECONDS, SPEEDS

STREAMS = ("ISTREAM", "DSTREAM", "RSTREAM")
_CLAUSES = (
    "JOIN",
    "WHERE",
    "INSIDE",
    "KNN",
    "DETECT",
    "GROUP BY",
    "WINDOW",
    "COMPARE WITH",
    "USING",
    "EMIT",
    "WITH",
)
_ALONE = frozenset(
    (  # clauses that others do not lean on
        words.INSIDE,
        words.KNN,
        words.REVERSE_KNN,
        words.GROUP_KNN,
        words.DETECT,
        TokenType.WINDOW,
        words.COMPARE,
        words.USING,
        words.EMIT,
        TokenType.WITH,
    )
)


class SelectionParser(ExpressionParser):
    """What stands behind SELECT; what was wrong there is kept, and read on behind it."""

    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.WHERE: lambda self: ("where", self._parse_choice()),
        words.INSIDE: lambda self: ("inside", self._located(self._parse_inside)),
        words.KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.REVERSE_KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.GROUP_KNN: lambda self: ("knn", self._located(self._parse_knn)),
        words.DETECT: lambda self: ("detect", self._located(self._parse_detect)),
        TokenType.GROUP_BY: lambda self: ("group", self._parse_grouping()),
        TokenType.WINDOW: lambda self: ("window", self._located(self._parse_lasting)),
        words.COMPARE: lambda self: ("compare", self._located(self._parse_compare)),
        words.USING: lambda self: ("using", self._located(self._parse_using)),
        words.EMIT: lambda self: ("emit", self._parse_emit()),
        TokenType.WITH: lambda self: ("options", self._located(self._parse_options)),
    }
    QUERY_MODIFIER_TOKENS: ClassVar[set[TokenType]] = set(QUERY_MODIFIER_PARSERS)
    TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = parser.Parser.TABLE_ALIAS_TOKENS - {
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.WINDOW,
    }

    def reset(self) -> None:
        """Forgets what was parsed; `refusals` holds what was refused of a statement that could be read on."""
        super().reset()
        self.refusals: list[Refused] = []

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
        return exp.Select(
            expressions=[items],
            kind=told,
            distinct=exp.Distinct() if distinct else None,
        )

    def _from_behind(self, start: int, refused: Refused) -> int:
        """Where FROM stands behind a wrong list of items; the refusal goes on when there is none."""
        depth = 0
        for index in range(start, len(self._tokens)):
            kind = self._tokens[index].token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            if kind == TokenType.FROM and depth <= 0:
                return index
        raise refused

    def _attempt_clause(
        self, select: exp.Select, parse: Callable[[exp.Select], None]
    ) -> None:
        """Parses a clause; a refusal is kept, and the next clause goes on."""
        first, index = self._curr, self._index
        try:
            parse(select)
        except Refused as refused:
            self.refusals.append(refused)
            select.meta.setdefault(REFUSED, set()).add(first.text.upper())
            if first.token_type not in _ALONE:
                select.meta[INCOMPLETE] = True
            ends = self._curr.token_type in self.STATEMENT_PARSERS
            while self._curr and (
                ends or self._index == index or not self._starts_clause()
            ):
                self._advance()

    def _starts_clause(self) -> bool:
        options = (
            self._curr.token_type != TokenType.WITH
            or self._next.token_type == TokenType.L_PAREN
        )
        return self._curr.token_type in self.QUERY_MODIFIER_PARSERS and options

    def _parse_joined(self, select: exp.Select) -> None:
        for join in iter(self._parse_join, None):
            select.append("joins", join)

    def _parse_clause(self, select: exp.Select) -> None:
        token = self._curr
        if token.token_type not in self.QUERY_MODIFIER_PARSERS:
            units = (
                (*METRES, *SECONDS, *SPEEDS)
                if self._prev.token_type == TokenType.NUMBER
                else ()
            )
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
                self._refuse(
                    "* stands alone after SELECT", self._curr, "or name every column"
                )
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
        return self.expression(
            exp.Alias(this=item, alias=self._parse_name("a name for the column"))
        )

    def _parse_choice(self) -> exp.Where:
        self._advance()
        return self.expression(exp.Where(this=self._parse_condition_of("WHERE")))

    def _parse_grouping(self) -> exp.Group:
        self._advance()
        return self.expression(
            exp.Group(
                expressions=[self._parse_condition_of("GROUP BY", "an expression")]
            )
        )
