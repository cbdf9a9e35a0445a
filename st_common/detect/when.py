"""Which column holds the time of a fix, or which two date and time, and how they are written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from st_common.detect.rows import Rows
from st_common.detect.times import Reading, is_clock, readings_of
from st_common.detect.words import CLOCKS, DATES, LATER, TIMES, rank, words_of

_DAY_CHARACTERS = 11
_UNNAMED = len(TIMES)
_COUNTS = ("s", "ms", "us", "ns")
_MAY_BE_NUMBERS = (
    *_COUNTS,
    "excel",
    "excel1904",
    "%Y%m%d",
    "%y%m%d",
    "%d%m%y",
    "%d%m%Y",
)
_DECIMAL_COMMA = re.compile(r"^(\d+),(\d+)$")
_LETTERED = re.compile(r"(.*[0-9Mm.]) ?\(?([A-Z]{3,5})\)?")
_TOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The time of a fix.

    Attributes:
        column: one, or those of date and time; None: no column has it.
        unit: how they are written; None: nobody knows.
        notes: what people should look at.
        us: the instants, where each record has one; else empty.
        is_local: whether they name no zone.
    """

    column: str | list[str] | None = None
    unit: str | None = None
    notes: tuple[str, ...] = ()
    us: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that may hold times, with all ways to read it; or date and time.

    `letters` are those of zones behind the times, of which nobody knows where they are: `CET`.
    """

    name: str | list[str]
    rank: int
    texts: tuple[str, ...]
    readings: Sequence[Reading]
    letters: tuple[str, ...] = ()

    @property
    def is_likely(self) -> bool:
        return bool(self.readings) and self.readings[0].is_likely

    @property
    def is_called(self) -> bool:
        """Whether times are called so, or its values can be nothing else."""
        by_name = self.rank % (2 * _UNNAMED) < _UNNAMED
        return by_name or self.readings[0].unit not in _MAY_BE_NUMBERS

    @property
    def has_clock(self) -> bool:
        """Whether it says more than the day."""
        longest = max(map(len, self.texts), default=0)
        return self.readings[0].unit in _COUNTS or longest >= _DAY_CHARACTERS


def when_in(
    names: Sequence[str], rows: Rows, given: str | None, *, has_commas: bool = False
) -> When:
    """The column of times.

    Args:
        names: of the columns that hold no place.
        rows: some records.
        given: the column that somebody has named.
        has_commas: numbers have decimal commas.
    """
    wanted = [given] if given else names
    columns = [_column(name, rows, has_commas=has_commas) for name in wanted]
    if given is not None:
        return _taken(columns[0], [], len(rows))
    able = [one for one in columns if one.is_likely and _may_be(one)]
    whole = [one for one in able if one.has_clock]
    whole = whole or _together(names, rows) or able
    if whole:
        best, *others = sorted(whole, key=lambda one: one.rank)
        told = [one for one in others if one.is_called]
        return _taken(best, told, len(rows))
    called = [one for one in columns if one.rank < _UNNAMED - 1]
    if called:
        return _taken(min(called, key=lambda one: one.rank), [], len(rows))
    return When(
        notes=(
            "no column of times: a record's time would be its arrival; --time names one",
        )
    )


def _column(name: str, rows: Rows, *, has_commas: bool) -> _Column:
    texts = tuple(row.get(name, "").strip() for row in rows)
    if has_commas:
        texts = tuple(_DECIMAL_COMMA.sub(r"\1.\2", text) for text in texts)
    place = rank(name, TIMES)
    is_later = LATER.fullmatch(words_of(name)) is not None
    order = (_UNNAMED if place is None else place) + 2 * _UNNAMED * is_later
    readings = readings_of(texts)
    letters: tuple[str, ...] = ()
    if not readings:
        parts = [_LETTERED.fullmatch(text) for text in texts]
        letters = tuple(sorted({one[2] for one in parts if one}))
        plain = [one[1] if one else "" for one in parts]
        readings = readings_of(plain) if letters else []
    return _Column(name, order, texts, readings, letters)


def _may_be(one: _Column) -> bool:
    """Whether a column can hold times; numbers that nobody calls so must run on."""
    if one.is_called:
        return True
    us = one.readings[0].us
    if len(set(us.tolist())) < 2:
        return False
    return bool((np.diff(us) >= 0).mean() > 0.9)


def _together(names: Sequence[str], rows: Rows) -> list[_Column]:
    """A column of days and one of times of the day, as one."""
    texts = {name: [row.get(name, "").strip() for row in rows] for name in names}
    clocks = [n for n in names if is_clock(texts[n])]
    clocks += [n for n in names if n not in clocks and CLOCKS.fullmatch(words_of(n))]
    days = sorted(names, key=lambda name: DATES.fullmatch(words_of(name)) is None)
    for clock in clocks:
        for day in days:
            joined = tuple(
                f"{a} {b}" if a and b else ""
                for a, b in zip(texts[day], texts[clock], strict=True)
            )
            readings = [] if day == clock else readings_of(joined)
            if readings and readings[0].is_likely:
                return [_Column([day, clock], 0, joined, readings)]
    return []


def _taken(best: _Column, others: Sequence[_Column], count: int) -> When:
    if not best.readings:
        unknown = (
            f"nothing says how the times of {best.name} are written: set time_unit"
        )
        return When(column=best.name, notes=(unknown,) if count else ())
    reading, *seconds = best.readings
    notes = [
        *_in_doubt(best, reading),
        *_lettered(best),
        *_also(best, seconds),
        *_beside(best, others),
    ]
    whole = reading.us if len(reading.us) == count else np.zeros(0, np.int64)
    return When(
        column=best.name,
        unit=reading.unit,
        notes=tuple(notes),
        us=whole,
        is_local=not reading.has_zone,
    )


def _shown(name: str | list[str]) -> str:
    return name if isinstance(name, str) else " and ".join(name)


def _in_doubt(best: _Column, reading: Reading) -> list[str]:
    """That they name no zone."""
    if reading.has_zone or not reading.is_likely or best.letters:
        return []
    return [
        f"times of {_shown(best.name)} name no zone and are read as UTC; "
        'also fits: time_zone = "Europe/Berlin" or another'
    ]


def _lettered(best: _Column) -> list[str]:
    """That they end in the letters of a zone, which several zones have."""
    if not best.letters:
        return []
    return [
        f"times of {_shown(best.name)} end in {', '.join(best.letters[:_TOLD])}, letters that several zones have: "
        'they are read once time_zone = "Europe/Berlin", or where the clocks stand, says which'
    ]


def _also(best: _Column, seconds: Sequence[Reading]) -> list[str]:
    """The other ways to read them."""
    return [
        f'times of {_shown(best.name)} begin at {best.readings[0].first}; also fits: time_unit = "{one.unit}", '
        f"then they begin at {one.first}"
        for one in seconds[:_TOLD]
        if best.readings[0].is_likely
    ]


def _beside(best: _Column, others: Sequence[_Column]) -> list[str]:
    """Other columns of times."""
    notes = []
    for one in others[:_TOLD]:
        same = np.array_equal(one.readings[0].us, best.readings[0].us)
        what = "with the same times" if same else "with other times"
        notes.append(
            f"{_shown(best.name)} is taken for the time; also fits: --time {_shown(one.name)}, {what}"
        )
    return notes


def of_both(column: str | list[str] | None) -> Mapping[str, str | list[str]]:
    """The time as a key of `columns`."""
    return {} if column is None else {"event_ts": column}
