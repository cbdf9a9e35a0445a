"""Zones by their names, and times as the records of a stream write them.

Nothing here imports NumPy: settings are read with it.
"""

import difflib
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

TIME_UNITS = ("s", "ms", "us", "ns", "excel", "excel1904", "iso", "rfc2822")
"""How streams write times, beside formats such as `%d/%m/%Y %H:%M:%S`."""
COUNTED_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""How many of each unit that counts from 1970 a second has."""
EXCEL_EPOCH_DAYS = {"excel": 25_569, "excel1904": 24_107}
"""The day 1970-01-01 as spreadsheets count: from 1900, and from 1904 as those of old Macs do."""

_WRITTEN = {"iso": "%Y-%m-%dT%H:%M:%SZ", "rfc2822": "%a, %d %b %Y %H:%M:%S +0000"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_DAY_US = 86_400_000_000
_FIXED = re.compile(r"([+-])([01]\d|2[0-3]):([0-5]\d)")
_NO_NAMES = frozenset({"localtime", "posixrules", "Factory", "leapseconds"})
NO_ZONE = (ValueError, OSError, KeyError)
"""What `zone_of` raises for a name that it does not know."""


def zone_of(name: str) -> tzinfo:
    """The zone of a name such as `Europe/Berlin`, or of a difference to UTC such as `+01:00`.

    Raises:
        ValueError, OSError, KeyError: there is none.
    """
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        away = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return timezone(-away if fixed[1] == "-" else away)
    if name in _NO_NAMES:
        raise ValueError(f"{name} is another zone on each machine")
    return ZoneInfo(name)


@cache
def letters_of(name: str) -> tuple[str, ...]:
    """The letters by which a zone is called in a year: `CET` and `CEST` of `Europe/Berlin`; none of a difference."""
    zone = zone_of(name)
    months = (datetime(2025, month, 1, tzinfo=zone) for month in range(1, 13))
    called = {one.tzname() or "" for one in months}
    return tuple(sorted(one for one in called if one.isalpha()))


def why_no_zone(name: object) -> str | None:
    """Why a value names no zone, with the nearest names; None: it does."""
    what = 'names no time zone, such as "Europe/Berlin" or "+01:00"'
    if not isinstance(name, str) or not name:
        return what
    try:
        zone_of(name)
    except NO_ZONE:
        near = zones_near(name)
        return (
            f"{what} (did you mean {' or '.join(map(repr, near))}?)" if near else what
        )
    return None


def zones_near(name: str) -> list[str]:
    """Names that somebody may have meant: in another case, with the same end, or much alike."""
    known = sorted(available_timezones() - _NO_NAMES)
    if not known:
        return []
    called = name.casefold().replace(" ", "_")
    by_end = [one for one in known if one.casefold().endswith(f"/{called}")]
    same = [one for one in known if one.casefold() == called]
    return (same or by_end or difflib.get_close_matches(name, known, n=1))[:2]


def form_of(time_unit: str) -> str | None:
    """The strptime format in which a unit writes times; None for one that counts."""
    if time_unit in COUNTED_PER_S or time_unit in EXCEL_EPOCH_DAYS:
        return None
    return _WRITTEN.get(time_unit, time_unit)


def written(at: datetime, time_unit: str, time_zone: str | None) -> int | float | str:
    """A time as the records of a stream have it.

    Args:
        at: the time, with its zone.
        time_unit: of the stream.
        time_zone: where its times without a zone stand; None: UTC.

    Returns:
        A number where the unit counts, whole where that is exact; else a text, to the second but for `iso`.
    """
    us = (at.astimezone(UTC) - _EPOCH) // _US
    if time_unit in COUNTED_PER_S:
        whole, rest = divmod(us * COUNTED_PER_S[time_unit], 1_000_000)
        return us / (1_000_000 // COUNTED_PER_S[time_unit]) if rest else whole
    local = at.astimezone(UTC if time_zone is None else zone_of(time_zone))
    if time_unit in EXCEL_EPOCH_DAYS:
        shown_us = (local.replace(tzinfo=UTC) - _EPOCH) // _US
        return EXCEL_EPOCH_DAYS[time_unit] + shown_us / _DAY_US
    if time_unit == "iso":
        return at.astimezone(UTC).isoformat()
    if time_unit == "rfc2822":
        return at.astimezone(UTC).strftime(_WRITTEN["rfc2822"])
    return local.strftime(time_unit)
