"""The automaton that Lark makes of a grammar: by `make generate`, and for a grammar of which none is kept."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from lark import Lark
from lark import grammar as lark_grammar
from lark.lexer import PatternStr, TerminalDef

from st_common.query.grammar.automaton import (
    END,
    STARTS,
    Automaton,
    Rule,
    Terminal,
    is_spliced,
)

_States = Mapping[int, Mapping[str, Any]]  # what Lark says of each state


def made_of(text: str) -> Automaton:
    """The automaton of a grammar. The same grammar gives the same one, in each process.

    Raises:
        ValueError: a rule has nothing that makes its value.
        lark.exceptions.LarkError: the text is no grammar, or not LALR(1).
    """
    lark = Lark(
        text,
        parser="lalr",
        lexer="basic",  # the least that Lark makes: `terminals` cuts text into tokens
        start=list(STARTS),
        keep_all_tokens=True,
    )
    confs = {start: _conf(lark, start) for start in STARTS}
    states: _States = confs[STARTS[0]].states
    begins = {start: conf.start_state for start, conf in confs.items()}
    numbers = _numbers(states, list(begins.values()))
    actions = [_actions(states[state], numbers, lark.rules) for state in numbers]
    for conf in confs.values():
        end = numbers[conf.end_state]
        actions[end][END] = end
    return Automaton(
        terminals=[_terminal(each) for each in lark.terminals],
        ignored=sorted(lark.ignore_tokens),
        rules=[_rule(each) for each in lark.rules],
        begins={start: numbers[state] for start, state in begins.items()},
        states=actions,
    )


def _conf(lark: Lark, start: str) -> Any:
    return lark.parse_interactive("", start=start).parser_state.parse_conf


def _numbers(states: _States, begins: Sequence[int]) -> Mapping[int, int]:
    """States by how they are reached: Lark's own numbers differ between processes."""
    numbers = {state: number for number, state in enumerate(begins)}
    waiting = deque(begins)
    while waiting:
        actions = states[waiting.popleft()]
        for name in sorted(actions):
            _, argument = actions[name]
            if isinstance(argument, int) and argument not in numbers:
                numbers[argument] = len(numbers)
                waiting.append(argument)
    return numbers


def _actions(
    state: Mapping[str, Any],
    numbers: Mapping[int, int],
    rules: Sequence[lark_grammar.Rule],
) -> dict[str, int]:
    """The actions of a state, by the names of symbols in their order."""
    actions = {}
    for name in sorted(state):
        _, argument = state[name]
        is_state = isinstance(argument, int)
        action = numbers[argument] if is_state else -1 - rules.index(argument)
        actions[str(name)] = action
    return actions


def _terminal(terminal: TerminalDef) -> Terminal:
    pattern = terminal.pattern
    return Terminal(
        name=str(terminal.name),
        pattern=str(pattern.to_regexp()),
        text=str(pattern.value) if isinstance(pattern, PatternStr) else None,
        priority=terminal.priority,
    )


def _rule(rule: lark_grammar.Rule) -> Rule:
    origin, expansion = (
        str(rule.origin.name),
        [str(each.name) for each in rule.expansion],
    )
    named = str(rule.alias or origin)
    is_bare = bool(rule.options.expand1) and not rule.alias
    if is_bare and len(expansion) != 1:
        raise ValueError(f"rule {origin}: {' '.join(expansion)}: name its node by ->")
    return Rule(
        origin=origin,
        expansion=expansion,
        node=None if is_spliced(origin) or is_bare else named,
    )
