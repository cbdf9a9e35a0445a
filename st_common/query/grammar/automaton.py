"""The grammar as a parser needs it: its terminals, its rules, and what to do in each state with each symbol.

As it is kept in a file:

    {"origin": "drop", "expansion": ["DROP", "QUERY", "query"], "node": "drop"}    a rule
    {"NAME": 51, "QUOTED": 52, "name": 53}                                         a state: what comes, and what then
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

STARTS = ("text", "statement", "explained", "expression")
END = "$END"  # the terminal behind the last token


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """What a token may be: the regular expression that it fits, and its `text` when it is always the same."""

    name: str
    pattern: str
    text: str | None
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`origin` derives the symbols of `expansion`.

    `node` is the method of `Building` that makes its value. It is None for a rule that hands on the one value that it
    has, and for one that is spliced into others.
    """

    origin: str
    expansion: Sequence[str]
    node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Automaton:
    """What the parser runs: an LALR(1) table, without a conflict.

    A state has an action for each symbol that may come there: a number from 0 is the state to go on in, and -1, -2, ..
    reduce rule 0, 1, ..
    `begins` has the state in which each start begins.
    """

    terminals: Sequence[Terminal]
    ignored: Sequence[str]
    rules: Sequence[Rule]
    begins: Mapping[str, int]
    states: Sequence[Mapping[str, int]]


def is_spliced(symbol: str) -> bool:
    """Whether a symbol is a rule whose values become values of the rule around it: its name begins with `_`.

    Names of rules are in small letters, those of terminals (`__ANON_0` for a sign) in capitals.
    """
    return symbol.startswith("_") and symbol.islower()
