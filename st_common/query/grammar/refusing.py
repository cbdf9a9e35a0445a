"""What is said of a token that cannot stand where it does: what could, and which word was perhaps meant."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from st_common.query.grammar.automaton import END
from st_common.query.grammar.expecting import taken_by
from st_common.query.grammar.kept import FILE
from st_common.query.grammar.nodes import Refused
from st_common.query.grammar.reading import UnexpectedError, stack_behind
from st_common.query.grammar.terminals import terminals, tokens_in
from st_common.query.grammar.tokens import SEMICOLON, Token
from st_common.query.grammar.words import is_plain
from st_common.query.problem import did_you_mean, wkt_hint

Taken = Mapping[str, Sequence[str]]
"""The terminals that may come next, each with the rules that it begins."""

_RULES: Mapping[str, str] = {  # as errors call them, a wide one before those in it
    "new_query": "a name for the query",
    "new_area": "a name for the area",
    "new_stream": "a name for the stream",
    "new_column": "a name for the column",
    "query": "the name of a query",
    "stream": "the name of a stream",
    "other": "the name of a stream or a layer",
    "side": "the stream or the layer",
    "layer": "the name of a layer",
    "alias": "an alias",
    "window": "a window in brackets",
    "items": "* or an expression",
    "condition": "a condition",
    "expression": "an expression",
    "predicate": "an expression",
    "text_sum": "an expression",
    "factor": "an expression",
    "period": "a time such as '60 minutes'",
    "extent": "an extent such as '10 km'",
    "joined_regions": "a region, or NOT and a region",
    "region": "(x1, y1, x2, y2), or another region",
    "area": "the name of an area",
    "box": "(x1, y1, x2, y2)",
    "given": "what it is given, in parentheses",
    "chosen": "(plan = '...')",
    "option": "the name of an option",
    "_value_of_option": "a text in single quotes, or a number with its unit",
    "step": "a step such as enlarge(50 m)",
    "fixes": "a number of fixes",
    "visit": "how long a visit lasts, such as 5 min",
    "distance": "a distance such as 5 km",
    "lasting": "a time such as 1 hour, or 100 TUPLES",
    "part": "a number, a text or a name",
    "single": "a number, a text or a name",
    "number": "a number",
    "unit": "a unit such as min",
    "of_range": "RATTR SPACE or RATTR TIME",
    "of_slide": "SATTR SPACE or SATTR TIME",
    "part_of_time": "a part of a time such as HOUR",
    "zone": "the name of a time zone in single quotes, such as 'Europe/Berlin'",
    "beginning": "FROM BEGINNING",
}
_CLASSES = {
    "TYPE": "a type such as BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIME, TIMESTAMP or VARCHAR",
    **dict.fromkeys(("LENGTH", "TIME", "SPEED"), "a unit"),
    "STROKE": "/ and a time",
    "ON": "ON and a condition",
}
_OPERATORS = frozenset(
    (
        "=",
        "==",
        "<>",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "+",
        "-",
        "||",
        "*",
        "/",
        "%",
        "::",
        ".",
    )
) | {"AND", "OR", "IS", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "AT TIME ZONE"}
_MANY = 5  # operators
_FEWEST_LETTERS = 2  # of a word that has been begun: single ones are what aliases are
_NEARLY = 0.8  # a word with a slip in it, and no more
_UNTOLD = ("GPAC_IN", "GPAC_KNN")  # other words for INSIDE and KNN
STATEMENTS = ("REGISTER", "REPLACE", "DROP")
_MEANT = {
    "WITHIN": "INSIDE",
    "CONTAINS": "INSIDE",
    "NEARBY": "KNN",
    "NEAREST": "KNN",
    "ENTER": "DETECT ENTER",
    "EXIT": "DETECT EXIT",
    "DWELL": "DETECT DWELL",
    "AT": "AT TIME ZONE",
}
"""What words of other systems, and words that are one short, are here."""
_NO_INTERVAL = (
    "there are no intervals: EPOCH(event_ts) + 3600 counts seconds since 1970, "
    "and AT TIME ZONE gives the time of a zone"
)
_NESTED = "a query has no place inside of an expression"


class Refusal(NamedTuple):
    """What is said of an error, and the error at the place where this is said."""

    said: Refused
    error: UnexpectedError


def refusal(error: UnexpectedError) -> Refusal:
    """What is wrong with the token of an error, or with the one before it."""
    meant = _meant_before(error)
    if meant is not None:
        return meant
    tokens, index, taken = error.tokens, error.index, taken_by(error.stack)
    expected = f"expected {_listed(taken, error.start)}"
    if index == len(tokens):
        end = tokens[-1].end_pos if tokens else 0
        return Refusal(Refused(f"{expected}, not the end", (end, end)), error)
    token = tokens[index]
    if error.start == "expression" and token == SEMICOLON:
        return Refusal(Refused("an expression has no ';'", token.span), error)
    if token.type == "SELECT" and any("factor" in rules for rules in taken.values()):
        return Refusal(Refused(_NESTED, token.span), error)
    message = f"{expected}, not {str(token)!r}"
    return Refusal(Refused(message, token.span, _hint(error, taken)), error)


def refused_aliases(tokens: Sequence[Token], start: str) -> Sequence[Refused]:
    """Aliases of a statement that are more likely a clause of which half is written, each with the word that is meant.

    `FROM ships INS` would be all ships, called INS. Refused is what stands without AS, is used nowhere, and begins a
    word that may stand there or nearly is one.

    Args:
        tokens: the tokens of a statement that the grammar derives, as the parser left them.
        start: the rule that it derives them from.
    """
    written = [token.casefold() for token in tokens]
    refused = []
    for index, token in enumerate(tokens):
        if token.type != "ALIAS" or written.count(token.casefold()) > 1:
            continue
        meant = _word_for(token, taken_by(stack_behind(tokens[:index], start)))
        if meant:
            message = f"{str(token)!r} is an alias that nothing uses"
            hint = f"{meant} As an alias it is written AS {token}"
            refused.append(Refused(message, token.span, hint))
    return refused


def _word_for(alias: Token, taken: Taken) -> str:
    """The words that an alias begins, else the one that it nearly is, as a hint; none for most aliases."""
    words = {word for name in taken for word in terminals().words_of(name)}
    begun = sorted(word for word in words if word.startswith(alias.upper()))
    if begun and len(alias) >= _FEWEST_LETTERS:
        return f"did you mean {' or '.join(begun)}?"
    return _meant(alias, taken) or did_you_mean(alias, words, nearness=_NEARLY)


def _hint(error: UnexpectedError, taken: Taken) -> str:
    """What to do about an unexpected token."""
    tokens, index = error.tokens, error.index
    other, before = tokens[index], tokens[max(index - 1, 0)]
    unquoted = wkt_hint(before) if other == "(" else ""
    spans = _NO_INTERVAL if before.upper() == "INTERVAL" else ""
    near = unquoted or spans or _meant(other, taken) or _nearest(other, taken)
    if near:
        return near
    if other.type in STATEMENTS:
        return "a statement ends with ;"
    if before == "*" and other == ",":
        return "* stands alone, or every column is named"
    if before.kind == "NAME" and other == "-" and before.end_pos == other.start_pos:
        return "such a name stands in double quotes"
    earlier = stack_behind(tokens[: max(index - 1, 0)], error.start)
    if other == "[" and earlier.takes(other.type):
        return "a window stands before the alias"
    return _word_for(before, taken_by(earlier)) if before.type == "ALIAS" else ""


def _meant_before(error: UnexpectedError) -> Refusal | None:
    """The word before, when it was read as a name, and one that it nearly is goes on with the token."""
    tokens, index, start = error.tokens, error.index, error.start
    if not index or tokens[index - 1].type not in ("NAME", "ALIAS"):
        return None
    word, stack = tokens[index - 1], stack_behind(tokens[: index - 1], start)
    taken = taken_by(stack)
    near = _meant(word, taken) or _nearest(word, taken)
    other = tokens_in(near.removeprefix("did you mean ").removesuffix("?"))
    try:
        stack_behind([*tokens[: index - 1], *other, *tokens[index : index + 1]], start)
    except UnexpectedError:
        return None
    if not near:
        return None
    message = f"expected {_listed(taken, start)}, not {str(word)!r}"
    earlier = UnexpectedError(tokens, index - 1, stack, start)
    return Refusal(Refused(message, word.span, near), earlier)


def _meant(token: Token, taken: Taken) -> str:
    """The words that stand here in the place of a word of another system, as a hint; none where they may not stand."""
    words = _MEANT.get(token.upper(), "")
    known = terminals()
    may = {word for name in taken for word in known.words_of(name)}
    fits = words in may or words.partition(" ")[0] in may
    return f"did you mean {words}?" if words and fits else ""


def _nearest(token: Token, taken: Taken) -> str:
    """The word that may come next and that a word nearly is, as a hint; none for one that other SQL has there."""
    if token.kind != "NAME" or not is_plain(token):
        return ""
    words = [word for name in taken for word in terminals().words_of(name)]
    return did_you_mean(token, [word for word in words if word != token.upper()])


def _listed(taken: Taken, start: str) -> str:
    """What may come next: rules where there is a word for one, then terminals as they are written."""
    end = "the end" if start == "expression" else "';'"
    listed = dict.fromkeys(
        end if name == END else _shown(name, rules)
        for name, rules in _in_order(taken)
        if name not in _UNTOLD
    )
    operators = [each for each in listed if each in _OPERATORS]
    if len(operators) >= _MANY:
        for each in (*operators, "'('"):
            listed.pop(each, None)
        listed["an operator"] = None
    if "an alias" in listed:  # a label before, and a group, are said of few names
        for each in ("=", "."):
            listed.pop(each, None)
    *others, last = listed
    return f"{', '.join(others)} or {last}" if others else last


def _in_order(taken: Taken) -> list[tuple[str, Sequence[str]]]:
    """Rules as they are listed above, before terminals as the grammar has them, and the end of all."""
    rules, text = list(_RULES), FILE.read_text(encoding="utf-8")

    def place(pair: tuple[str, Sequence[str]]) -> tuple[int, int]:
        name, begun = pair
        if name == END:
            return len(rules) + 1, 0
        known = [rules.index(each) for each in begun if each in _RULES]
        shown = terminals().shown.get(name, name)
        named = re.search(rf" {name}\b", text)
        first = max(text.find(f'"{shown}"'), named.start() if named else -1)
        return min(known, default=len(rules)), first

    return sorted(taken.items(), key=place)


def _shown(name: str, rules: Sequence[str]) -> str:
    known = next((said for rule, said in _RULES.items() if rule in rules), "")
    if known or name in _CLASSES:
        return known or _CLASSES[name]
    text = terminals().shown.get(name, name)
    return text if text[0].isalnum() or text in _OPERATORS else f"'{text}'"
