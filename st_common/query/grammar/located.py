"""Nodes that know where they stand in the text, made of tokens and of nodes that know it."""

from typing import TypeVar

from sqlglot import exp

from st_common.query.grammar.nodes import span_of
from st_common.query.grammar.tokens import Token

_Node = TypeVar("_Node", bound=exp.Expr)
Part = Token | exp.Expr


def at(node: _Node, first: Part, last: Part) -> _Node:
    """The node, which reaches from one part of the text to another."""
    meta = node.meta
    meta["start"] = first.start_pos if isinstance(first, Token) else first.meta["start"]
    meta["end"] = last.end_pos - 1 if isinstance(last, Token) else last.meta["end"]
    return node


def quoted_column(name: str, instead_of: exp.Expr) -> exp.Column:
    """The column with a name of plans, in quotes, where another node stands; that one may stand nowhere."""
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    start, end = span_of(instead_of)
    column.meta.update(start=start, end=end - 1)
    return column


def identifier(token: Token) -> exp.Identifier:
    """The name that a token is: in double quotes, or a word."""
    quoted = token.startswith('"')
    name = token[1:-1].replace('""', '"') if quoted else str(token)
    return at(exp.Identifier(this=name, quoted=quoted), token, token)


def word(token: Token) -> exp.Var:
    """A word of the grammar, in small letters."""
    return at(exp.Var(this=token.lower()), token, token)


def text_literal(token: Token) -> exp.Literal:
    """The text that stands in single quotes."""
    value = token[1:-1].replace("''", "'")
    return at(exp.Literal(this=value, is_string=True), token, token)


def number_literal(token: Token) -> exp.Literal:
    """The number that a token is, as it is written but for a 0 before a point."""
    value = f"0{token}" if token.startswith(".") else str(token)
    return at(exp.Literal(this=value, is_string=False), token, token)
