"""Which columns hold the parts of a fix: by their values and by their names, and what else would fit."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from st_common.detect.attributes import Other, others_in
from st_common.detect.owners import (
    Owner,
    by_column,
    number_notes,
    owner_in,
    rounded_note,
)
from st_common.detect.places import Places, places_in
from st_common.detect.rows import Rows
from st_common.detect.when import of_both, when_in
from st_common.detect.words import words_of

_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
_NO, _YES = frozenset({"false", "0"}), frozenset({"true", "1"})
_OUTLIERS = re.compile(r"visible|valid|is_valid|gps_valid|valid_fix|fix_valid")
_LEAST_UNITS = 2  # columns in which a line under the header is odd


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Which column is which, and what its values are.

    Attributes:
        columns: by key of the settings' `columns`.
        time_unit: of the times; None: nobody knows, or there are none.
        crs: "EPSG:4326", or "planar" where numbers are no degrees.
        notes: what people should look at.
        missing: keys for which no column was seen.
        others: the columns that are no part of a fix, by their names as attributes.
        settings: other keys of the stream that follow.
        is_local: whether times name no zone.
    """

    columns: Mapping[str, str | list[str] | dict[str, str]]
    time_unit: str | None
    crs: str
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    others: Mapping[str, Other]
    settings: Mapping[str, str] = field(default_factory=dict)
    is_local: bool = False


def guessed(
    names: Sequence[str],
    rows: Rows,
    *,
    owner: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
    has_places: bool = False,
) -> Guess:
    """The columns of a fix among those that there are.

    Args:
        names: of all columns; a path such as `VP.veh` counts by its last part.
        rows: some records as texts.
        owner: the column of objects, where somebody has named it.
        named: other columns that somebody has named, by their keys: `event_ts`, `x`, `y`, `place`.
        has_places: whether places are known, so that none of the columns holds any.

    Raises:
        ConfigError: a record has two places.
    """
    rows, units = _without_units(names, rows)
    places = Places() if has_places else places_in(names, rows, named)
    spoken_for = by_column(places.columns) | ({owner} if owner else set())
    rest = [name for name in names if name not in spoken_for]
    is_comma = places.settings.get("decimal") == ","
    when = when_in(rest, rows, named.get("event_ts"), has_commas=is_comma)
    columns: dict[str, str | list[str]] = {**places.columns, **of_both(when.column)}
    left = [name for name in names if name not in by_column(columns)]
    found = Owner(column=owner) if owner else owner_in(left, rows, places, when.us)
    notes = [*units, *places.notes, *when.notes, *found.notes]
    if found.column is not None:
        columns["object"] = found.column
        notes += rounded_note(rows, found.column)
        notes += number_notes(rows, found.column)
    left = [name for name in left if name != found.column]
    notes += _outliers(left, rows)
    is_whole = has_places or bool({"place", "shape"} & columns.keys())
    must = ("object",) if is_whole else ("object", "x", "y")
    return Guess(
        columns=columns,
        time_unit=when.unit,
        crs=places.crs,
        notes=tuple(notes),
        missing=tuple(key for key in must if key not in columns),
        others=others_in(left, rows, has_commas=is_comma),
        settings=places.settings,
        is_local=when.is_local,
    )


def _without_units(names: Sequence[str], rows: Rows) -> tuple[Rows, list[str]]:
    """The records without a line of units under the header, and that it is told."""
    if len(rows) < _LEAST_UNITS:
        return rows, []
    first, *others = rows
    odd = 0
    for name in names:
        values = [one for row in others if (one := row.get(name, "").strip())]
        is_number = bool(values) and all(map(_NUMBER.fullmatch, values))
        if is_number and _NUMBER.fullmatch(first.get(name, "").strip()):
            return rows, []
        odd += is_number and bool(first.get(name, "").strip())
    if odd < _LEAST_UNITS:
        return rows, []
    shown = ", ".join(filter(None, (first.get(name, "") for name in names)))[:60]
    return others, [f"the line under the header is no record, units maybe: {shown}"]


def _outliers(names: Sequence[str], rows: Rows) -> list[str]:
    """That some records are marked as wrong by whoever wrote them."""
    notes = []
    for name in names:
        if not _OUTLIERS.fullmatch(words_of(name)):
            continue
        values = [row.get(name, "").strip().lower() for row in rows]
        wrong = sum(value in _NO for value in values)
        if not wrong and values and set(values) <= _YES:
            notes.append(
                f"{name} says which records are no outliers; "
                f"where = '{_quoted(name)}' leaves out those that are, of which none was looked at"
            )
        if wrong:
            notes.append(
                f"{wrong:,} records have {name} = false: outliers, as their owner says; "
                f"where = '{_quoted(name)}' leaves them out"
            )
    return notes


def _quoted(name: str) -> str:
    """A column as it stands in a condition."""
    return name if name.isidentifier() and name.isascii() else f'"{name}"'
