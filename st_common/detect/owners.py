"""Which column holds the objects: one that is called so, whose values come again and count no rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from st_common.detect.places import Places
from st_common.detect.rows import Rows
from st_common.detect.words import MEASURES, OBJECTS, SURE, TRIPS, rank, words_of

_ROUNDED = re.compile(r"\d(\.\d+)?[eE]\+?\d{2}")
_PADDED = re.compile(r"0\d+")
_FLOAT = re.compile(r"(-?(?:0|[1-9]\d*))\.0")
_WHOLE = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[-+]?\d*[.,]\d+")
_TOLD = 3  # other columns that are told
_LEAST_FILLED = 0.5
_SAME_STEP = 1.1
_SNAPSHOT_US = 900_000_000  # what came within it may be one fix of each object


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The column of objects.

    Attributes:
        column: None: no column looks so.
        notes: what people should look at.
    """

    column: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A column that may hold objects: the place of its name among those of objects, and what its values are."""

    name: str
    rank: int | None
    texts: tuple[str, ...]
    filled: int
    distinct: int
    counts_rows: bool

    @property
    def is_unnamed(self) -> bool:
        """Whether the file names no columns."""
        return self.name.isdecimal()

    @property
    def is_text(self) -> bool:
        """Whether values are no whole numbers."""
        return not all(map(_WHOLE.fullmatch, filter(None, self.texts)))

    @property
    def repeats(self) -> bool:
        return self.distinct < self.filled

    @property
    def numbers_rows(self) -> bool:
        """Whether it looks like an id, and is the number of a row."""
        return self.counts_rows and words_of(self.name).split("_")[-1] == "id"

    @property
    def is_usable(self) -> bool:
        return not self.counts_rows and self.filled >= _LEAST_FILLED * len(self.texts)

    @property
    def order(self) -> tuple[int, bool, int]:
        """What comes first is taken."""
        place = TRIPS if self.rank is None else self.rank
        return int(place >= SURE), not self.repeats, place


def owner_in(
    names: Sequence[str], rows: Rows, places: Places, times_us: NDArray[np.int64]
) -> Owner:
    """The column of objects among those that are left.

    Args:
        names: of the columns that are neither time nor place.
        rows: some records.
        places: where they are: an object is near to where it was.
        times_us: when; empty: nobody knows.
    """
    candidates = [_candidate(name, rows) for name in names]
    called = [one for one in candidates if one.rank is not None]
    usable = [one for one in called if one.is_usable or not rows]
    if usable:
        best = min(usable, key=lambda one: one.order)
        others = [one for one in usable if one is not best and _fits_too(one, best)]
        numbers = [one for one in candidates if one.numbers_rows]
        is_short = len(times_us) > 0 and int(np.ptp(times_us)) <= _SNAPSHOT_US
        notes = _notes(best, others, numbers, is_short=is_short)
        return Owner(column=best.name, notes=notes)
    moving = _by_values(candidates, places, times_us)
    if moving:
        best = moving[0]
        taken = f"{best.name} is taken for the object; --object names another column"
        fit = "".join(f"; also fits: --object {one.name}" for one in moving[1:_TOLD])
        return Owner(
            column=best.name, notes=(f"{taken}{fit}", *_notes(best, (), called))
        )
    if called:
        best = min(called, key=lambda one: one.order)
        return Owner(column=best.name, notes=_notes(best, (), ()))
    return Owner()


def rounded_note(rows: Rows, name: str) -> list[str]:
    """That a spreadsheet has rounded ids, where they look so."""
    values = (row.get(name, "").strip() for row in rows)
    rounded = next((one for one in values if _ROUNDED.fullmatch(one)), None)
    if rounded is None:
        return []
    return [
        f"ids of {name} look rounded by a spreadsheet ({rounded}): devices may have been merged; "
        "export them anew as text"
    ]


def number_notes(rows: Rows, name: str) -> list[str]:
    """How ids are read that may be texts or numbers: zeros in front stay, the fraction of a whole number does not."""
    ids = set(filter(None, (row.get(name, "").strip() for row in rows)))
    notes = []
    padded = {one: one.lstrip("0") or "0" for one in ids if _PADDED.fullmatch(one)}
    if padded:
        one, plain = min(padded.items())
        both = "; both are there" if ids & set(padded.values()) else ""
        notes.append(
            f"ids of {name} are texts: {one} is another object than {plain}{both}"
        )
    floats = {one: whole[1] for one in ids if (whole := _FLOAT.fullmatch(one))}
    if floats:
        one, plain = min(floats.items())
        both = "; both are there" if ids & set(floats.values()) else ""
        notes.append(
            f"ids of {name} are whole numbers with a fraction, as exports add it: {one} is read as {plain}{both}"
        )
    return notes


def _candidate(name: str, rows: Rows) -> _Candidate:
    texts = tuple(row.get(name, "").strip() for row in rows)
    known = [one for one in texts if one]
    return _Candidate(
        name=name,
        rank=rank(name, OBJECTS),
        texts=texts,
        filled=len(known),
        distinct=len(set(known)),
        counts_rows=_counts_rows(known),
    )


def _counts_rows(texts: Sequence[str]) -> bool:
    """Whether values are the numbers of rows: whole numbers, nearly each one more than the one before."""
    if len(texts) < 3 or not all(map(_WHOLE.fullmatch, texts)):
        return False
    steps = np.diff(np.array([float(one) for one in texts]))
    return bool((steps == 1).mean() > 0.9)


def _fits_too(other: _Candidate, best: _Candidate) -> bool:
    """Whether people may have meant another column: it is named as surely, or its values come again."""
    is_sure = other.rank is not None and other.rank < SURE
    return other.rank != TRIPS and (is_sure or other.repeats or not best.repeats)


def _notes(
    best: _Candidate,
    others: Sequence[_Candidate],
    numbers: Sequence[_Candidate],
    *,
    is_short: bool = False,
) -> tuple[str, ...]:
    notes = []
    rows = [one.name for one in numbers if one.numbers_rows and one is not best]
    if rows:
        notes.append(f"{', '.join(rows)} numbers the rows, and is no object")
    if best.counts_rows:
        notes.append(f"{best.name} numbers the rows: each fix is an object of its own")
    elif best.filled > 1 and not best.repeats and not is_short:
        notes.append(f"no {best.name} comes twice in what was looked at")
    if others:
        fit = "; ".join(f"--object {one.name}" for one in others[:_TOLD])
        notes.append(f"{best.name} is taken for the object; also fits: {fit}")
    return tuple(notes)


def _by_values(
    candidates: Sequence[_Candidate], places: Places, times_us: NDArray[np.int64]
) -> list[_Candidate]:
    """Columns that may hold objects by their values alone, the likeliest first."""
    able = [one for one in candidates if one.is_usable and not _is_measured(one)]
    texts = [one for one in able if one.is_text]
    if len(texts) == 1 and (texts[0].distinct > 1 or len(able) == 1):
        return texts
    again = [one for one in able if one.repeats and one.distinct > 1]
    steps = {one.name: _step(one, places, times_us) for one in again}
    alone = _step(replace(again[0], texts=("",) * len(again[0].texts)), places, times_us) if again else 0.0  # fmt: skip
    again = [one for one in again if one.is_unnamed or one.is_text or steps[one.name] < alone]  # fmt: skip
    if not again:  # one device: a text that is always the same, else the only column
        again = [one for one in texts if one.repeats] or able[: len(able) == 1]
        again = [one for one in again if one.repeats]
    return sorted(again, key=lambda one: (steps.get(one.name, 0.0), one.distinct))


def _is_measured(one: _Candidate) -> bool:
    """Whether values are measurements: numbers with decimals, or called so."""
    words = set(words_of(one.name).split("_"))
    return bool(words & MEASURES) or any(map(_DECIMAL.fullmatch, one.texts))


def _step(one: _Candidate, places: Places, times_us: NDArray[np.int64]) -> float:
    """How far the places of an object are from one record to the next, if its column is this one: in steps of 10 %."""
    if len(places.x) != len(one.texts):
        return 0.0
    _, codes = np.unique(np.array(one.texts), return_inverse=True)
    when = times_us if len(times_us) == len(codes) else np.arange(len(codes))
    order = np.lexsort((when, codes))
    same = np.diff(codes[order]) == 0
    far = np.abs(np.diff(places.x[order])) + np.abs(np.diff(places.y[order]))
    far = far[same & np.isfinite(far)]
    mean = float(far.mean()) if len(far) else np.inf
    return (
        float(np.round(np.log(mean) / np.log(_SAME_STEP)))
        if 0 < mean < np.inf
        else mean
    )


def by_column(columns: Mapping[str, str | list[str]]) -> set[str]:
    """The columns that settings name."""
    return {
        one
        for value in columns.values()
        for one in ([value] if isinstance(value, str) else value)
    }
