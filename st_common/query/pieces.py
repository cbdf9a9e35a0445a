"""A text cut into statements before it is tokenised, and the literals in a statement that may differ in the next one.

Both only guess by patterns. What they guess is held against the tokenizer once for each shape of a statement (see
`template`): texts of one shape differ in nothing that it looks at, so it reads all of them alike.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

_BLANK = r"[ \t\r\n]*"
_BLANKS = re.compile(_BLANK)
_PLAIN = r"[^;'\"\\/#{$`-]"
_TEXT = r"'[^'\\\x00-\x1f]*'"
_QUOTED_NAME = r"\"[^\"\\\x00-\x1f]*\""
_QUOTED = f"{_TEXT}|{_QUOTED_NAME}"
_NAME = r"(?<=QUERY )[A-Za-z_][A-Za-z0-9_]*(?=\s)"
_NUMBER = r"(?<![\w.])[0-9]{1,15}(?:\.[0-9]{1,15})?(?![\w.])"
_SIMPLE = re.compile(
    rf"({_PLAIN}*(?:(?:{_QUOTED}|-(?!-)|/(?![*/])){_PLAIN}*)*(?:;|\Z)){_BLANK}"
)
_LITERALS = re.compile(f"({_NAME}|{_QUOTED}|{_NUMBER})")

_KINDS = str.maketrans("123456789", "0" * 9) | str.maketrans(
    f"{ascii_letters}_", "a" * 53
)

Tokenize = Callable[[str], list[Token]]


class CutError(Exception):
    """The text cannot be cut: it is tokenised as a whole, which also says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text from `start` on, with its semicolon: one statement, or with `tokens` any number of them."""

    start: int
    text: str
    tokens: tuple[Token, ...] | None = None

    def tokenized(self, tokenize: Tokenize) -> list[Token]:
        """The tokens, which stand where they do in the whole text.

        Raises:
            CutError: they are not those of one statement.
        """
        if self.tokens is not None:
            return list(self.tokens)
        tokens = _tokens(self.text, self.start, tokenize)
        ends = [
            token.end for token in tokens if token.token_type == TokenType.SEMICOLON
        ]
        guessed = [self.start + len(self.text) - 1] if self.text.endswith(";") else []
        if ends != guessed:
            raise CutError
        return tokens


def cut(text: str, tokenize: Tokenize) -> Iterator[Piece]:
    """The parts of a text in order; those in which something stands that a pattern cannot judge, with their tokens.

    Raises:
        CutError: something is not closed.
    """
    at = _end_of_blanks(text, 0)
    while at < len(text):
        found = _SIMPLE.match(text, at)
        if found is not None:
            yield Piece(at, found[1])
            at = found.end()
        else:
            piece = _tokenized(text, at, tokenize)
            yield piece
            at = _end_of_blanks(text, at + len(piece.text))


def literals_of(statement: str) -> tuple[str, list[str], list[str]]:
    """The shape of a statement, its literals (names, texts and numbers), and the parts around them."""
    parts = _LITERALS.split(statement)
    between, literals = parts[::2], parts[1::2]
    kinds = "".join([literal[0] for literal in literals]).translate(_KINDS)
    return "\0".join([kinds, *between]), literals, between


def pattern_of(
    literals: Sequence[str], between: Sequence[str], varying: Collection[int]
) -> re.Pattern[str]:
    """What a whole statement matches that has these parts, and these literals but for the numbers `varying`.

    Its groups are the literals: for a text that matches they are those of `literals_of`, which is slower.
    """
    groups = [
        _like(text) if number in varying else re.escape(text)
        for number, text in enumerate(literals)
    ]
    parts = [
        f"{re.escape(part)}({group})"
        for part, group in zip(between[:-1], groups, strict=True)
    ]
    return re.compile("".join([*parts, re.escape(between[-1])]))


def _like(literal: str) -> str:
    """The pattern of the literals that begin as this one."""
    quoted = {"'": _TEXT, '"': _QUOTED_NAME}
    return quoted.get(literal[0], _NUMBER if literal[0].isdigit() else _NAME)


def _end_of_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _tokenized(text: str, at: int, tokenize: Tokenize) -> Piece:
    """As much of the text as ends behind a semicolon that is one; twice as much is tried while it is none."""
    end = _behind_semicolon(text, at)
    while (tokens := _whole(text[at:end], at, tokenize)) is None:
        if end == len(text):
            raise CutError
        end = _behind_semicolon(text, at + 2 * (end - at))
    return Piece(at, text[at:end], tuple(tokens))


def _behind_semicolon(text: str, at: int) -> int:
    found = text.find(";", at)
    return len(text) if found < 0 else found + 1


def _whole(text: str, start: int, tokenize: Tokenize) -> list[Token] | None:
    """The tokens of a part that ends with a semicolon or with the whole text; None when it ends within something."""
    try:
        tokens = _tokens(text, start, tokenize)
    except CutError:
        return None
    if not text.endswith(";"):
        return tokens
    last = tokens[-1] if tokens else None
    ends = (
        last is not None
        and last.token_type == TokenType.SEMICOLON
        and last.end == start + len(text) - 1
    )
    return tokens if ends else None


def _tokens(text: str, start: int, tokenize: Tokenize) -> list[Token]:
    try:
        tokens = tokenize(text)
    except TokenError:
        raise CutError from None
    for token in tokens:
        token.start += start
        token.end += start
    return tokens
