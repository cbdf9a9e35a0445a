"""What may be typed next: words that the grammar allows there, and names of what may stand there."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from st_common.cli.shell.carrying_out import COMMANDS, NAMING
from st_common.cli.shell.known import Known
from st_common.cli.shell.texts import is_command, statement_at, stream_of, typed_at
from st_common.errors import FairwayError
from st_common.query.grammar.expecting import Expected, expected_after
from st_common.query.grammar.words import quoted
from st_common.query.lowering.functions import AGGREGATES, FUNCTIONS, STAMPS
from st_common.query.near_columns import CALLS
from st_common.query.pair_columns import MEASURES
from st_common.units import METRES, SECONDS, SHOWN, SPEEDS

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
_UNITS = frozenset({*METRES, *SECONDS, *SPEEDS}) - {
    unit for shown in SHOWN.values() for unit in shown.split(", ")
}


class Completing(Completer):
    """Completes statements and the shell's commands."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """The completions of what is typed before the cursor, names first."""
        del complete_event
        before, whole = statement_at(document.text, document.cursor_position)
        typed = typed_at(before)
        if is_command(document.text):
            yield from _fitting(
                self._for_command(document.text_before_cursor), typed, ""
            )
            return
        expected = expected_after(before[: len(before) - len(typed)])
        if expected is None:
            return
        for meta, names in _readable(self._names(expected, whole)):
            yield from _fitting((quoted(name) for name in names), typed, meta)
        yield from _fitting(
            sorted(_words(expected, whole)), typed, "", lower=typed.islower()
        )

    def _names(
        self, expected: Expected, whole: str
    ) -> Iterator[tuple[str, Iterable[str]]]:
        wanted, known = expected.rules, self._known
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

    def _for_command(self, before: str) -> Iterable[str]:
        command, _, rest = before.lstrip().partition(" ")
        if not rest and not before.endswith(" "):
            return [name.removeprefix("\\") for name in COMMANDS]
        return [
            name for _, names in _readable(self._queries(command)) for name in names
        ]

    def _queries(self, command: str) -> Iterator[tuple[str, Iterable[str]]]:
        if command in NAMING:
            yield "query", self._known.queries


def _readable(
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


def _fitting(
    names: Iterable[str], typed: str, meta: str, *, lower: bool = False
) -> Iterator[Completion]:
    for name in names:
        if name.lower().startswith(typed.lower()):
            text = name.lower() if lower else name
            yield Completion(text, start_position=-len(typed), display_meta=meta)
