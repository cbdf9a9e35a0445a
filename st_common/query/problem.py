"""What is wrong in a text of statements: each problem points at its place, all of them make one error."""

import difflib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from st_common.errors import QueryError

_SHOWN = 20  # problems
_WIDTH = 100  # characters of a line that are shown around the place


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem at one place: line and column count from 1; `snippet` is the line with the place underlined.

    What was built and not written has no lines (0) and no snippet: `file` says which part of it is wrong.
    """

    message: str
    hint: str
    file: str | None
    line: int
    column: int
    snippet: str

    def __str__(self) -> str:
        said = f"{self.message} ({self.hint})" if self.hint else self.message
        return f"{self.place}: {said}" if self.place else said

    @property
    def place(self) -> str:
        """Where it is, in words; empty for what was built as a whole."""
        if not self.line:
            return self.file or ""
        if self.file:
            return f"{self.file}:{self.line}:{self.column}"
        return f"line {self.line}, column {self.column}"


class TextError(QueryError):
    """The text of statements has problems: nothing of it was done.

    The error itself is one line about the first problem; `problems` has all and `details` shows each with its line.
    `understood` are the statements of the text that could be read, as `parse` gives them.
    """

    def __init__(
        self, problems: Sequence[Problem], *, understood: Sequence[Any] = ()
    ) -> None:
        # What is wrong in a text is wrong again for each row of its parameters.
        problems = tuple(dict.fromkeys(problems))
        first, more = problems[0], len(problems) - 1
        super().__init__(
            f"{first}; {more} more problem{'s' if more > 1 else ''}"
            if more
            else str(first)
        )
        self.problems = problems
        self.understood = tuple(understood)
        self.line, self.column = first.line, first.column

    def __reduce__(self) -> tuple[type["TextError"], tuple[tuple[Problem, ...]]]:
        """How it goes to another process: with its problems, without what was understood."""
        # What Exception does by itself makes it anew from its message, which fails there; a pool waits for ever then.
        return TextError, (self.problems,)

    @property
    def details(self) -> str:
        """Every problem with its line of the text, the place underlined."""
        if len(self.problems) == 1:
            return self.problems[0].snippet
        shown = [
            f"{problem}\n{problem.snippet}".rstrip("\n")
            for problem in self.problems[:_SHOWN]
        ]
        left = len(self.problems) - _SHOWN
        return "\n".join([*shown, f"and {left} more"] if left > 0 else shown)


class Source:
    """A text of statements: turns offsets into places."""

    def __init__(self, text: str, file: str | None = None) -> None:
        self.text = text
        self.file = file

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        while (end := self.text.find("\n", starts[-1])) >= 0:
            starts.append(end + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, both counted from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def problem(self, message: str, span: tuple[int, int], hint: str = "") -> Problem:
        """A problem with the characters of `span` (start, end), which may be empty: a place between two characters."""
        line, column = self.place(span[0])
        start = self._line_starts[line - 1]
        end = (
            self._line_starts[line] - 1
            if line < len(self._line_starts)
            else len(self.text)
        )
        snippet = underlined(
            self.text[start:end], column - 1, min(span[1], end) - span[0]
        )
        return Problem(
            message=message,
            hint=hint,
            file=self.file,
            line=line,
            column=column,
            snippet=snippet,
        )


def underlined(line: str, start: int, width: int) -> str:
    """Two rows: the line, cut to what fits around the place, and the place marked by ^ below it."""
    cut = 0 if start < _WIDTH * 3 // 4 else start - _WIDTH // 2
    shown = "".join(
        char if char.isprintable() else " " for char in line[cut : cut + _WIDTH]
    )
    width = max(1, min(width, _WIDTH - (start - cut)))
    return f"  {shown.rstrip()}\n  {' ' * (start - cut)}{'^' * width}"


_WKT = frozenset({"POINT", "LINESTRING", "POLYGON", "MULTIPOLYGON"})


def did_you_mean(word: str, known: Iterable[str], *, nearness: float = 0.6) -> str:
    """A hint that names the known word nearest to `word`; empty when none is near. Case does not count.

    `nearness` is the least share of letters that both have in the same order, from 0 to 1.
    """
    by_fold = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), by_fold, n=1, cutoff=nearness)
    return f"did you mean {by_fold[near[0]]}?" if near else ""


def wkt_hint(word: str) -> str:
    """A hint that WKT stands in quotes, when a word is how WKT begins; else empty."""
    name = word.upper()
    return f"WKT stands in quotes: INSIDE '{name} ((..))'" if name in _WKT else ""
