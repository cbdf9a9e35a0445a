"""What times cannot be compared with or added to, and what AT TIME ZONE cannot stand behind, with the way out.

The database would say it too, of what it makes of them, or would not: a text with a zone is UTC to it.
"""

import re
from collections.abc import Iterator

from sqlglot import exp

from st_common.query.binding import Columns, bound
from st_common.query.grammar.comparing import COMPARING
from st_common.query.grammar.statements import expression_of, text_of

_IN_TEXT = re.compile(r"event_ts|AT TIME ZONE", re.IGNORECASE)
_HAS_ZONE = re.compile(
    r".*\d\d:\d\d.*(?:Z|UTC|[+-]\d\d(?::?\d\d)?)", re.IGNORECASE | re.DOTALL
)
_OF_DAY = re.compile(r"\s*\d\d?:\d\d(?::\d\d(?:\.\d+)?)?\s*")


def wrong_times(text: str, columns: Columns) -> Iterator[tuple[str, str]]:
    """What is wrong with times in an expression, and what to do.

    Args:
        text: canonical SQL.
        columns: all that it names, with their types.
    """
    if _IN_TEXT.search(text) is None:
        return
    tree = expression_of(text)
    for node in tree.find_all(exp.AtTimeZone):
        if not isinstance(node.this, exp.AtTimeZone):
            yield from _behind(text_of(node.this.copy()), columns)
    for comparison in tree.find_all(*COMPARING):
        yield from _compared([side.unnest() for side in comparison.iter_expressions()])
    for sum_ in tree.find_all(exp.Add, exp.Sub):
        yield from _added([side.unnest() for side in sum_.iter_expressions()])


def zones_in(text: str) -> list[str]:
    """The zones that an expression names, each once."""
    if _IN_TEXT.search(text) is None:
        return []
    nodes = expression_of(text).find_all(exp.AtTimeZone)
    return list(dict.fromkeys(node.args["zone"].this for node in nodes))


def _behind(time: str, columns: Columns) -> Iterator[tuple[str, str]]:
    """What AT TIME ZONE stands behind and is no time."""
    (one,) = bound([time], columns)
    if not one.error and one.type != "TIMESTAMP":
        message = f"AT TIME ZONE stands behind a time, not a value of type {one.type}"
        yield message, "CAST(... AS TIMESTAMP) makes a time of it, which is read in UTC"


def _compared(sides: list[exp.Expr]) -> Iterator[tuple[str, str]]:
    """What is not on the clock of a time that it is compared with."""
    is_local = any(isinstance(side, exp.AtTimeZone) for side in sides)
    times = [side for side in sides if _is_time(side)]
    texts = [side.this for side in sides if isinstance(side, exp.Literal)]
    if is_local and any(map(_is_in_utc, sides)):
        message = "event_ts is in UTC, and is compared with what clocks of a zone show"
        yield message, "AT TIME ZONE on both sides, or on none"
    for text in texts if times else ():
        if _OF_DAY.fullmatch(text):
            message = f"{text!r} is a time of day, and is compared with a time of a day"
            local = f"CAST(event_ts AT TIME ZONE 'Europe/Berlin' AS TIME) >= '{text}'"
            yield message, f"{local}, or CAST(event_ts AS TIME) in UTC"
        elif is_local and _HAS_ZONE.fullmatch(text):
            message = f"{text!r} says its zone, and is compared with what clocks of a zone show"
            yield message, "compare it with event_ts, or write what the clocks show"


def _added(sides: list[exp.Expr]) -> Iterator[tuple[str, str]]:
    """A number beside a time."""
    if any(map(_is_time, sides)) and any(map(_is_number, sides)):
        hint = (
            "EPOCH(event_ts) counts seconds since 1970; for the time of a zone "
            "event_ts AT TIME ZONE 'Europe/Berlin'"
        )
        yield "nothing can be added to a time, or taken from it", hint


def _is_time(side: exp.Expr) -> bool:
    return isinstance(side, exp.AtTimeZone) or _is_in_utc(side)


def _is_in_utc(side: exp.Expr) -> bool:
    return isinstance(side, exp.Column) and side.name.casefold() == "event_ts"


def _is_number(side: exp.Expr) -> bool:
    return isinstance(side, exp.Literal) and not side.is_string
