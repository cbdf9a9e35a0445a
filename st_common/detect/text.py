"""Delimited text: what separates its fields, how many lines stand in front, and whether the first one names columns."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from st_common.errors import ConfigError

_DELIMITERS = (",", ";", "\t", "|")
_LINES = 100
_LONGEST = 1 << 16  # characters of a line that is looked at
_LEAST_SURE = 3  # fields between what is no comma
_LEAST_BLANKS = 3  # fields, where blanks separate them
_VALUE = re.compile(
    r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?"  # a number
    r"|[-+(]?\d+([.,]\d+)?[°º\s,;][^A-Za-z]*[NSEWO]?\W*"  # degrees, or both coordinates
    r"|[-+]?\d+([.,]\d+)?[NSEWO]|[A-Za-z]{3,9},? \d{1,2} [A-Za-z]{3,9} \d{2,4}.*"
    r"|\d{1,4}[-/.]\w{1,9}[-/.]\d{1,4}.*|\d{1,2}:\d{2}.*"  # a date, or a time
    r"|(SRID=\d+;)?\s*(MULTI)?(POINT|LINESTRING|POLYGON)\s*Z?\s*\(.*|0[01][0-9A-Fa-f]{40,}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What was seen of a delimited text.

    Attributes:
        delimiter: what separates fields.
        skip_lines: how many lines stand in front of the header, or of the first record.
        names: of the columns; their numbers where no line names them.
        has_header: whether a line names them.
        rows: the first records, each with all fields.
    """

    delimiter: str
    skip_lines: int
    names: tuple[str, ...]
    has_header: bool
    rows: Sequence[dict[str, str]]


def text_of(text: str, place: str) -> Text:
    """How a delimited text is written, by its first lines.

    Raises:
        ConfigError: its lines have no fields.
    """
    # Lines end as for readers of CSV; `splitlines` knows other ends.
    lines = [line.rstrip("\n") for line in io.StringIO(text, newline=None)][
        : _LINES + 20
    ]
    delimiter, width = _delimiter([line for line in lines if line.strip()])
    if width <= 1:
        first = next((line for line in lines if line.strip()), "")
        raise ConfigError(
            f"{place} is text without fields: {first[:60]!r}",
            hint="docs/formats.md has all formats",
        )
    skipped = _leading(lines, delimiter, width)
    table = _fields([line for line in lines[skipped:] if line.strip()], delimiter)
    rows = [[cell.strip() for cell in row] for row in table if len(row) == width]
    if not rows:
        raise ConfigError(
            f"{place} has no lines with fields that can be told apart",
            hint="docs/formats.md has all formats",
        )
    has_header = not any(map(_VALUE.fullmatch, rows[0]))
    names = rows[0] if has_header else [str(n) for n in range(1, width + 1)]
    shown = rows[1:] if has_header else rows
    return Text(
        delimiter=delimiter,
        skip_lines=skipped,
        names=tuple(names),
        has_header=has_header,
        rows=[dict(zip(names, row, strict=True)) for row in shown[:_LINES]],
    )


def _delimiter(lines: Sequence[str]) -> tuple[str, int]:
    """What separates fields in most lines, and into how many."""
    best = ("", 0, 0)
    last = lines[-50:]
    for one in _DELIMITERS:
        widths = Counter(len(row) for row in _fields(last, one))
        width, count = next(iter(widths.most_common(1)), (0, 0))
        is_sure = best[0] == "," and width >= _LEAST_SURE  # its commas are decimal
        if width > 1 and (count, is_sure, width) > (best[2], False, best[1]):
            best = (one, width, count)
    if 2 * best[2] > len(last):
        return best[0], best[1]
    blanks = {len(line.split(" ")) for line in last}
    if len(blanks) == 1 and max(blanks) >= _LEAST_BLANKS and _has_numbers(last):
        return " ", blanks.pop()
    return best[0] or ",", best[1]


def _fields(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The fields of lines, without those that are longer than Python's csv takes."""
    text = "\n".join(line for line in lines if len(line) <= _LONGEST)
    try:
        yield from csv.reader(io.StringIO(text), delimiter=delimiter)
    except csv.Error:  # a quote that is open for too long
        return


def _has_numbers(lines: Sequence[str]) -> bool:
    """Whether the fields between blanks are values: prose has blanks, too."""
    cells = [cell for line in lines for cell in line.split(" ")]
    return 2 * sum(_VALUE.fullmatch(cell) is not None for cell in cells) > len(cells)


def _leading(lines: Sequence[str], delimiter: str, width: int) -> int:
    """How many lines stand in front of those that have all fields; blank ones alone are none."""
    for number, line in enumerate(lines):
        row = next(_fields([line], delimiter), [])
        if len(row) == width:
            return number if any(one.strip() for one in lines[:number]) else 0
    return 0
