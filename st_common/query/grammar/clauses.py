"""The clauses that are ours, as a part of the parser: INSIDE, KNN, DETECT, WINDOW, COMPARE WITH, USING, EMIT, WITH."""

from collections.abc import Callable, Collection
from typing import NoReturn, TypeVar

from sqlglot import exp, parser
from sqlglot.tokenizer_core import Token, TokenType

from st_common.query.grammar import words
from st_common.query.grammar.nodes import (
    Comparing,
    Detect,
    Detected,
    Emit,
    Inside,
    Knn,
    Lasting,
    Options,
    Quantity,
    Refused,
    Step,
    Using,
)
from st_common.query.problem import did_you_mean

EMITS = ("CHANGES", "EVERY")
EVENTS = ("ENTER", "EXIT", "INSIDE", "OUTSIDE", "CROSS", "DWELL")
KNNS = {words.KNN: "nearest", words.REVERSE_KNN: "reverse", words.GROUP_KNN: "group"}
_NO_TOKEN = Token(TokenType.SENTINEL, "")
NUMBER_STARTS = (TokenType.NUMBER, TokenType.DOT, TokenType.DASH, TokenType.PLUS)
ATTRIBUTES = ("RATTR", "SATTR")  # what stands behind an extent
_BEHIND = (TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET)
_DEPTH = 2  # parentheses: of the clause, and of a place in it
_Node = TypeVar("_Node", bound="exp.Expr | None")


