"""The tokens of a text of statements, with errors for people where it has none."""

import re

from st_common.query.grammar.nodes import Refused
from st_common.query.grammar.terminals import tokens_in
from st_common.query.grammar.tokens import Token, UnclosedError
from st_common.query.problem import Source, TextError

PARAMETER_MARK = "$"
_QUOTE = re.compile("[\u2018-\u201f\u00b4]")  # as printed papers have them


def tokens_of(source: Source) -> list[Token]:
    """The tokens of a text.

    Raises:
        TextError: something is not closed, or the text is not valid UTF-8.
    """
    check_encoding(source)
    try:
        return tokens_in(source.text)
    except UnclosedError as error:
        what = "a comment" if error.mark == "/*" else error.mark
        place = error.start, error.start + 1
        raise TextError([source.problem(f"{what} is not closed", place)]) from None


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


def odd_in(token: Token) -> Refused | None:
    """What looks like a number or a quote and is none, and a parameter that nothing was bound to."""
    if token.kind == "ODD":
        return Refused(f"{str(token)!r} is no number", token.span)
    if token == PARAMETER_MARK:
        hint = "--params TABLE.csv, or params= in Python"
        return Refused("a parameter without a table of values", token.span, hint)
    if token.kind == "SIGN" and _QUOTE.match(token):
        hint = "a text stands in ', a name in \" where it needs to"
        return Refused(f"{token} is no quote here", token.span, hint)
    return None
