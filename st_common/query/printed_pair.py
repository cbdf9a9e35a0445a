"""Expressions about pairs and neighbours as they are written: `other.speed_mps`, `distance(cars, other)`, `rank()`."""

from sqlglot import exp

from st_common.query.grammar import words
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.near_columns import CALLS
from st_common.query.pair_columns import MEASURES, own_name

_FUNCTIONS = {column: name.lower() for name, column in MEASURES.items()}
_OF_PLACE = {column: name.lower() for name, column in CALLS.items()}


def written(text: str, first: str, other: str, *, qualified: bool = False) -> str:
    """An expression about pairs or neighbours, by what the statement calls the first object and the other one.

    Args:
        text: canonical SQL over the columns of `pair_columns` and `near_columns`.
        first: the name of the stream.
        other: the alias of the other object or of the layer, in quotes where it needs them.
        qualified: whether columns of the first object name the stream.
    """
    tree = exp.Paren(this=expression_of(text))
    for column in list(tree.find_all(exp.Column)):
        own = own_name(column.name)
        if own is not None:
            column.set("this", exp.to_identifier(own, quoted=not words.is_plain(own)))
            column.set("table", identifier_of(other))
        elif column.name in _FUNCTIONS:
            column.replace(_call(_FUNCTIONS[column.name], first, other))
        elif column.name in _OF_PLACE:
            column.replace(_call(_OF_PLACE[column.name]))
        elif qualified:
            column.set("table", identifier_of(words.quoted(first)))
    return text_of(tree.this)


def identifier_of(label: str) -> exp.Identifier:
    """The identifier that a name is in a text: in double quotes, or a word."""
    name = label[1:-1].replace('""', '"') if label.startswith('"') else label
    return exp.Identifier(this=name, quoted=label.startswith('"'))


def _call(function: str, *of: str) -> exp.Expr:
    sides = [
        exp.Column(this=exp.to_identifier(name, quoted=not words.is_plain(name)))
        for name in of
    ]
    return exp.Anonymous(this=function, expressions=sides)
