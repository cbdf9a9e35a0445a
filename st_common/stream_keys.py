"""The keys of a stream's table in `conf/streams.toml`, and what each of them may be."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from st_common.crs import unit_of_crs
from st_common.formats.encodings import encoding_of
from st_common.formats.format_settings import Column
from st_common.formats.registry import FORMATS, is_known
from st_common.home import checked_name
from st_common.spark_keys import SPARK_KEYS
from st_common.times import TIME_UNITS, why_no_zone
from st_common.toml_values import (
    OFF,
    Check,
    WrongError,
    flag,
    number,
    one_of,
    taken_by,
    takes,
    text,
    whole,
    words,
)
from st_common.units import SHOWN, unit_of

ORIGINS = ("file name", "source")
"""From what the object of records may follow that say none."""

PLANAR = "planar"
"""The `crs` of a plane without a place on Earth."""

COORDINATES = ("degrees", "e5", "e6", "e7", "nmea")
"""How numbers of degrees are written."""
PLACE_ORDERS = ("lat lon", "lon lat")
"""In which order two numbers in one column stand."""
_ENGINES = ("spark", "local")
_ATTRIBUTE_TYPES = ("string", "double", "long", "bool")
_NUMBERS = ("double", "long")
_UNITS = ", ".join((SHOWN["speed"], SHOWN["space"], SHOWN["time"]))
_MAX_SHARDS = 256
_MOST_DAYS = 36_500
_MOST_READINGS = 1_000_000
_SIDES = (2, 4, 6, 8)  # of boxes of one to four dimensions
_MOST_SKIPPED = 10_000
_POSITION_COLUMNS = frozenset(
    {
        "event_date",
        "region_id",
        "region_version",
        "segment",
        "row",
        "event_ts",
        "x",
        "y",
        "object",
        "gone",
    }
)  # an attribute stands beside these in the table `positions`
FILTER_COLUMNS = {"filtered": "string", "filtered_value": "double"}
"""The columns that it has besides where fixes are filtered, with their types as attributes have them."""

_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=.`]")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DIRECTIVES = frozenset("YymdbBjHIMSfpzZTFRaA%")


@takes("the name or the number of a column")
def _column(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise WrongError("must be the name or the number of a column")
    return value


@takes("a column, or several in a list")
def _columns(value: object) -> Column:
    """One column, or several in a list; a list of one is that one."""
    if not isinstance(value, list):
        return _column(value)
    names = tuple(_column(name) for name in value)
    if not names or len(set(names)) < len(names):
        raise WrongError("must be columns, each once")
    return names if len(names) > 1 else names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The object of records that say none.

    Attributes:
        value: its id; None: it follows from where they come from.
        origin: from what: `file name`, without its ending, or `source`.
    """

    value: str | None = None
    origin: str | None = None


@takes(
    'a column, several in a list, `{ value = "ID" }`, or `{ from = "file name" }` or `"source"`'
)
def _object(value: object) -> Column | Owner:
    """The columns of ids, or whose records are that have none."""
    if not isinstance(value, dict):
        return _columns(value)
    if value.keys() == {"from"} and value["from"] in ORIGINS:
        return Owner(origin=value["from"])
    text_ = value.get("value")
    if value.keys() != {"value"} or not isinstance(text_, str) or not text_.strip():
        raise WrongError(
            'must be { value = "ID" }, { from = "file name" } or { from = "source" }'
        )
    return Owner(value=text_.strip())


@takes("the columns of 1 to 4 low and high sides, in a list")
def _box(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) not in _SIDES:
        raise WrongError('must be columns of sides: ["lo1", "hi1", "lo2", "hi2"]')
    names = tuple(_column(name) for name in value)
    if len(set(names)) < len(names):
        raise WrongError("must be columns, each once")
    return names


@takes("one ASCII character")
def _character(value: object) -> str:
    if (
        not isinstance(value, str)
        or len(value) != 1
        or not value.isascii()
        or value in "\r\n\0"
    ):
        raise WrongError("must be one ASCII character")
    return value


