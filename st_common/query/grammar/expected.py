"""What may come next in a text, by the grammar: for completion, and to see that a text is a sentence of it.

Earley's algorithm over the productions: it needs no change of the grammar, and its last set is what comes next.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from st_common.query.grammar.ebnf import START, grammar
from st_common.query.grammar.notation import Alt, Kind, Part, Ref, Seq, Word, words_of
from st_common.query.grammar.words import FairwayTokenizer

Symbol = Word | Kind | str  # a terminal, or the name of rules
_Rule = tuple[Symbol, ...]
_Item = tuple[
    str, _Rule, int, int
]  # whose rule, how much of it was read, and where it began
_LEX = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)|(?P<word>GPAC\s*-\s*(?:IN|KNN)\b|[^\W\d]\w*)
    |(?P<NUMBER>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?P<STRING>'(?:[^']|'')*')|(?P<QUOTED>"(?:[^"]|"")*")
    |(?P<open>['"].*)|(?P<sign><>|!=|<=|>=|\|\||::|.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_TEXTS = {
    "EXTENT": re.compile(r"'\s*[+-]?[\d.]+(e[+-]?\d+)?\s*[a-z]+\s*'", re.IGNORECASE),
    "WKT": re.compile(r"'\s*(multi)?polygon\b.*", re.IGNORECASE | re.DOTALL),
    "LINE": re.compile(r"'\s*(multi)?linestring\b.*", re.IGNORECASE | re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Expected:
    """What may come next: words and signs, kinds of tokens, and the productions that they begin."""

    words: frozenset[str]
    kinds: frozenset[str]
    productions: frozenset[str]
    at_end: bool  # whether the text may end here


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str


def expected_after(text: str, start: str = START) -> Expected | None:
    """What may come next behind a text; None when it is no beginning of a sentence, or within a text in quotes."""
    sets = _sets(_tokens(text), start)
    if sets is None:
        return None
    next_ones = [item for item in sets[-1] if item[2] < len(item[1])]
    terminals = {rule[at] for _, rule, at, _ in next_ones}
    return Expected(
        words=frozenset(one.text for one in terminals if isinstance(one, Word)),
        kinds=frozenset(one.name for one in terminals if isinstance(one, Kind)),
        productions=frozenset(one for one in terminals if isinstance(one, str)),
        at_end=any(
            item[0] == start and item[2] == len(item[1]) and item[3] == 0
            for item in sets[-1]
        ),
    )


def is_sentence(text: str, start: str = START) -> bool:
    """Whether the grammar derives the text."""
    found = expected_after(text, start)
    return found is not None and found.at_end


def _tokens(text: str) -> list[_Token] | None:
    tokens: list[_Token] = []
    for found in _LEX.finditer(text):
        kind = found.lastgroup or ""
        if kind == "open":
            return None
        if kind != "blank":
            tokens.append(
                _Token(
                    re.sub(r"\s", "", found[0]) if kind == "word" else found[0], kind
                )
            )
    return tokens


def _sets(tokens: Sequence[_Token] | None, start: str) -> list[list[_Item]] | None:
    """Earley's sets behind each token; None when a token fits nowhere."""
    if tokens is None:
        return None
    rules, empty = _rules()
    first: list[_Item] = [(start, rule, 0, 0) for rule in rules[start]]
    sets = [_closed(first, [], rules, empty)]
    for token in tokens:
        read = [
            (name, rule, at + 1, origin)
            for name, rule, at, origin in sets[-1]
            if at < len(rule) and _fits(rule[at], token)
        ]
        if not read:
            return None
        sets.append(_closed(read, sets, rules, empty))
    return sets


def _closed(
    items: list[_Item],
    sets: list[list[_Item]],
    rules: Mapping[str, Sequence[_Rule]],
    empty: frozenset[str],
) -> list[_Item]:
    """The items with all that they predict and complete."""
    found, at_work = dict.fromkeys(items), list(items)
    while at_work:
        for item in _following(at_work.pop(), [*sets, list(found)], rules, empty):
            if item not in found:
                found[item] = None
                at_work.append(item)
    return list(found)


def _following(
    item: _Item,
    sets: list[list[_Item]],
    rules: Mapping[str, Sequence[_Rule]],
    empty: frozenset[str],
) -> Iterator[_Item]:
    """What an item of the last set predicts or completes."""
    name, rule, at, origin = item
    if at == len(rule):
        for other in sets[origin]:
            if other[2] < len(other[1]) and other[1][other[2]] == name:
                yield other[0], other[1], other[2] + 1, other[3]
        return
    symbol = rule[at]
    if isinstance(symbol, str):
        for each in rules[symbol]:
            yield symbol, each, 0, len(sets) - 1
        if symbol in empty:
            yield name, rule, at + 1, origin


def _fits(symbol: Symbol, token: _Token) -> bool:
    if isinstance(symbol, Word):
        return token.text.upper() == symbol.text.upper()
    if not isinstance(symbol, Kind):
        return False
    if symbol.name == "WORD":
        return token.kind == "word" and token.text.upper() not in _reserved()
    if symbol.name in _TEXTS:
        return token.kind == "STRING" and bool(
            _TEXTS[symbol.name].fullmatch(token.text)
        )
    return token.kind == symbol.name


@cache
def _reserved() -> frozenset[str]:
    """The words of the grammar that are no names: SQL's, and those that begin our clauses."""
    known = {word for key in FairwayTokenizer.KEYWORDS for word in key.split()}
    own = {word.upper() for part in grammar().values() for word in words_of(part)}
    return frozenset(own & known) - {"BY"}


@cache
def _rules() -> tuple[Mapping[str, Sequence[_Rule]], frozenset[str]]:
    """The grammar as plain rules, and the names of those that may be empty."""
    rules: dict[str, list[_Rule]] = {}
    for name, part in grammar().items():
        rules[name] = [
            _flat(one, name, rules)
            for one in (part.parts if isinstance(part, Alt) else (part,))
        ]
    empty: set[str] = set()
    while (
        more := {
            name
            for name, found in rules.items()
            if any(_all_in(rule, empty) for rule in found)
        }
        - empty
    ):
        empty |= more
    return rules, frozenset(empty)


def _all_in(rule: _Rule, empty: set[str]) -> bool:
    return all(isinstance(symbol, str) and symbol in empty for symbol in rule)


def _flat(part: Part, name: str, rules: dict[str, list[_Rule]]) -> _Rule:
    """A part as the symbols of one rule; what does not fit into one becomes a rule of its own."""
    if isinstance(part, Seq):
        return tuple(symbol for one in part.parts for symbol in _flat(one, name, rules))
    if isinstance(part, Ref):
        return (part.name,)
    if isinstance(part, Word | Kind):
        return (part,)
    own = f"{name}#{len(rules)}"
    rules[own] = []
    if isinstance(part, Alt):
        rules[own] = [_flat(one, name, rules) for one in part.parts]
    else:
        once = _flat(part.part, name, rules)
        rules[own] = [once] if part.most == 1 or part.least else [(*once, own)]
        rules[own] += [(*once, own)] if part.least else [()]
    return (own,)
