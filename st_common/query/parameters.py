"""Statements with parameters, `$1` or `$name`: each stands for as many statements as a table has rows (SPEC X12).

    REGISTER QUERY near_$id AS SELECT * FROM taxis WHERE state = $state INSIDE CIRCLE ($x, $y, $r m)

    id,state,x,y,r             REGISTER QUERY near_7 AS .. WHERE state = 'free' INSIDE CIRCLE (-8.61, 41.1, 500 m)
    7,free,-8.61,41.1,500  ->  REGISTER QUERY near_8 AS .. WHERE state = 'O''Hare' INSIDE CIRCLE (-8.6, 41.2, 80 m)
    8,O'Hare,-8.6,41.2,80

A value becomes one literal, in quotes if it is a text, and stands where a token stood: it cannot end a text, begin a
comment or a statement. What is in quotes or a comment has no parameters. A statement without parameters stands once.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from st_common.query.grammar.nodes import Refused, Span
from st_common.query.grammar.tokens import Token, chunks_of
from st_common.query.grammar.words import quoted
from st_common.query.parameter_table import Bare, Cell, ParameterTable
from st_common.query.problem import (
    Problem,
    Source,
    TextError,
    did_you_mean,
    underlined,
)
from st_common.query.tokens import PARAMETER_MARK, tokens_of
from st_common.written import text_literal, whole_number

_PARAMETER = re.compile(
    r"\$(?:(?P<number>[0-9]+)|(?P<name>[^\W\d]\w*)|\{(?P<braced>[^{}\n]+)\})"
)
_RUN = re.compile(r"(?:\w*\$(?:[0-9]+|[^\W\d]\w*|\{[^{}\n]+\}))+\w*")
_AS_TEXT = re.compile(r"\s*::\s*(?:TEXT|STRING|VARCHAR)\b", re.IGNORECASE)
_BEFORE_NAMES = frozenset(("QUERY", "AREA", "EXISTS"))
_LIKE = "$1, $name or ${a name}: a column of the table, by its number or its name"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """Where values stand in a statement: texts that stay and numbers of columns, one literal or one name in the end.

    `before` and `behind` are blanks that keep it apart from its neighbours: `-$1` is no comment where $1 is -5.
    """

    span: Span
    pieces: tuple[str | int, ...]
    written: Literal["value", "text", "name"]
    before: str
    behind: str

    @property
    def columns(self) -> tuple[int, ...]:
        """Numbers of the columns that stand here, from 0 on."""
        return tuple(piece for piece in self.pieces if isinstance(piece, int))

    def literal(self, cells: Sequence[Cell]) -> str:
        """What stands here for one row of the table."""
        values = [
            piece if isinstance(piece, str) else cells[piece] or ""
            for piece in self.pieces
        ]
        value = values[0] if len(values) == 1 else "".join(values)
        return f"{self.before}{_literal(value, self.written)}{self.behind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of a statement for one row: `written` from `start` on; where its template stood, and whose slot it is."""

    start: int
    written: str
    span: Span
    slot: _Slot | None

    @property
    def end(self) -> int:
        """Behind its last character."""
        return self.start + len(self.written)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A statement of the text, from `start` to before `end`, and its slots in order."""

    start: int
    end: int
    slots: tuple[_Slot, ...]

    def parts(self, text: str, cells: Sequence[Cell]) -> Iterator[_Part]:
        """The parts of the statement for one row."""
        at, length = self.start, 0
        for slot in self.slots:
            fixed = text[at : slot.span[0]]
            yield _Part(start=length, written=fixed, span=(at, slot.span[0]), slot=None)
            length += len(fixed)
            literal = slot.literal(cells)
            yield _Part(start=length, written=literal, span=slot.span, slot=slot)
            length += len(literal)
            at = slot.span[1]
        rest = text[at : self.end]
        yield _Part(start=length, written=rest, span=(at, self.end), slot=None)

    def written(self, text: str, cells: Sequence[Cell]) -> str:
        """The statement for one row."""
        return "".join([part.written for part in self.parts(text, cells)])


class BoundSource(Source):
    """The text with values in the places of its parameters; problems are told in the text, or in the table.

    Args:
        given: the text with parameters.
        table: their values.

    Raises:
        TextError: parameters that the table does not have, a cell without a value, or no parameter at all.
    """

    def __init__(self, given: Source, table: ParameterTable) -> None:
        self._given, self._table = given, table
        self._misfits: dict[tuple[str, Span], Problem] = {}
        self._patterns = _patterns_of(given, table)
        _check_filled(table, self._patterns)
        self._owners = [
            (pattern, row)
            for pattern in self._patterns
            for row in (range(len(table.rows)) if pattern.slots else (None,))
        ]
        statements = [
            f"{pattern.written(given.text, self._cells(row))};\n"
            for pattern, row in self._owners
        ]
        self._starts = list(accumulate(map(len, statements[:-1]), initial=0))
        super().__init__("".join(statements), given.file)

    def problem(self, message: str, span: Span, hint: str = "") -> Problem:
        """A problem with what stands at these offsets; where values stand there, it is of their cells."""
        number = bisect_right(self._starts, span[0]) - 1
        pattern, row = self._owners[number]
        start = span[0] - self._starts[number]
        end = max(span[1] - self._starts[number], start + 1)
        parts = list(pattern.parts(self._given.text, self._cells(row)))
        met = [part for part in parts if part.start < end and start < part.end]
        slots = [part.slot for part in met if part.slot is not None]
        if row is None or not slots:
            return self._given.problem(message, _in_text(met, start, end), hint)
        written = "".join(part.written for part in parts)
        return Problem(
            message=message,
            hint=hint,
            file=self._cell_name(row, [at for slot in slots for at in slot.columns]),
            line=0,
            column=0,
            snippet=_underlined(written, start, end),
        )

    def misfit(self, message: str, span: Span, hint: str = "") -> Problem:
        """A problem as `problem`, of a statement that was read; where no value stands it is told once."""
        plain = self.problem(message, span, hint)
        row = self.row_name(span[0])
        if row is None or not plain.line:
            return plain
        where = message, (plain.line, plain.column)
        named = replace(plain, message=f"{row}: {message}")
        return self._misfits.setdefault(where, named)

    def row_name(self, offset: int) -> str | None:
        """The row of the table that the statement at an offset is of; None: it has no parameters."""
        _, row = self._owners[bisect_right(self._starts, offset) - 1]
        if row is None:
            return None
        return f"{self._table.name}, {self._table.row_names[row]}"

    def _cells(self, row: int | None) -> Sequence[Cell]:
        return () if row is None else self._table.rows[row]

    def _cell_name(self, row: int, columns: Sequence[int]) -> str:
        return _cell_name(self._table, row, columns)


def _cell_name(table: ParameterTable, row: int, columns: Sequence[int]) -> str:
    names = list(dict.fromkeys(table.columns[at] for at in columns))
    noun = "column" if len(names) == 1 else "columns"
    return f"{table.name}, {table.row_names[row]}, {noun} {', '.join(names)}"


def _literal(value: str, written: str) -> str:
    if written == "name":
        return quoted(value)
    is_bare = written == "value" and isinstance(value, Bare)
    return value if is_bare else text_literal(value)


def _patterns_of(given: Source, table: ParameterTable) -> list[_Pattern]:
    tokens = tokens_of(given)
    refused: list[Refused] = []
    patterns = [
        _Pattern(
            chunk[0].start_pos,
            chunk[-1].end_pos,
            tuple(_slots_of(given.text, chunk, table, refused)),
        )
        for chunk in chunks_of(tokens)
    ]
    if refused:
        raise TextError(
            [given.problem(str(one), one.span, one.hint) for one in refused]
        )
    if not any(pattern.slots for pattern in patterns):
        message = "the text has no parameter"
        raise TextError([given.problem(message, (0, 0), _LIKE)])
    return patterns


def _slots_of(
    text: str, chunk: Sequence[Token], table: ParameterTable, refused: list[Refused]
) -> Iterator[_Slot]:
    """The slots of a statement; what is no parameter of the table is refused."""
    done, before = 0, ""
    for token in chunk:
        if token.start_pos < done:
            continue
        run = _RUN.match(text, token.start_pos)
        if run is not None:
            slot = _slot(text, run, before, table, refused)
            done = slot.span[1]
            yield slot
        elif token == PARAMETER_MARK:
            refused.append(Refused("expected a parameter", token.span, _LIKE))
        before = token.upper()


def _slot(
    text: str,
    run: re.Match[str],
    before: str,
    table: ParameterTable,
    refused: list[Refused],
) -> _Slot:
    start, end = run.span()
    pieces: list[str | int] = []
    at = start
    for match in _PARAMETER.finditer(text, start, end):
        pieces += [text[at : match.start()]] if match.start() > at else []
        pieces.append(_column_of(match, table, refused))
        at = match.end()
    pieces += [text[at:end]] if end > at else []
    as_text = _AS_TEXT.match(text, end)
    is_name = len(pieces) > 1 or before in _BEFORE_NAMES
    if as_text is not None and not is_name:
        end = as_text.end()
    return _Slot(
        span=(start, end),
        pieces=tuple(pieces),
        written="name" if is_name else "value" if as_text is None else "text",
        before="" if start == 0 or text[start - 1] in " \t\r\n(,;" else " ",
        behind="" if end == len(text) or text[end] in " \t\r\n),;" else " ",
    )


def _column_of(
    match: re.Match[str], table: ParameterTable, refused: list[Refused]
) -> int:
    """The number of the column that a parameter names, from 0 on; of one that is refused the first."""
    if match["number"]:
        number = whole_number(match["number"], len(table.columns))
        if number:
            return number - 1
        message = f"there is no column {match['number']}"
        refused.append(Refused(message, match.span(), _columns_of(table)))
        return 0
    name = match["name"] or match["braced"]
    folded = [column.casefold() for column in table.columns]
    if name.casefold() in folded:
        return folded.index(name.casefold())
    hint = did_you_mean(name, table.columns) or _columns_of(table)
    refused.append(Refused(f"unknown parameter {name!r}", match.span(), hint))
    return 0


def _columns_of(table: ParameterTable) -> str:
    return f"{table.name} has the columns {', '.join(table.columns) or 'none'}"


def _check_filled(table: ParameterTable, patterns: Sequence[_Pattern]) -> None:
    """Nothing, when every cell that a parameter names has a value.

    Raises:
        TextError: some have none.
    """
    used = {at for one in patterns for slot in one.slots for at in slot.columns}
    empty = [
        Problem(
            message="there is no value",
            hint="every parameter has one in each row",
            file=_cell_name(table, row, [at]),
            line=0,
            column=0,
            snippet="",
        )
        for row, cells in enumerate(table.rows)
        for at in sorted(used)
        if cells[at] is None
    ]
    if empty:
        raise TextError(empty)


def _in_text(met: Sequence[_Part], start: int, end: int) -> Span:
    """Where what stands at these offsets of a statement stood in the text; it meets no slot."""
    first, last = met[0], met[-1]
    return first.span[0] + start - first.start, last.span[0] + end - last.start


def _underlined(written: str, start: int, end: int) -> str:
    line_start = written.rfind("\n", 0, start) + 1
    line = written[line_start:].partition("\n")[0]
    return underlined(line, start - line_start, end - start)
