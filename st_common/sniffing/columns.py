"""Which columns hold the parts of a fix: by their names, and by their values where names do not say it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import MappingProxyType

from st_common.sniffing.rows import Rows
from st_common.stream_columns import Columns

_OBJECT = (
    r"object(_?id)?",
    "mmsi",
    r"hex|icao(24)?",
    r"vehicle(_?id)?|veh",
    r"taxi(_?id)?|cab|bus(_?id)?",
    r"device(_?id)?|unit(_?id)?|imei|uid|user",
    "ship|name|oid|id",
    r"trip(_?id)?",
)
_X = ("x", "lon|lng|long|longitude", "x_?coord|x_?coordinate|easting")
_Y = ("y", "lat|latitude", "y_?coord|y_?coordinate|northing")
_TIME = (
    r"event_?(ts|time)",
    r"t|ts|tst|tsi",
    r"time_?stamp|date_?time|base_?date_?time|#? ?timestamp",
    r"time|recorded(_?at)?|gps_?time|instant|when|unix_?time",
)
_DATE, _CLOCK = ("date|day",), ("time|clock|hour",)
_POINT = re.compile(r"\s*POINT\s*Z?\s*\(", re.IGNORECASE)
_SHAPE = re.compile(
    r"\s*(MULTI)?(POINT|LINESTRING|POLYGON|GEOMETRYCOLLECTION)\s*Z?\s*\(",
    re.IGNORECASE,
)
_FORMATS = (
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S",
    "%Y%m%d%H%M%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)
_NOW_S, _FIRST_S = 4_102_444_800, 31_536_000
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000}
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_ATTRIBUTE = re.compile(r"[A-Za-z]\w*", re.ASCII)
_NAMED_AT_MOST = 12
_PARTS = frozenset(each.name for each in fields(Columns))  # keys of `columns`


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
    """

    columns: dict[str, str | list[str]]
    time_unit: str | None
    crs: str
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    others: Mapping[str, "Other"]


@dataclass(frozen=True, slots=True)
class Other:
    """A column that can be an attribute: its name, and its type as settings call it."""

    column: str
    type: str


def guessed(
    names: Sequence[str],
    rows: Rows,
    *,
    owner: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
) -> Guess:
    """The columns of a fix among those that there are.

    Args:
        names: of all columns; a path such as `VP.veh` counts by its last part.
        rows: some records as texts.
        owner: the column of objects, where somebody has named it.
        named: other columns that somebody has named, by their keys: `event_ts`, `x`, `y`, `place`.
    """
    columns: dict[str, str | list[str]] = dict(named)
    notes: list[str] = []
    crs = "EPSG:4326"
    place = named.get("place")
    if place is None and not {"x", "y"} & named.keys():
        place = _take_geometry(columns, names, rows)
    if place is None:
        crs = _take_coordinates(columns, names, rows, notes)
    time_unit = _take_time(columns, names, rows, notes)
    known = {one for value in columns.values() for one in _listed(value)}
    left = [name for name in names if name not in known]
    owner = owner or _named(_OBJECT, left) or _only_text(left, rows, notes)
    if owner is not None:
        columns["object"] = owner
    others = _others([name for name in left if name != owner], rows)
    must = ("object",) if place is not None else ("object", "x", "y")
    return Guess(
        columns=columns,
        time_unit=time_unit,
        crs=crs,
        notes=tuple(notes),
        missing=tuple(key for key in must if key not in columns),
        others=others,
    )


def _take_geometry(
    columns: dict[str, str | list[str]], names: Sequence[str], rows: Rows
) -> str | None:
    """Takes a column that holds places or shapes whole; which one, or None."""
    for key, pattern in (("place", _POINT), ("shape", _SHAPE)):
        if (name := _holding(pattern, names, rows)) is not None:
            columns[key] = name
            return name
    return None


def _only_text(names: Sequence[str], rows: Rows, notes: list[str]) -> str | None:
    """The only column of texts that is left: these are the objects, where no name says so."""
    texts = [name for name in names if _type_of(name, rows) == "string"]
    if len(texts) != 1:
        return None
    notes.append(f"{texts[0]} is taken for the object; --object names another column")
    return texts[0]


