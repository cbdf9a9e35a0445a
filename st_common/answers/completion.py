"""What may be typed next in a statement: words that the grammar allows there, and names of what may stand there."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from st_common.answers.names_known import Known
from st_common.answers.typed_text import statement_at, stream_of, typed_at
from st_common.config.home import DEFAULT_GROUP
from st_common.config.units import METRES, SECONDS, SHOWN, SPEEDS
from st_common.errors import FairwayError
from st_common.query.grammar.expecting import Expected, expected_after
from st_common.query.grammar.words import quoted
from st_common.query.lowering.functions import AGGREGATES, FUNCTIONS, STAMPS
from st_common.query.near_columns import CALLS
from st_common.query.pair_columns import MEASURES

_CLAUSES = frozenset(
    (
        *("WHERE", "INSIDE", "GPAC-IN", "KNN", "GPAC-KNN", "REVERSE KNN", "GROUP KNN"),
        *(
            "DETECT",
            "GROUP BY",
            "ORDER BY",
            "WINDOW",
            "COMPARE WITH",
            "USING",
            "EMIT",
            "WITH",
        ),
    )
)
_FUNCTIONS = (*FUNCTIONS, *AGGREGATES, STAMPS, *{**MEASURES, **CALLS})
_BEFORE_POINT = re.compile(r'(?:"(?P<quoted>[^"]+)"|(?P<plain>\w+))\s*\.\s*$')
_UNITS = frozenset({*METRES, *SECONDS, *SPEEDS}) - {
    unit for shown in SHOWN.values() for unit in shown.split(", ")
}


@dataclass(frozen=True, slots=True)
class Option:
    """What may be typed: the text, and what it is, "" for a word."""

    text: str
    about: str


def completions(known: Known, text: str, place: int) -> tuple[int, list[Option]]:
    """What may stand at a place of a text in place of what is typed there, names first.

    Args:
        known: the names of a home.
        text: all of it.
        place: where the cursor is.

    Returns:
        Where what is typed begins, and what may stand there.
    """
    before, whole = statement_at(text, place)
    typed = typed_at(before)
    start = place - len(typed)
    head = before[: len(before) - len(typed)]
    expected = expected_after(head)
    if expected is None:
        return start, []
    named = chain(_names(known, expected, whole), _in_group(known, expected, head))
    options = [
        one
        for about, names in readable(named)
        for one in fitting((quoted(name) for name in names), typed, about)
    ]
    options += fitting(_groups(known, expected), typed, "group")
    words = sorted(_words(expected, whole))
    return start, [*options, *fitting(words, typed, "", lower=typed.islower())]


def _names(
    known: Known, expected: Expected, whole: str
) -> Iterator[tuple[str, Iterable[str]]]:
    wanted = expected.rules
    if "query" in wanted:
        yield "query", known.queries
    if wanted & {"stream", "other"}:
        yield "stream", known.streams
    if wanted & {"layer", "other"}:
        yield "layer", known.layers
    if "area" in wanted:
        yield "area", known.areas
    if "column" in wanted:
        yield "column", known.columns(stream_of(whole))
    if "function" in wanted:
        yield "function", _FUNCTIONS


def _in_group(
    known: Known, expected: Expected, head: str
) -> Iterator[tuple[str, Iterable[str]]]:
    """What is in the group before a point, where a stream or a layer may stand."""
    group = _BEFORE_POINT.search(head)
    if group is None or "member" not in expected.rules:
        return
    before = expected_after(head[: group.start()])
    wanted = before.rules if before is not None else frozenset()
    name = group["quoted"] or group["plain"]
    if wanted & {"stream", "other"}:
        yield "stream", known.streams_in(name)
    if wanted & {"layer", "other"}:
        yield "layer", known.layers_in(name)


def _groups(known: Known, expected: Expected) -> Iterator[str]:
    """The groups of streams with the point behind them; nobody needs to write that of those that say none."""
    if expected.rules & {"stream", "other"}:
        groups = {one.group for one in known.streams.values()} - {DEFAULT_GROUP}
        yield from (f"{quoted(group)}." for group in sorted(groups))


def readable(
    names: Iterator[tuple[str, Iterable[str]]],
) -> Iterator[tuple[str, Iterable[str]]]:
    """The names up to what cannot be read: that is said when a statement is carried out, and not while it is typed."""
    with suppress(FairwayError):
        yield from names


def _words(expected: Expected, whole: str) -> Iterator[str]:
    """The words that may come, without the longer names of units, and without clauses that are there already."""
    there = whole.upper()
    for word in expected.words - _UNITS:
        again = word in _CLAUSES and re.search(rf"\b{word}\b", there) is not None
        if word[0].isalpha() and not ("clause" in expected.rules and again):
            yield word


def fitting(
    names: Iterable[str], typed: str, about: str, *, lower: bool = False
) -> Iterator[Option]:
    """Those names that begin with what is typed."""
    for name in names:
        if name.lower().startswith(typed.lower()):
            yield Option(name.lower() if lower else name, about)