@takes("keys with dots between them")
def _path(value: object) -> str:
    if not isinstance(value, str) or not all(value.split(".")):
        raise WrongError('must be a path of keys, as "data.vehicles"')
    return value


@takes("one ASCII character, or `off`")
def _quote(value: object) -> str:
    return "" if value in ("", OFF) else _character(value)


@takes("`EPSG:` and a number, or `planar`")
def _crs(value: object) -> str:
    if value == PLANAR:
        return PLANAR
    crs = (
        re.fullmatch(r"(?i:epsg):([1-9]\d{3,5})", value)
        if isinstance(value, str)
        else None
    )
    if crs is None:
        raise WrongError('must be "EPSG:" and a number, or "planar"')
    try:
        unit_of_crs(int(crs[1]))
    except ValueError:
        raise WrongError("is no geographic or projected system that is known") from None
    return f"EPSG:{crs[1]}"


_ours = one_of(*FORMATS)


@takes(f"{taken_by(_ours)}, or one that a package brings")
def _format(value: object) -> str:
    """A format of ours, or one that a package brings."""
    return str(value) if isinstance(value, str) and is_known(value) else _ours(value)


@takes(
    f"{', '.join(f'`{unit}`' for unit in TIME_UNITS)}, or a format such as `%d/%m/%Y %H:%M:%S`"
)
def _time_unit(value: object) -> str:
    if not isinstance(value, str) or (value not in TIME_UNITS and "%" not in value):
        raise WrongError(
            f"is none of {', '.join(TIME_UNITS)}, nor a format such as %d/%m/%Y %H:%M:%S"
        )
    if value not in TIME_UNITS:
        used = set(_DIRECTIVE.findall(value))
        if used - _DIRECTIVES:
            raise WrongError(f"has the unknown directive %{min(used - _DIRECTIVES)}")
        day = used & set("mbB") and "d" in used
        if not ("F" in used or (used & set("Yy") and (day or "j" in used))):
            raise WrongError("names no whole date (year, month, day)")
    return value


@takes(
    "the name of a zone, such as `Europe/Berlin`, or a difference to UTC, such as `+01:00`"
)
def _time_zone(value: object) -> str:
    wrong = why_no_zone(value)
    if wrong is not None:
        raise WrongError(wrong)
    return str(value)


@takes("the name of an encoding, such as `windows-1252`, `latin-1` or `utf-16`")
def _encoding(value: object) -> str:
    known = encoding_of(value) if isinstance(value, str) else None
    if known is None:
        raise WrongError(
            'is no encoding that records can be in, such as "utf-8", "windows-1252", "latin-1" or "utf-16"'
        )
    return known


@takes("a table of names and types")
def _attributes(value: object) -> dict[str, tuple[str, str]]:
    """The type and the unit ("" without one) of each attribute."""
    if not isinstance(value, dict):
        raise WrongError("must be a table of names and types")
    # To Delta and Spark names that differ in case alone are one column.
    seen = {column.lower() for column in _POSITION_COLUMNS}
    for name in value:
        if not can_be_attribute(name):
            raise WrongError(f"{name!r} cannot be a table's column")
        if name.lower() in seen:
            raise WrongError(
                f"{name!r} stands there already, or is a column of every table of positions"
            )
        seen.add(name.lower())
    return {name: _type_and_unit(name, declared) for name, declared in value.items()}


def can_be_attribute(name: str) -> bool:
    """Whether an attribute may be called so: it is a column of tables."""
    return bool(name) and not _NOT_IN_DELTA.search(name)


def is_of_fixes(name: str, *, filtered: bool) -> bool:
    """Whether a column of a fix, or of the table of fixes, is called so, in whatever case: no attribute may be.

    Args:
        name: of the column.
        filtered: whether the stream filters fixes, so that the table has columns for it.
    """
    of_filter = FILTER_COLUMNS.keys() if filtered else ()
    return name.lower() in _POSITION_COLUMNS or name.lower() in of_filter