def _others(names: Sequence[str], rows: Rows) -> dict[str, Other]:
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
        others[called] = Other(name, _type_of(name, rows))
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


def _type_of(name: str, rows: Rows) -> str:
    values = [row[name].strip() for row in rows if row.get(name, "").strip()]
    is_number = bool(values) and all(map(_NUMBER.fullmatch, values))
    return "double" if is_number else "string"


def _take_coordinates(
    columns: dict[str, str | list[str]],
    names: Sequence[str],
    rows: Rows,
    notes: list[str],
) -> str:
    """Takes x and y; the system that their values are of."""
    is_given = {"x", "y"} <= columns.keys()
    x = _given(columns, "x") or _named(_X, names)
    y = _given(columns, "y") or _named(_Y, names)
    if x is None or y is None:
        return "EPSG:4326"
    far_x, far_y = _far(rows, x), _far(rows, y)
    if far_x <= 90 < far_y <= 180 and not is_given:
        notes.append(f"{x} and {y} look exchanged: {y} reaches {far_y:g}")
        x, y = y, x
    columns |= {"x": x, "y": y}
    if max(far_x, far_y) <= 180:
        return "EPSG:4326"
    notes.append(
        f"{x} reaches {far_x:g} and {y} {far_y:g}: projected; put its EPSG number for planar"
    )
    return "planar"


def _take_time(
    columns: dict[str, str | list[str]],
    names: Sequence[str],
    rows: Rows,
    notes: list[str],
) -> str | None:
    """Takes the column of times, or those of date and time; the unit of its values."""
    name, date, clock = (_named(one, names) for one in (_TIME, _DATE, _CLOCK))
    if (given := _given(columns, "event_ts")) is not None:
        name, date = given, None
    if date is not None and clock is not None and date != clock:
        joined = [f"{row.get(date, '')} {row.get(clock, '')}" for row in rows]
        unit = _unit_of(joined)
        if unit is not None:
            columns["event_ts"] = [date, clock]
            return unit
    name = name or date
    if name is None:
        notes.append("no column of times: a record's time would be its arrival")
        return None
    columns["event_ts"] = name
    unit = _unit_of([row.get(name, "") for row in rows])
    if unit is None:
        notes.append(f"nothing says how the times of {name} are written: set time_unit")
    return unit


def _unit_of(texts: Sequence[str]) -> str | None:
    """How times are written; None when in no known way."""
    texts = [text.strip() for text in texts if text.strip()]
    if not texts:
        return None
    if all(_NUMBER.fullmatch(text) for text in texts):
        values = sorted(float(text) for text in texts)
        middle = values[len(values) // 2]
        for unit, times in _UNITS.items():
            if _FIRST_S * times <= middle <= _NOW_S * times:
                return unit
        return "s" if 0 <= middle < _FIRST_S else None
    if all(map(_is_iso, texts)):
        return "iso"
    return next((one for one in _FORMATS if all(_is_in(one, t) for t in texts)), None)


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_in(form: str, text: str) -> bool:
    try:
        datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def _named(patterns: Sequence[str], names: Sequence[str]) -> str | None:
    """The column whose last part is called so; the first pattern that fits one decides."""
    for word in patterns:
        for name in names:
            if re.fullmatch(word, name.rpartition(".")[2].strip(" #"), re.IGNORECASE):
                return name
    return None


def _holding(pattern: re.Pattern[str], names: Sequence[str], rows: Rows) -> str | None:
    """The first column whose values are all of a pattern, where it has any; None: there is none."""
    for name in names:
        values = [one for row in rows if (one := row.get(name))]
        if values and all(map(pattern.match, values)):
            return name
    return None


def _far(rows: Rows, name: str) -> float:
    """How far values of a column go from 0, but for one in ten, which may stand for no value; 0 without any."""
    values = (row.get(name, "") for row in rows)
    numbers = [abs(float(one)) for one in values if _NUMBER.fullmatch(one.strip())]
    known = sorted(one for one in numbers if math.isfinite(one))
    return known[len(known) * 9 // 10] if known else 0.0


def _given(columns: Mapping[str, str | list[str]], key: str) -> str | None:
    """The column that somebody has named for a part of a fix."""
    name = columns.get(key)
    return name if isinstance(name, str) else None


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
