"""A text cut into statements before it is cut into tokens, and the literals of a statement that may differ in the next.

Both only guess by patterns. What they guess is held against the tokens once for each shape of a statement (see
`template`): texts of one shape differ in nothing that tokens depend on, so all of them are read alike.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters

from st_common.query.grammar.terminals import tokens_in
from st_common.query.grammar.tokens import SEMICOLON, Token, UnclosedError

_BLANK = r"[ \t\r\n]*"
_BLANKS = re.compile(_BLANK)
_PLAIN = r"[^;'\"\\/#{$`-]"
_TEXT = r"'[^'\\\x00-\x1f]*'"
_QUOTED_NAME = r"\"[^\"\\\x00-\x1f]*\""
_QUOTED = f"{_TEXT}|{_QUOTED_NAME}"
_NAME = r"(?:(?<=QUERY )(?!IF NOT EXISTS )|(?<=QUERY IF NOT EXISTS ))[A-Za-z_][A-Za-z0-9_]*(?=\s)"
_NUMBER = r"(?<![\w.])[0-9]{1,15}(?:\.[0-9]{1,15})?(?![\w.])"
_SIMPLE = re.compile(
    rf"({_PLAIN}*(?:(?:{_QUOTED}|-(?!-)|/(?![*/])){_PLAIN}*)*(?:;|\Z)){_BLANK}"
)
_LITERALS = re.compile(f"({_NAME}|{_QUOTED}|{_NUMBER})")

_KINDS = str.maketrans("123456789", "0" * 9) | str.maketrans(
    f"{ascii_letters}_", "a" * 53
)


class CutError(Exception):
    """The text cannot be cut: its tokens are those of the whole, which also says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text from `start` on, with its semicolon: one statement, or with `tokens` any number of them."""

    start: int
    text: str
    tokens: tuple[Token, ...] | None = None

    def tokens_of(self, whole: str) -> list[Token]:
        """The tokens, which stand where they do in the whole text.

        Raises:
            CutError: they are not those of one statement.
        """
        if self.tokens is not None:
            return list(self.tokens)
        end = self.start + len(self.text)
        tokens = _tokens(whole, self.start, end)
        ends = [token.end_pos for token in tokens if token == SEMICOLON]
        if ends != ([end] if self.text.endswith(";") else []):
            raise CutError
        return tokens


def cut(text: str) -> Iterator[Piece]:
    """The parts of a text in order; those in which something stands that a pattern cannot judge, with their tokens.

    Raises:
        CutError: something is not closed.
    """
    at = _end_of_blanks(text, 0)
    while at < len(text):
        match = _SIMPLE.match(text, at)
        if match is not None:
            yield Piece(at, match[1])
            at = match.end()
        else:
            piece = _tokenized(text, at)
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
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _tokenized(text: str, at: int) -> Piece:
    """As much of the text as ends behind a semicolon that is one; twice as much is tried while it is none."""
    end = _behind_semicolon(text, at)
    while (tokens := _whole(text, at, end)) is None:
        if end == len(text):
            raise CutError
        end = _behind_semicolon(text, at + 2 * (end - at))
    return Piece(at, text[at:end], tuple(tokens))


def _behind_semicolon(text: str, at: int) -> int:
    place = text.find(";", at)
    return len(text) if place < 0 else place + 1


def _whole(text: str, start: int, end: int) -> list[Token] | None:
    """The tokens of a part that ends with a semicolon or with the whole text; None when it ends within something."""
    try:
        tokens = _tokens(text, start, end)
    except CutError:
        return None
    if not text.endswith(";", start, end):
        return tokens
    last = tokens[-1] if tokens else None
    return tokens if last == SEMICOLON and last.end_pos == end else None


def _tokens(text: str, start: int, end: int) -> list[Token]:
    try:
        return tokens_in(text, start, end)
    except UnclosedError:
        raise CutError from None