def _type_and_unit(name: str, declared: object) -> tuple[str, str]:
    kind, _, unit = (
        declared.partition(" ") if isinstance(declared, str) else ("", "", "")
    )
    if kind not in _ATTRIBUTE_TYPES:
        raise WrongError(f"{name!r} is none of {', '.join(_ATTRIBUTE_TYPES)}")
    if unit and (kind not in _NUMBERS or unit_of(unit) is None):
        raise WrongError(
            f"{name!r} = {declared!r}: a double or a long may have a unit, such as {_UNITS}"
        )
    return kind, unit


@takes("a name")
def _group(value: object) -> str:
    if not isinstance(value, str):
        raise WrongError("must be a name")
    return checked_name(value, "group")


@takes("a table")
def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongError("must be a table")
    return value


COLUMN_KEYS: dict[str, Check] = {
    "object": _object,
    "event_ts": _columns,
    "age": _column,
    "x": _columns,
    "y": _columns,
    "place": _column,
    "box": _box,
    "shape": _column,
    "gone": _column,
    "gone_values": words,
}
"""What each key of `columns` may be; others are the names of attributes."""


def column_checks(attributes: Iterable[str]) -> dict[str, Check]:
    """What each key of `columns` may be, in a stream with these attributes: also the column of one of them."""
    return {**dict.fromkeys(attributes, _column), **COLUMN_KEYS}


FILTER_KEYS: dict[str, Check] = {
    "accuracy": text,
    "max_accuracy_m": number(least=0.0, above=True, off=True),
    "beyond_accuracy": flag,
    "min_distance_m": number(least=0.0, above=True, off=True),
    "max_speed_mps": number(least=0.0, above=True, off=True),
    "accept_after_s": number(least=0.0, above=True, off=True),
}
"""What each key of `position_filter` may be."""

STREAM_KEYS: dict[str, Check] = {
    "format": _format,
    "columns": _table,
    "crs": _crs,
    "query": text,
    "time_unit": _time_unit,
    "time_zone": _time_zone,
    "attributes": _attributes,
    "encoding": _encoding,
    "decimal": one_of(".", ","),
    "coordinates": one_of(*COORDINATES),
    "place_order": one_of(*PLACE_ORDERS),
    "header": flag,
    "delimiter": _character,
    "quote": _quote,
    "records": _path,
    "skip_lines": whole(least=0, most=_MOST_SKIPPED),
    "nulls": words,
    "where": text,
    "drop_null_island": flag,
    "position_filter": _table,
    "lateness_s": number(least=0.0),
    "silence_s": number(least=0.0, above=True, off=True),
    "max_ahead_s": number(least=0.0, off=True),
    "max_jump_s": number(least=0.0, above=True, off=True),
    "max_speed_mps": number(least=0.0, above=True, off=True),
    "moving": flag,
    "tick_s": number(least=0.000_001),
    "cache_share": number(least=0.0),
    "cache_refills": flag,
    "window_rows": whole(least=2, most=_MOST_READINGS),
    "latest_every": whole(most=_MOST_READINGS),
    "latest_flush_s": number(least=1.0),
    "snapshot_s": number(least=1.0, off=True),
    "shards": whole(most=_MAX_SHARDS),
    "group": _group,
    "running": flag,
    "engine": one_of(*_ENGINES),
    "codec": one_of("packet", "raw"),
    "raw_days": number(least=0.0, off=True),
    "log_days": number(least=1.0, off=True),
    "positions_days": whole(least=0, most=_MOST_DAYS),
    "changes_days": whole(least=0, most=_MOST_DAYS),
    "spark": _table,
    "sources": _table,
}
"""What each key of a stream may be; all keys have defaults but `format` and `columns`."""


def keys_below(name: str) -> dict[str, Collection[str]]:
    """The keys of tables of a stream that are taken for its own, by the head of the table that they belong to."""
    return {
        f"[streams.{name}.spark]": SPARK_KEYS,
        f"[streams.{name}.position_filter]": FILTER_KEYS,
    }
