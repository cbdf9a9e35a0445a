"""What values of a stream's table in `conf/streams.toml` may be: systems, times, encodings, columns, attributes."""

import re

from st_common.config.home import checked_name
from st_common.config.units import SHOWN, unit_of
from st_common.config.values import OFF, WrongError, one_of, takes
from st_common.crs import unit_of_crs
from st_common.formats.encodings import encoding_of
from st_common.formats.registry import FORMATS, is_known
from st_common.times import TIME_UNITS, why_no_zone

PLANAR = "planar"
"""The `crs` of a plane without a place on Earth."""

COORDINATES = ("degrees", "e5", "e6", "e7", "nmea")
"""How numbers of degrees are written."""
PLACE_ORDERS = ("lat lon", "lon lat")
"""In which order two numbers in one column stand."""
_ATTRIBUTE_TYPES = ("string", "double", "long", "bool")
_NUMBERS = ("double", "long")
_UNITS = ", ".join((SHOWN["speed"], SHOWN["space"], SHOWN["time"]))
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
        "too_late",
    }
)  # an attribute stands beside these in the table `positions`
LATE_COLUMNS = {"too_late": "bool"}
"""The column that each table gains with the first fixes of which it is known, with its type as attributes have it."""
FILTER_COLUMNS = {"filtered": "string", "filtered_value": "double"}
"""The columns that it has besides where fixes are filtered, with their types as attributes have them."""

_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=.`]")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DIRECTIVES = frozenset("YymdbBjHIMSfpzZTFRaA%")


@takes("one ASCII character", type="string", minLength=1, maxLength=1)
def character(value: object) -> str:
    """One ASCII character that ends no line."""
    if (
        not isinstance(value, str)
        or len(value) != 1
        or not value.isascii()
        or value in "\r\n\0"
    ):
        raise WrongError("must be one ASCII character")
    return value


@takes("keys with dots between them", type="string")
def key_path(value: object) -> str:
    """The path."""
    if not isinstance(value, str) or not all(value.split(".")):
        raise WrongError('must be a path of keys, as "data.vehicles"')
    return value


@takes("the names of two streams", type="array", minItems=2, maxItems=2)
def joined_streams(value: object) -> tuple[str, ...]:
    """Two streams, each perhaps with the segment from which on all its fixes count: `cars@12`."""
    if not isinstance(value, list) or len(value) != 2:
        raise WrongError('must be two streams: ["cars", "police"]')
    for one in value:
        name, at, segment = str(one).partition("@")
        checked_name(name, "stream")
        if at and not segment.isdecimal():
            raise WrongError(f"{one!r} is no stream, perhaps with @ and a segment")
    if len({one.partition("@")[0] for one in value}) < len(value):
        raise WrongError("must be two different streams")
    return tuple(value)


@takes("one ASCII character, or `off`", type="string")
def quoting(value: object) -> str:
    """What quotes; "" for nothing."""
    return "" if value in ("", OFF) else character(value)


@takes(
    "`EPSG:` and a number, or `planar`",
    type="string",
    pattern="^(?:[Ee][Pp][Ss][Gg]:[1-9][0-9]{3,5}|planar)$",
)
def system(value: object) -> str:
    """The system, with `EPSG` in capitals."""
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


@takes(
    f"{', '.join(f'`{name}`' for name in FORMATS)}, or one that a package brings",
    type="string",
)
def record_format(value: object) -> str:
    """A format of ours, or one that a package brings."""
    return str(value) if isinstance(value, str) and is_known(value) else _ours(value)


@takes(
    f"{', '.join(f'`{unit}`' for unit in TIME_UNITS)}, or a format such as `%d/%m/%Y %H:%M:%S`",
    type="string",
)
def unit_of_time(value: object) -> str:
    """The unit or the format."""
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
    "the name of a zone, such as `Europe/Berlin`, or a difference to UTC, such as `+01:00`",
    type="string",
)
def zone(value: object) -> str:
    """The zone."""
    wrong = why_no_zone(value)
    if wrong is not None:
        raise WrongError(wrong)
    return str(value)


@takes(
    "the name of an encoding, such as `windows-1252`, `latin-1` or `utf-16`",
    type="string",
)
def encoding_name(value: object) -> str:
    """The encoding as Python calls it."""
    known = encoding_of(value) if isinstance(value, str) else None
    if known is None:
        raise WrongError(
            'is no encoding that records can be in, such as "utf-8", "windows-1252", "latin-1" or "utf-16"'
        )
    return known


@takes(
    "a table of names and types", type="object", additionalProperties={"type": "string"}
)
def attribute_types(value: object) -> dict[str, tuple[str, str]]:
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