class ClauseParser(parser.Parser):
    """sqlglot's parser with errors that point at tokens, and our clauses."""

    def raise_error(self, message: str, token: Token = _NO_TOKEN) -> NoReturn:
        """Refuses at a token, or at the one that comes next."""
        if message.startswith("Required keyword"):
            self._expected("an expression")
        if message.startswith("Expecting "):
            self._expected(repr(message.removeprefix("Expecting ")))
        self._refuse(message.rstrip("."), token or self._curr)

    def _refuse(self, message: str, token: Token, hint: str = "") -> NoReturn:
        end = self._prev.end + 1 if self._prev else 0
        raise Refused(
            message, (token.start, token.end + 1) if token else (end, end), hint
        )

    def _expected(self, what: str, known: Collection[str] = ()) -> NoReturn:
        """Refuses the next token; a word that it, or the word before it, seems to mean makes the hint."""
        for token in (self._curr, self._prev):
            if (
                token
                and token.token_type == TokenType.VAR
                and (hint := did_you_mean(token.text, known))
            ):
                self._refuse(f"expected {what}, not {token.text!r}", token, hint)
        found = repr(self._curr.text) if self._curr else "the end"
        statement = self._curr.token_type in self.STATEMENT_PARSERS
        self._refuse(
            f"expected {what}, not {found}",
            self._curr,
            "a statement ends with ;" if statement else "",
        )

    def _parse_name(self, what: str) -> exp.Expr:
        name = self._parse_id_var(any_token=False)
        if name is None:
            self._expected(what)
        return name

    def _located(self, parse: Callable[[], _Node]) -> _Node:
        """What `parse` gives, knowing from which token to which it reaches."""
        first = self._curr
        node = parse()
        if node is not None and self._prev.end >= first.start:
            node.update_positions(start=first.start, end=self._prev.end)
        return node

    def _parse_inside(self) -> exp.Expr:
        self._advance()
        return self._parse_region()

    def _parse_region(self) -> exp.Expr:
        """(x1, y1, x2, y2), CIRCLE (..), CORRIDOR (..), ('M', id, ...), FEATURE (layer, 'fid'), 'WKT' or a name."""
        if self._curr.token_type == TokenType.STRING:
            return self._region("wkt", [self._parse_part(1)])
        if self._curr.token_type == TokenType.L_PAREN:
            parts = self._parse_parts("(x1, y1, x2, y2)")
            return self._region("across" if self._match_crossing() else "parts", parts)
        if (
            self._next.token_type != TokenType.L_PAREN
            or self._curr.token_type != TokenType.VAR
        ):
            return self._region(
                "name", [self._parse_name("(x1, y1, x2, y2), or another region")]
            )
        if self._match_text_seq("CIRCLE"):
            return self._region("circle", self._parse_parts("(x, y, radius)"))
        if self._match_text_seq("CORRIDOR"):
            return self._region(
                "corridor", self._parse_parts("('LINESTRING(..)', 50 m)")
            )
        if not self._match_text_seq("FEATURE"):
            words = ("CIRCLE", "CORRIDOR", "FEATURE")
            self._expected("(x1, y1, x2, y2), CIRCLE, CORRIDOR or FEATURE", words)
        return self._region("feature", self._parse_parts("(layer, 'fid')"))

    def _match_crossing(self) -> bool:
        """CROSSING 180 behind a rectangle."""
        if not self._match_text_seq("CROSSING"):
            return False
        if self._curr.token_type != TokenType.NUMBER or self._curr.text != "180":
            self._expected("180")
        self._advance()
        return True

    def _region(self, form: str, parts: list[exp.Expr]) -> exp.Expr:
        return self.expression(Inside(expressions=parts, form=exp.Var(this=form)))

    def _parse_knn(self) -> exp.Expr:
        kind = KNNS[self._curr.token_type]
        self._advance()
        like = {
            "nearest": "(k, x, y)",
            "reverse": "(x, y)",
            "group": "(k, SUM, (x, y), ...)",
        }[kind]
        return self.expression(
            Knn(this=exp.Var(this=kind), expressions=self._parse_parts(like))
        )

    def _parse_parts(self, like: str, depth: int = 1) -> list[exp.Expr]:
        """What stands in parentheses: numbers with units, texts, words, places in parentheses."""
        if not self._match(TokenType.L_PAREN):
            self._expected(like)
        parts = [self._parse_part(depth)]
        while self._match(TokenType.COMMA):
            parts.append(self._parse_part(depth))
        if not self._match(TokenType.R_PAREN):
            self._expected("',' or ')'")
        return parts

    def _parse_part(self, depth: int) -> exp.Expr:
        token = self._curr
        if token.token_type in NUMBER_STARTS:
            return self._parse_quantity()
        if token.token_type == TokenType.STRING:
            self._advance()
            return exp.Literal.string(token.text).update_positions(token)
        if token.token_type == TokenType.L_PAREN and depth < _DEPTH:
            return self._located(
                lambda: exp.Tuple(expressions=self._parse_parts("(x, y)", depth + 1))
            )
        word = self._parse_id_var(any_token=False)
        if word is None:
            self._expected("a number")
        return word

    def _parse_quantity(self) -> exp.Expr:
        number = self._parse_signed_number()
        bare = self._curr.token_type in _BEHIND or self._curr.text.upper() in ATTRIBUTES
        unit = None if bare else self._parse_id_var(any_token=False)
        return self.expression(Quantity(this=number, unit=unit))

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
        return (
            self.expression(exp.Neg(this=number).update_positions(sign))
            if negative
            else number
        )

    def _parse_lasting(self) -> exp.Expr:
        self._advance()
        if self._curr.token_type not in NUMBER_STARTS:
            self._expected("a time such as 1 hour, or 100 TUPLES")
        quantity = self._parse_quantity()
        if quantity.args.get("unit") is None:
            self._expected("a unit such as min, or TUPLES")
        return self.expression(Lasting(this=quantity))

    def _parse_detect(self) -> exp.Expr:
        self._advance()
        events = [self._located(self._parse_detected)]
        while self._match(TokenType.COMMA):
            events.append(self._located(self._parse_detected))
        return self.expression(Detect(expressions=events))

    def _parse_detected(self) -> exp.Expr:
        """One event; DWELL says how long a visit lasts then."""
        if not self._match_texts(EVENTS):
            self._expected(f"{', '.join(EVENTS[:-1])} or {EVENTS[-1]}", EVENTS)
        name = exp.Var(this=self._prev.text.lower()).update_positions(self._prev)
        if name.name != "dwell":
            return self.expression(Detected(this=name))
        if self._curr.token_type not in NUMBER_STARTS:
            self._expected("how long a visit lasts, such as 5 min")
        quantity = self._parse_quantity()
        if quantity.args.get("unit") is None:
            self._expected("a unit such as min")
        return self.expression(Detected(this=name, expression=quantity))

    def _parse_compare(self) -> exp.Expr:
        self._advance()
        negative = self._match(TokenType.NOT)
        return self.expression(
            Comparing(
                expressions=self._parse_parts("(x1, y1, x2, y2)"), negative=negative
            )
        )

    def _parse_using(self) -> exp.Expr:
        self._advance()
        steps = [self._located(self._parse_step)]
        while self._match(TokenType.COMMA):
            steps.append(self._located(self._parse_step))
        return self.expression(Using(expressions=steps))

    def _parse_step(self) -> exp.Expr:
        name = self._parse_name("a step such as enlarge(50 m)")
        return self.expression(
            Step(
                this=name,
                expressions=self._parse_parts("what it is given, in parentheses"),
            )
        )

    def _parse_emit(self) -> exp.Expr:
        word = self._curr
        self._advance()
        if not self._match_texts(EMITS):
            self._expected(" or ".join(EMITS), EMITS)
        mode = exp.Var(this=self._prev.text.lower())
        if not self._match_text_seq("WITH", "VALID"):
            return Emit(this=mode).update_positions(
                start=word.start, end=self._prev.end
            )
        valid = self._prev
        if not self._match_text_seq("UNTIL"):
            self._expected("UNTIL", ("UNTIL",))
        until = Emit(this=mode, valid_until=True)
        return until.update_positions(start=valid.start, end=self._prev.end)

    def _parse_options(self) -> exp.Expr:
        self._advance()
        if not self._match(TokenType.L_PAREN):
            self._expected("(plan = '...')")
        options = [self._parse_option()]
        while self._match(TokenType.COMMA):
            options.append(self._parse_option())
        if not self._match(TokenType.R_PAREN):
            self._expected("',' or ')'")
        return self.expression(Options(expressions=options))

    def _parse_option(self) -> exp.Expr:
        name = self._parse_name("the name of an option")
        if not self._match(TokenType.EQ):
            self._expected("'='")
        if self._curr.token_type in NUMBER_STARTS:
            return self.expression(exp.EQ(this=name, expression=self._parse_amounts()))
        if self._curr.token_type != TokenType.STRING:
            self._expected("a text in single quotes, or a number with its unit")
        return self.expression(exp.EQ(this=name, expression=self._parse_part(1)))

    def _parse_amounts(self) -> exp.Expr:
        """One quantity, or several without a comma between them: `2 fixes 10 s`."""
        amounts = [self._parse_quantity()]
        while self._curr.token_type in NUMBER_STARTS:
            amounts.append(self._parse_quantity())
        if len(amounts) == 1:
            return amounts[0]
        return self.expression(exp.Tuple(expressions=amounts))
