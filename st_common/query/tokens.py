"""The tokens of a text, and what is none although sqlglot takes it for one."""

import re
from collections.abc import Iterator

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from st_common.query.grammar.dialect import Fairway
from st_common.query.grammar.nodes import Refused
from st_common.query.problem import Source, TextError

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_QUOTE = re.compile("[\u2018-\u201f\u00b4]")  # as printed papers have them


def tokens_of(source: Source) -> list[Token]:
    """The tokens of a text.

    Raises:
        TextError: something is not closed, or the text is not valid UTF-8.
    """
    check_encoding(source)
    try:
        return Fairway().tokenize(source.text)
    except TokenError as error:
        found = re.match(
            r"(Missing .+) from \d+:(\d+)$", str(error.__cause__), re.DOTALL
        )
        start = (
            int(found[2])
            if found
            else max(source.text.rfind(mark) for mark in ("/*", "{#"))
        )
        message = (
            f"{found[1].removeprefix('Missing ')} is not closed"
            if found
            else "a comment is not closed"
        )
        raise TextError([source.problem(message, (max(start, 0), start + 1))]) from None


def check_encoding(source: Source) -> None:
    """Nothing, when a text can be written as UTF-8.

    Raises:
        TextError: it cannot; it points at the place.
    """
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        raise TextError(
            [source.problem("the text is not valid UTF-8", (error.start, error.end))]
        ) from None


def chunks_of(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement."""
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            chunk.append(token)
        elif chunk:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def odd_in(token: Token) -> Refused | None:
    """What sqlglot takes for a number or a name, and is none."""
    span = token.start, token.end + 1
    if token.token_type == TokenType.NUMBER and not _NUMBER.fullmatch(token.text):
        return Refused(f"{token.text!r} is no number", span)
    if token.token_type == TokenType.VAR and (quote := _QUOTE.search(token.text)):
        hint = "a text stands in ', a name in \" where it needs to"
        return Refused(
            f"{quote[0]} is no quote here",
            (token.start + quote.start(), token.start + quote.end()),
            hint,
        )
    return None
