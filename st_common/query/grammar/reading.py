"""Tokens as the tree of a statement, and the state of the parser where they make none."""

from collections.abc import Sequence
from typing import Any

from st_common.query.grammar.automaton import END
from st_common.query.grammar.language import Stack, table
from st_common.query.grammar.terminals import Terminals, terminals
from st_common.query.grammar.tokens import Token


class UnexpectedError(Exception):
    """The token at `index`, or the end behind all of them, cannot stand there.

    The parser began with the rule `start`; `stack` is where it was before.
    """

    def __init__(
        self, tokens: Sequence[Token], index: int, stack: Stack, start: str
    ) -> None:
        super().__init__(index)
        self.tokens, self.index, self.stack, self.start = tokens, index, stack, start


def tree_of(tokens: Sequence[Token], start: str) -> Any:
    """The tree that the grammar makes of tokens, beginning with the rule `start`.

    Raises:
        UnexpectedError: the grammar does not derive them.
    """
    stack = stack_behind(tokens, start)
    if not stack.push(END, None):
        before = stack_behind(tokens, start)
        raise UnexpectedError(tokens, len(tokens), before, start)
    return stack.values[0]


def stack_behind(tokens: Sequence[Token], start: str) -> Stack:
    """How far the parser is behind tokens, which may be the beginning of something.

    Raises:
        UnexpectedError: nothing that the grammar derives begins with them.
    """
    known, stack = terminals(), Stack([table().begins[start]])
    for index, token in enumerate(tokens):
        token.type = _type_of(token, stack, known)
        if not stack.push(token.type, token):
            before = stack_behind(tokens[:index], start)
            raise UnexpectedError(tokens, index, before, start)
    return stack


def _type_of(token: Token, stack: Stack, known: Terminals) -> str:
    """The terminal that a token is where the parser is now; one that does not fit when none does."""
    meanings = known.meanings_of(token)
    if len(meanings) == 1:
        return meanings[0]
    accepted = table().actions[stack.states[-1]]
    fitting = [each for each in meanings if each in accepted]
    if len(fitting) > 1:
        fitting = [each for each in fitting if stack.takes(each)]
    return (fitting or meanings)[0]
