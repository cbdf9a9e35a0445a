"""The grammar in `fairway.lark`, and the table that Lark makes of it: what to do in each state with each terminal.

    DROP QUERY q        states 0 -DROP-> 7 -QUERY-> 31 -NAME-> 95: nothing but to make a `name` of it, and then a `drop`

The table is run here and not by Lark, because what a word means depends on the state (`range` is a word of the grammar
in brackets, and a name elsewhere), because an error tells what the state would have taken, and because it is faster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from st_common.query.grammar.automaton import Rule, is_spliced
from st_common.query.grammar.building import Building
from st_common.query.grammar.kept import automaton

Make = Callable[[list[Any]], Any]
"""What makes the value of a rule of the values that it derives."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """The last `size` values are what the rule `origin` derives: one that is made of them stands for them."""

    size: int
    origin: str
    make: Make | None  # None: the one value stays


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
    known, building = automaton(), Building()
    reductions = [_reduction(rule, building) for rule in known.rules]
    actions: list[dict[str, Action]] = [
        {
            name: action if action >= 0 else reductions[-1 - action]
            for name, action in state.items()
        }
        for state in known.states
    ]
    return Table(actions=actions, begins=known.begins)


def _reduction(rule: Rule, building: Building) -> Reduce:
    return Reduce(len(rule.expansion), rule.origin, _maker(rule, building))


def _maker(rule: Rule, building: Building) -> Make | None:
    """What makes the value of a rule, a list for one that is spliced into others; None where its one value stays."""
    make: Make | None = list if is_spliced(rule.origin) else None
    if rule.node is not None:
        make = getattr(building, rule.node)
    spliced = [is_spliced(symbol) for symbol in rule.expansion]
    if make is None or not any(spliced):
        return make
    return _splicing(make, spliced)


def _splicing(make: Make, spliced: Sequence[bool]) -> Make:
    """A maker that is given what is in the values that are `spliced`, instead of their lists."""

    def longer(values: list[Any]) -> Any:
        """A list that grows by an element grows in place: to copy it each time would take the square of its length."""
        known: list[Any] = values[0]
        for value, is_list in zip(values[1:], spliced[1:], strict=True):
            if is_list:
                known += value
            else:
                known.append(value)
        return known

    def make_of(values: list[Any]) -> Any:
        parts: list[Any] = []
        for value, is_list in zip(values, spliced, strict=True):
            if is_list:
                parts += value
            else:
                parts.append(value)
        return make(parts)

    return longer if make is list and spliced[0] else make_of


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
