"""Rows as CSV: RFC 4180 with a plain line feed at the end of each."""

import csv
from collections.abc import Iterable, Sequence


def csv_lines(rows: Iterable[Sequence[str]], *, delimiter: str = ",") -> str:
    r"""Rows of text as lines of CSV.

    What has a quote, the delimiter, `\r` or `\n` in it stands in quotes, and quotes in it are doubled. Nothing else is
    altered: a text that begins with `=` is the same text for whoever reads the file.

    Args:
        rows: the cells.
        delimiter: between two of them.
    """
    lines = _Lines()
    # With \r in what ends a line a cell that has one is quoted; Python would write it bare.
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "".join(lines.written)


class _Lines:
    """What a writer writes, line by line."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        """Takes one line."""
        self.written.append(line.removesuffix("\r\n") + "\n")
