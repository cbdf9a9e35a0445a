"""The columns that are no part of a fix, as attributes that a stream can keep: their names, types and units."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from st_common.config.columns import Columns
from st_common.detect.rows import Rows
from st_common.detect.words import words_of

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_COMMA = re.compile(r"^([-+]?\d+),(\d+)$")
_CODE = re.compile(r"0\d+|\d{16,}")
_FLAGS = frozenset({"true", "false"})
_ATTRIBUTE = re.compile(r"[A-Za-z]\w*", re.ASCII)
_NAMED_AT_MOST = 12
_PARTS = frozenset(each.name for each in fields(Columns))  # keys of `columns`
_UNITS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (unit, re.compile(rf"(.*_)?({words})"))
    for unit, words in (
        ("km/h", "km_?h|kmph|kph"),
        ("m/s", "mps|m_s|m_per_s|ms_1"),
        ("knots", "kn|kt|kts|knots?|sog(_kn)?"),
        ("mph", "mph|mi_h"),
        ("ft", "ft|feet"),
        (
            "m",
            "(altitude|alt|elevation|ele|height|depth|accuracy|distance|odometer|hdop|length|width|draught)_(m|meters?|metres?)",
        ),
        ("km", "(distance|odometer|mileage)_(km|kilometers?)"),
    )
)


@dataclass(frozen=True, slots=True)
class Other:
    """A column that can be an attribute: its name, and its type as settings call it."""

    column: str
    type: str


def others_in(
    names: Sequence[str], rows: Rows, *, has_commas: bool = False
) -> dict[str, Other]:
    """Columns that can be attributes, by their names there: `Ship type` is `ship_type`, unless one is called so."""
    plain = {name for name in names if _ATTRIBUTE.fullmatch(name)}
    taken = {name.casefold() for name in plain} | _PARTS
    others = {}
    for name in names:
        called = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        if name in plain:
            called = name
        elif called in taken or not _ATTRIBUTE.fullmatch(called):
            continue
        taken.add(called)
        others[called] = Other(name, type_of(name, rows, has_commas=has_commas))
    return others


def notes_of_others(others: Mapping[str, Other]) -> list[str]:
    """How columns that are no part of a fix, and are dropped, can be kept.

    Args:
        others: these columns, by their names as attributes.
    """
    shown = list(others.items())[:_NAMED_AT_MOST]
    plain = [f'{n} = "{one.type}"' for n, one in shown if n == one.column]
    called = [f"{one.column!r} as {n}" for n, one in shown if n != one.column]
    notes = []
    if plain:
        notes.append(
            "other columns are dropped; --attributes all keeps them, or below [streams.NAME], above its sources: "
            f"attributes = {{ {', '.join(plain)} }}"
        )
    if called:
        notes.append(f"--attributes all keeps {', '.join(called)}")
    return notes


def type_of(name: str, rows: Rows, *, has_commas: bool = False) -> str:
    """The type of a column's values, with its unit where the name says it; codes such as `007` are texts."""
    values = [row[name].strip() for row in rows if row.get(name, "").strip()]
    if has_commas:
        values = [_COMMA.sub(r"\1.\2", one) for one in values]
    if values and {one.lower() for one in values} <= _FLAGS:
        return "bool"
    if not values or not all(map(_NUMBER.fullmatch, values)):
        return "string"
    if any(map(_CODE.fullmatch, values)):
        return "string"
    called = words_of(name)
    unit = next((one for one, words in _UNITS if words.fullmatch(called)), "")
    return f"double {unit}".strip()
