"""CREATE TABLE: its columns, its key and its options."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from st_common.errors import LayerError
from st_common.layers.table_settings import TableSettings
from st_common.query.grammar.building_places import extent_in
from st_common.query.grammar.nodes import CreateTable, Quantity, Refused, span_of
from st_common.query.lowering.quantity import duration, whole
from st_common.query.problem import did_you_mean

_TEXTS = ("TEXT", "STRING", "VARCHAR")
_MOST_VERSIONS = 1_000_000


def table_of(tree: CreateTable) -> TableSettings:
    """The declaration of a table.

    Raises:
        Refused: it has no key or several, a column is no text, or stands twice; an option is unknown or wrong.
    """
    keys = [one for one in tree.expressions if one.args["key"]]
    if len(keys) != 1:
        at = keys[1] if keys else tree.expressions[0]
        hint = "write PRIMARY KEY behind one column: plate TEXT PRIMARY KEY"
        raise Refused("a table has one key", span_of(at), hint)
    for column in tree.expressions:
        kind = column.args["kind"]
        if kind is not None and kind.name.upper() not in _TEXTS:
            message = f"a column of a table is a text, not {kind.name}"
            raise Refused(message, span_of(column), "leave the type out, or TEXT")
    columns = tuple(one.name for one in tree.expressions)
    made = TableSettings(key=keys[0].name, columns=columns, **_options(tree))
    try:
        made.check()
    except LayerError as error:
        raise Refused(error.message, span_of(tree.expressions[0]), error.hint) from None
    return made


def seconds_of(value: exp.Expr) -> float:
    """How long rows stay, of an option or a text: `'7 days'`.

    Raises:
        Refused: it is no time with its unit.
    """
    amount: exp.Expr | None = value
    if isinstance(value, exp.Literal):
        amount = extent_in(value.this, span_of(value)[0] + 1)
    if not isinstance(amount, Quantity):
        raise Refused("expected a time with its unit", span_of(value), "ttl = '7 days'")
    return duration(amount, "a ttl")


def seconds_in(text: str) -> float:
    """How long rows stay, of a text such as `7 days`.

    Raises:
        LayerError: it is no time with its unit.
    """
    try:
        return seconds_of(exp.Literal.string(text))
    except Refused as error:
        raise LayerError(
            f"{text!r}: {error.message}", hint="such as '7 days'"
        ) from None


def _options(tree: CreateTable) -> Mapping[str, Any]:
    options = tree.args["options"]
    made: dict[str, Any] = {}
    for option in options.expressions if options else ():
        word = option.this.name.lower()
        if word not in _OPTIONS:
            hint = did_you_mean(word, _OPTIONS) or f"one of {', '.join(_OPTIONS)}"
            raise Refused(f"unknown option {word!r}", span_of(option.this), hint)
        name, read = _OPTIONS[word]
        if name in made:
            raise Refused(f"there is a {word} already", span_of(option.this))
        made[name] = read(option.expression)
    return made


def _versions(value: exp.Expr) -> int:
    return whole(value, "a number of versions", _MOST_VERSIONS)


def _group(value: exp.Expr) -> str:
    if not isinstance(value, exp.Literal):
        raise Refused(
            "expected a text in single quotes", span_of(value), "group = 'city'"
        )
    return str(value.this)


_OPTIONS: Mapping[str, tuple[str, Callable[[exp.Expr], Any]]] = {
    "versions": ("versions", _versions),
    "ttl": ("ttl_s", seconds_of),
    "group": ("group", _group),
}
