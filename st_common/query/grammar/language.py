"""The grammar in `fairway.lark`, and the table that Lark makes of it: what to do in each state with each terminal.

    DROP QUERY q        states 0 -DROP-> 7 -QUERY-> 31 -NAME-> 95: nothing but to make a `name` of it, and then a `drop`

The table is run here and not by Lark, because what a word means depends on the state (`range` is a word of the grammar
in brackets, and a name elsewhere), because an error tells what the state would have taken, and because it is faster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import Rule

from st_common.query.grammar.building import Building

FILE = Path(__file__).with_name("fairway.lark")
STARTS = ("text", "statement", "explained", "expression")
END = "$END"  # the terminal behind the last token


@cache
def parser() -> Lark:
    """The grammar as Lark reads it."""
    return Lark(
        FILE.read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",  # the least that Lark makes: `terminals` cuts text into tokens
        start=list(STARTS),
        keep_all_tokens=True,
        transformer=Building(),
    )


@dataclass(frozen=True, slots=True)
class Reduce:
    """The last `size` values are what the rule `origin` derives: one that is made of them stands for them."""

    size: int
    origin: str
    make: Callable[[list[Any]], Any] | None  # None: the one value stays


Action = int | Reduce
"""A state to go on in, or what to reduce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The actions of each state, by terminals and, to go on behind a rule, by its name; where each start begins."""

    actions: Sequence[Mapping[str, Action]]
    begins: Mapping[str, int]


@cache
def table() -> Table:
    """The table of the grammar."""
    confs = {start: _conf(start) for start in STARTS}
    some = confs[STARTS[0]]
    actions: list[dict[str, Action]] = [
        {
            str(name): _reduction(arg, some.callbacks) if _is_rule(arg) else arg
            for name, (_, arg) in some.states[state].items()
        }
        for state in range(len(some.states))
    ]
    for conf in confs.values():
        actions[conf.end_state][END] = conf.end_state
    begins = {start: conf.start_state for start, conf in confs.items()}
    return Table(actions=actions, begins=begins)


def _conf(start: str) -> Any:
    return parser().parse_interactive("", start=start).parser_state.parse_conf


def _is_rule(arg: object) -> bool:
    return isinstance(arg, Rule)


def _reduction(rule: Rule, callbacks: Mapping[Rule, Callable[[Any], Any]]) -> Reduce:
    stays = rule.options.expand1 and len(rule.expansion) == 1 and not rule.alias
    make = None if stays else callbacks[rule]
    return Reduce(len(rule.expansion), str(rule.origin.name), make)


@dataclass(slots=True)
class Stack:
    """How far a parser is: its states, and the values between them."""

    states: list[int]
    values: list[Any] = field(default_factory=list)

    def takes(self, terminal: str) -> bool:
        """Whether a terminal may come next. The last state alone may promise more than those below it let in."""
        return self.state_before(terminal) is not None

    def state_before(self, terminal: str) -> int | None:
        """The state that goes on with a terminal, when all is reduced that it ends; None when it cannot come next."""
        actions: Sequence[Mapping[str, Any]] = table().actions
        states = list(self.states)
        while True:
            action = actions[states[-1]].get(terminal)
            if type(action) is not Reduce:
                return None if action is None else states[-1]
            if action.size:
                del states[-action.size :]
            states.append(actions[states[-1]][action.origin])

    def push(self, terminal: str, value: object) -> bool:
        """Takes a terminal with its value, and before that reduces what it ends; False when it cannot come next."""
        actions: Sequence[Mapping[str, Any]] = table().actions
        states, values = self.states, self.values
        while True:
            action = actions[states[-1]].get(terminal)
            if type(action) is int:
                states.append(action)
                values.append(value)
                return True
            if action is None:
                return False
            if action.make is None:
                states[-1] = actions[states[-2]][action.origin]
                continue
            made = action.make(values[-action.size :] if action.size else [])
            if action.size:
                del states[-action.size :], values[-action.size :]
            values.append(made)
            states.append(actions[states[-1]][action.origin])
