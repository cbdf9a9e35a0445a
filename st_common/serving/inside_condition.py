"""The condition `a.location INSIDE b.region`, written in SQL that DuckDB knows (SPEC P8)."""

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

_FORM = (None, ".", "location", "inside", None, ".", "region")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_WIDTH = len(_FORM)
PAIRS = "inside pairs"  # no name that a text would have by chance

# Bounds first: they rule nearly all pairs out before the exact pairs are asked.
_CONDITION = (
    "({a}.x BETWEEN {b}.minx AND {b}.maxx AND {a}.y BETWEEN {b}.miny AND {b}.maxy"
    ' AND ({a}.stream, {a}.ID, {b}.ID) IN (FROM "{pairs}" SELECT (stream, object, query)))'
)


def rewritten(text: str) -> str:
    """The text with each `a.location INSIDE b.region` as a condition on the pairs in the view `PAIRS`.

    `O.location INSIDE Q.region` becomes

        (O.x BETWEEN Q.minx AND Q.maxx AND O.y BETWEEN Q.miny AND Q.maxy
         AND (O.stream, O.ID, Q.ID) IN (FROM "inside pairs" SELECT (stream, object, query)))

    Args:
        text: SQL, in which `a` and `b` are names of an ObjectTable and a QueryTable; anything else in it stays as it
            is, also what is no SQL.
    """
    try:
        tokens = DuckDB().tokenize(text)
    except TokenError:
        return text  # DuckDB says better what is wrong with it
    out, done = [], 0
    for at in range(len(tokens) - _WIDTH + 1):
        here = tokens[at : at + _WIDTH]
        if _is_condition(here):
            a, b = (text[token.start : token.end + 1] for token in (here[0], here[4]))
            out += [
                text[done : here[0].start],
                _CONDITION.format(a=a, b=b, pairs=PAIRS),
            ]
            done = here[-1].end + 1
    return "".join([*out, text[done:]])


def _is_condition(tokens: list[Token]) -> bool:
    return all(
        token.token_type in _NAMES
        if wanted is None
        else token.text.lower() == wanted and not _is_text(token)
        for token, wanted in zip(tokens, _FORM, strict=True)
    )


def _is_text(token: Token) -> bool:
    return token.token_type is TokenType.STRING
