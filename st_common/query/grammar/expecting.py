"""What may come next in a text, out of the parser's table: for completion, and for errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from st_common.query.grammar.automaton import END
from st_common.query.grammar.kept import automaton
from st_common.query.grammar.language import Reduce, Stack, table
from st_common.query.grammar.reading import UnexpectedError, stack_behind
from st_common.query.grammar.terminals import terminals, tokens_in
from st_common.query.grammar.tokens import Token, UnclosedError


@dataclass(frozen=True, slots=True)
class Expected:
    """What may come next: words and signs, kinds of tokens, and the rules that they begin."""

    words: frozenset[str]
    kinds: frozenset[str]
    rules: frozenset[str]
    at_end: bool  # whether the text may end here


def expected_after(text: str, start: str = "text") -> Expected | None:
    """What may come next behind a text; None when nothing that the grammar derives begins with it."""
    try:
        tokens = tokens_in(text)
        more = _rests_of_phrases(tokens, start)
        taken = taken_by(stack_behind(tokens, start))
    except UnclosedError:
        return None
    except UnexpectedError:
        if not more:
            return None
        taken = {}
    known = terminals()
    return Expected(
        words=more.union(*(known.words_of(name) for name in taken)),
        kinds=frozenset(name for name in taken if not known.words_of(name)) - {END},
        rules=frozenset(rule for rules in taken.values() for rule in rules),
        at_end=END in taken,
    )


def _rests_of_phrases(tokens: Sequence[Token], start: str) -> frozenset[str]:
    """What makes phrases of the last token: BY and KNN behind GROUP. Alone it is a name, or does not fit."""
    if not tokens:
        return frozenset()
    known, last = terminals(), f"{tokens[-1].upper()} "
    try:
        taken = taken_by(stack_behind(tokens[:-1], start))
    except UnexpectedError:
        return frozenset()
    words = [word for name in taken for word in known.words_of(name)]
    return frozenset(word.removeprefix(last) for word in words if word.startswith(last))


def is_sentence(text: str, start: str = "text") -> bool:
    """Whether the grammar derives the text."""
    expected = expected_after(text, start)
    return expected is not None and expected.at_end


def taken_by(stack: Stack) -> Mapping[str, Sequence[str]]:
    """The terminals that may come next, but words that would be names, each with the rules that it begins there."""
    taken = {}
    for name in table().actions[stack.states[-1]]:
        state = stack.state_before(name) if name.isupper() else None
        if state is not None and not _is_only_name(name, state):
            rules = [each for each in table().actions[state] if each in _beginnings()]
            taken[name] = [each for each in rules if name in _beginnings()[each]]
    return taken


def _is_only_name(terminal: str, state: int) -> bool:
    """Whether a word of the grammar can be nothing but a name behind a state."""
    behind = table().actions[state][terminal]
    if terminal in ("NAME", "QUOTED") or not isinstance(behind, int):
        return False
    actions = table().actions[behind].values()
    return all(isinstance(each, Reduce) and each.origin == "name" for each in actions)


@cache
def _beginnings() -> Mapping[str, frozenset[str]]:
    """The terminals with which what a rule derives may begin, by the rule's name."""
    rules = [(rule.origin, rule.expansion) for rule in automaton().rules]
    first: dict[str, set[str]] = {name: set() for name, _ in rules}
    empty = {name for name, expansion in rules if not expansion}
    known = -1
    while (more := sum(map(len, first.values())) + len(empty)) > known:
        known = more
        for name, expansion in rules:
            if _adds_all(first[name], expansion, first, empty):
                empty.add(name)
    return {name: frozenset(terminals) for name, terminals in first.items()}


def _adds_all(
    into: set[str],
    expansion: Sequence[str],
    first: Mapping[str, set[str]],
    empty: set[str],
) -> bool:
    """Adds what an expansion begins with; whether all of it may be empty."""
    for name in expansion:
        into |= first.get(name, {name})
        if name not in empty:
            return False
    return True
