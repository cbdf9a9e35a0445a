"""FROM and JOIN: streams with their windows in brackets, layers, and what joins them."""

import re
from collections.abc import Collection
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from st_common.query.grammar.clauses import NUMBER_STARTS, ClauseParser
from st_common.query.grammar.nodes import (
    Bracket,
    Intersects,
    Near,
    Quantity,
    Reach,
    Source,
    Within,
)
from st_common.query.problem import did_you_mean

SPATIAL = ("ST_Intersects", "ST_Within", "ST_Contains", "ST_DWithin")
_DOMAINS = ("SPACE", "TIME")
_EXTENT = re.compile(
    r"\s*(?P<sign>[+-]?)(?P<number>(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)\s*(?P<unit>\w*)\s*",
    re.IGNORECASE,
)


def extent_in(text: str, start: int) -> Quantity | None:
    """The number and its unit that a text in quotes is, None for another; `start` is where it begins."""
    found = _EXTENT.fullmatch(text)
    if found is None:
        return None
    number: exp.Expr = exp.Literal.number(found["number"])
    number.update_positions(
        start=start + found.start("sign"), end=start + found.end("number") - 1
    )
    unit = exp.to_identifier(found["unit"], quoted=False) if found["unit"] else None
    if unit is not None:
        unit.update_positions(
            start=start + found.start("unit"), end=start + found.end("unit") - 1
        )
    return Quantity(
        this=exp.Neg(this=number) if found["sign"] == "-" else number, unit=unit
    )


