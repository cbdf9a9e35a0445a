"""Quotes in CSV: records that go over several lines, and quotes that are never closed.

A quote opens a field only at the field's start; elsewhere it is a character like any other, also behind a closing
quote. So Python's and Arrow's readers have it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.numbers import Mask, mask
from st_common.formats.spans import Spans, byte_places

RECORD_LIMIT = (
    1 << 16
)  # bytes of a record that goes over several lines; a quote open for longer counts as never closed


@dataclass(frozen=True, slots=True)
class Dialect:
    """What separates and what quotes fields: one ASCII character each; quote "" for none."""

    delimiter: str
    quote: str


def join_lines(lines: Spans, dialect: Dialect) -> Spans:
    """The records of lines: a line whose quote is open is joined with the next that has an odd number of quotes.

    But only if the joined record is strictly well formed (behind a closing quote comes a delimiter or the end) and
    below RECORD_LIMIT. Otherwise the line stays alone, so that an unbalanced quote costs its own line and no other.
    """
    odd = np.flatnonzero(
        lines.count(byte_places(lines.buffer, ord(dialect.quote))) % 2 == 1
    )
    if len(odd) < 2:
        return lines
    opening, closing = odd[:-1], odd[1:]
    near = lines.ends[closing] - lines.starts[opening] < RECORD_LIMIT
    opening, closing = opening[near], closing[near]
    joined = Spans(lines.buffer, lines.starts[opening], lines.ends[closing])
    pairs = ~is_closed(lines.select(opening), dialect)
    pairs[pairs] = _matches(
        lines.select(closing[pairs]), _tail(dialect)
    )  # cheap, and rules out nearly all
    pairs[pairs] = _matches(joined.select(pairs), _strict(dialect))
    taken = _every_other(pairs, opening, closing)
    inner = np.zeros(
        len(lines) + 1, np.int64
    )  # counts how many joined records a line continues
    np.add.at(inner, opening[taken] + 1, 1)
    np.add.at(inner, closing[taken] + 1, -1)
    ends = lines.ends.copy()
    ends[opening[taken]] = lines.ends[closing[taken]]
    heads = np.cumsum(inner[:-1]) == 0
    return Spans(lines.buffer, lines.starts[heads], ends[heads])


def is_closed(records: Spans, dialect: Dialect) -> Mask:
    """Whether every quote that opens a field is closed, and no carriage return stands outside of quotes."""
    return _matches(records, _lenient(dialect))


def count_fields(records: Spans, dialect: Dialect) -> NDArray[np.int64]:
    """The number of fields of closed records."""
    delimiter, quote = _escaped(dialect)
    pattern = f"(^|{delimiter}){quote}(?:[^{quote}]|{quote}{quote})*{quote}"
    bare = pc.replace_substring_regex(records.texts(), pattern, r"\1")
    return (
        np.asarray(pc.count_substring(bare, dialect.delimiter).to_numpy(), np.int64) + 1
    )


def _every_other(
    pairs: Mask, opening: NDArray[np.int64], closing: NDArray[np.int64]
) -> Mask:
    """From runs of pairs of which each ends where the next begins, every other one, the first included."""
    number = np.arange(len(pairs))
    chained = np.zeros(len(pairs), bool)
    chained[1:] = pairs[1:] & pairs[:-1] & (opening[1:] == closing[:-1])
    first = (
        np.maximum.accumulate(np.where(chained, 0, number)) if len(pairs) else number
    )
    even: Mask = (number - first) % 2 == 0
    return pairs & even


def _escaped(dialect: Dialect) -> tuple[str, str]:
    return f"\\x{ord(dialect.delimiter):02x}", f"\\x{ord(dialect.quote):02x}"


def _strict(dialect: Dialect) -> str:
    return f"^{_fields(dialect)}$"


def _tail(dialect: Dialect) -> str:
    """The last line of a strict record of several lines: the end of a quoted field, then maybe other fields."""
    delimiter, quote = _escaped(dialect)
    return f"^(?:[^{quote}]|{quote}{quote})*{quote}(?:{delimiter}{_fields(dialect)})?$"


def _lenient(dialect: Dialect) -> str:
    delimiter, quote = _escaped(dialect)
    more = f"(?:[^{quote}{delimiter}\\r\\n][^{delimiter}\\r\\n]*)?"
    return f"^{_fields(dialect, after_quote=more)}$"


def _fields(dialect: Dialect, *, after_quote: str = "") -> str:
    delimiter, quote = _escaped(dialect)
    bare = f"(?:[^{quote}{delimiter}\\r\\n][^{delimiter}\\r\\n]*)?"
    quoted = f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}{after_quote}"
    return f"(?:{bare}|{quoted})(?:{delimiter}(?:{bare}|{quoted}))*"


def _matches(records: Spans, pattern: str) -> Mask:
    if not len(records):
        return np.zeros(0, bool)
    return mask(pc.match_substring_regex(records.texts(), pattern))