class SourceParser(ClauseParser):
    """The clauses, and what stands after FROM and JOIN."""

    def _parse_sources(self, select: exp.Select) -> None:
        """FROM stream [, stream or layer]: a comma joins on the conditions of WHERE."""
        select.set("from_", exp.From(this=self._parse_table()))
        while self._match(TokenType.COMMA):
            select.append("joins", self.expression(exp.Join(this=self._parse_table())))

    def _parse_table(self, *_: Any, **options: Any) -> exp.Expr:
        """A stream or a layer is a name, its windows and perhaps an alias: no path, no subquery, no sample."""
        name = self._parse_name("the name of a stream or a layer")
        alias: exp.Expr | None = None
        if self._match(TokenType.EQ):  # CQL's R=Stream
            name, alias = (
                self._parse_name("the name of a stream"),
                self.expression(exp.TableAlias(this=name)),
            )
        windows = self._parse_windows()
        behind = self._parse_table_alias(options.get("alias_tokens"))
        if alias is not None and behind is not None:
            self._refuse(
                "the stream has an alias already",
                self._prev,
                f"{alias.name} = {name.name}",
            )
        if behind is not None and self._curr.token_type == TokenType.L_BRACKET:
            self._refuse(
                "a window stands before the alias",
                self._curr,
                f"{name.name} [...] {behind.name}",
            )
        return self.expression(
            Source(this=name, alias=alias or behind, windows=windows)
        )

    def _parse_table_alias(
        self, alias_tokens: Collection[TokenType] | None = None
    ) -> exp.TableAlias | None:
        if self._match(TokenType.ALIAS):
            alias: exp.Expr | None = self._parse_name("an alias")
        else:
            alias = self._parse_id_var(
                any_token=False, tokens=alias_tokens or self.TABLE_ALIAS_TOKENS
            )
        return self.expression(exp.TableAlias(this=alias)) if alias else None

    def _parse_windows(self) -> list[exp.Expr]:
        windows: list[exp.Expr] = []
        while self._curr.token_type == TokenType.L_BRACKET:
            windows.append(self._located(self._parse_bracketed))
        return windows

    def _parse_bracketed(self) -> exp.Expr:
        """[RANGE BY reach RATTR domain, SLIDE BY ..], [RANGE time, SLIDE ..] or [ROWS n, SLIDE ..]."""
        self._advance()
        by, kind = "", "ROWS"
        if self._match_text_seq("ROWS"):
            reach = self._rows()
        elif self._match_text_seq("RANGE"):
            by, kind = ("BY", "") if self._match_text_seq("BY") else ("", "TIME")
            reach = self._located(
                lambda: self._reach("RATTR") if by else self._time("RANGE")
            )
        else:
            self._expected("RANGE or ROWS", ("RANGE", "ROWS"))
        slide = self._parse_slide(kind) if self._match(TokenType.COMMA) else None
        if not self._match(TokenType.R_BRACKET):
            self._expected("']'" if slide is not None else "',' or ']'")
        return self.expression(Bracket(this=reach, slide=slide))

    def _parse_slide(self, kind: str) -> exp.Expr:
        """SLIDE BY reach SATTR domain behind any range; without BY it is counted as the range (`kind`) is."""
        if not self._match_text_seq("SLIDE"):
            self._expected("SLIDE", ("SLIDE",))
        if self._match_text_seq("BY"):
            return self._located(lambda: self._reach("SATTR"))
        if kind == "ROWS":
            return self._rows()
        if kind != "TIME":
            self._expected("BY", ("BY",))
        return self._located(lambda: self._time("SLIDE"))

    def _rows(self) -> exp.Expr:
        if self._curr.token_type not in NUMBER_STARTS:
            self._expected("a number of fixes")
        return self.expression(
            Reach(this=self._parse_quantity(), by=exp.Var(this="rows"))
        )

    def _time(self, word: str) -> exp.Expr:
        extent = self._parse_extent()
        if extent is None:
            self._expected(f"a time such as '60 minutes' after {word}", ("BY",))
        return self.expression(Reach(this=extent, by=exp.Var(this="time")))

    def _reach(self, attribute: str) -> exp.Expr:
        """An extent or, of a range, a region, and behind it RATTR or SATTR and its domain."""
        extent = self._parse_extent()
        if extent is None and attribute == "SATTR":
            self._expected("an extent such as '10 km'")
        reach = extent if extent is not None else self._located(self._parse_region)
        known = _DOMAINS if attribute == "RATTR" else (*_DOMAINS, "ROWS")
        like = f"{attribute} SPACE or {attribute} TIME"
        if not self._match_text_seq(attribute):
            self._expected(like, (attribute,))
        if not self._match_texts(known):
            self._expected(like, known)
        return self.expression(
            Reach(this=reach, by=exp.Var(this=self._prev.text.lower()))
        )

    def _parse_extent(self) -> exp.Expr | None:
        """A number and its unit, which may stand in quotes; None for anything else."""
        if self._curr.token_type in NUMBER_STARTS:
            return self._parse_quantity()
        found = None
        if self._curr.token_type == TokenType.STRING:
            found = extent_in(self._curr.text, self._curr.start + 1)
        if found is not None:
            self._advance()
        return found

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
        return self.expression(
            exp.Join(this=table, on=condition, kind="LAYER" if layer else None)
        )

    def _match_layer(self) -> bool:
        """The word LAYER before a name; a layer of that name stands alone, or in double quotes."""
        names = self._next.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        named = (
            self._curr.token_type == TokenType.VAR
            and self._curr.text.upper() == "LAYER"
            and names
        )
        if named:
            self._advance()
        return named

    def _parse_condition_of(self, clause: str, what: str = "a condition") -> exp.Expr:
        condition = self._located(self._parse_disjunction)
        if condition is None:
            self._expected(f"{what} after {clause}")
        return condition

    def _parse_spatial(self, name: str) -> exp.Expr:
        called = self._tokens[self._index - 2]  # before the parenthesis
        left = self._parse_name("the stream or the layer")
        self._comma()
        right = self._parse_name("the stream or the layer")
        made: exp.Expr
        if name == "ST_DWITHIN":
            self._comma()
            far = self._parse_quantity()
            if far.args.get("unit") is None:
                self._expected("a unit after the distance, such as m")
            made = Near(this=left, expression=right, distance=far)
        elif name == "ST_INTERSECTS":
            made = Intersects(this=left, expression=right)
        else:
            contained, container = (
                (right, left) if name == "ST_CONTAINS" else (left, right)
            )
            made = Within(this=contained, expression=container)
        if not self._match(
            TokenType.R_PAREN, advance=False
        ):  # sqlglot takes it, but does not mind when it is absent
            self._expected("')'")
        return self.expression(made, called)

    def _comma(self) -> None:
        if not self._match(TokenType.COMMA):
            self._expected("','")

    def _refuse_spatial(self, name: str) -> NoReturn:
        listed = f"{', '.join(SPATIAL[:-1])} or {SPATIAL[-1]}"
        self._refuse(
            f"expected {listed}, not {name!r}", self._curr, did_you_mean(name, SPATIAL)
        )
