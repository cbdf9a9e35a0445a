"""How the times of a column are written: in all ways in which the decoder reads them, the likeliest first.

What is no date between 1990 and tomorrow is no likely reading. Where two readings fit (1 February or 2 January), the
one whose times are closer together is taken, and the other one is told.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.decode.instants import instants
from st_common.replay.odd_dates import EARLIEST_US

_DAY_US = 86_400_000_000
_COUNTED = ("s", "ms", "us", "ns")
_MOST = 1_000  # texts that are tried
_MOST_ODD = 5  # one of so many may be no time
_MONTH = r"[A-Za-z]{3,9}"
_DATES = (
    (r"(\d{4})(?P<s>[-/. ])(\d{1,2})(?P=s)(\d{1,2})", ("%Y{s}%m{s}%d",)),
    (
        r"(\d{1,2})(?P<s>[-/. ])(\d{1,2})(?P=s)(\d{4})",
        ("%d{s}%m{s}%Y", "%m{s}%d{s}%Y"),
    ),
    (
        r"(\d{2})(?P<s>[-/. ])(\d{1,2})(?P=s)(\d{2})(?!\d)",
        ("%d{s}%m{s}%y", "%m{s}%d{s}%y", "%y{s}%m{s}%d"),
    ),
    (
        r"(\d)(?P<s>[-/. ])(\d{1,2})(?P=s)(\d{2})(?!\d)",
        ("%d{s}%m{s}%y", "%m{s}%d{s}%y"),
    ),
    (rf"(\d{{1,2}})(?P<s>[- /]){_MONTH}(?P=s)(\d{{4}})", ("%d{s}%b{s}%Y",)),
    (rf"(\d{{1,2}})(?P<s>[- /]){_MONTH}(?P=s)(\d{{2}})(?!\d)", ("%d{s}%b{s}%y",)),
    (rf"{_MONTH} (\d{{1,2}})(?P<s>,? )(\d{{4}})", ("%b %d{s}%Y",)),
    (r"\d{8}(?=\D|$|\d{4})", ("%Y%m%d", "%d%m%Y", "%m%d%Y")),
    (r"\d{6}(?=\D|$|\d{6})", ("%y%m%d", "%d%m%y")),
)
_CLOCKS = (
    (r"\d{1,2}:\d{2}:\d{2}([.,]\d+)?(?P<p> ?[AaPp][Mm])", "%I:%M:%S"),
    (r"\d{1,2}:\d{2}(?P<p> ?[AaPp][Mm])", "%I:%M"),
    (r"\d{1,2}:\d{2}:\d{2}([.,]\d+)?", "%H:%M:%S"),
    (r"\d{1,2}:\d{2}(?![:\d])", "%H:%M"),
    (r"\d{1,2}\.\d{2}\.\d{2}([.,]\d+)?", "%H.%M.%S"),
    (r"\d{1,2}\.\d{2}(?!\.)", "%H.%M"),
    (r"\d{6}([.,]\d+)?", "%H%M%S"),
    (r"\d{4}(?!\d)", "%H%M"),
)
_ZONES = (
    (r"( ?)[+-]\d{2}:?\d{2} [A-Z]{3,4}$", " %z %Z"),
    (r" ([+-]\d{2}:?\d{2})$", " %z"),
    (r"([+-]\d{2}:?\d{2}|Z)$", "%z"),
    (r" (UTC|GMT|Z)$", " %Z"),
    (r"$", ""),
)
_CTIME = re.compile(
    rf"{_MONTH} {_MONTH} +\d{{1,2}} \d{{1,2}}:\d{{2}}:\d{{2}}( [A-Z]{{3}})? \d{{4}}"
)
_WEEKDAY = re.compile(
    rf"(?i:mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(?:day)?(?P<s>,?) (?=\d|{_MONTH} \d)"
)
_BETWEEN = re.compile(r"[ T,_;|-]*")
_TEXTS = ("iso", "rfc2822")
_HAS_ZONE = re.compile(
    r"GMT[+-]\d{4} \(.*\)$|:\d{2}.*(Z|[+-]\d{2}(:?\d{2})?|UTC|GMT)$|[+-]\d{4} [A-Z]{3,4}$|\d [A-Z]{3} \d{4}$"
)
_CLOCK = re.compile(r"\d{1,2}[:.h]\d{2}([:.]\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?")
_IS_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One way to read the times of a column.

    Attributes:
        unit: as the key `time_unit` has it.
        us: the instants (us UTC), of the texts that hold one.
        is_likely: whether most of them lie between 1990 and tomorrow.
        has_zone: whether the texts say in which zone they are, or count since 1970.
    """

    unit: str
    us: Ints
    is_likely: bool
    has_zone: bool

    @property
    def first(self) -> str:
        """The first instant, for people."""
        return str(self.us[0].astype("datetime64[us]").astype("datetime64[s]"))


def readings_of(texts: Sequence[str]) -> list[Reading]:
    """All ways to read some texts as times, the best first; none where they are none.

    Args:
        texts: of a column, or of date and time with a blank between.
    """
    known = [text for text in texts if text.strip()][:_MOST]
    if not known or not any(any(map(str.isdigit, text)) for text in known):
        return []
    tomorrow_us = time.time_ns() // 1000 + _DAY_US
    read = [
        one
        for unit in _units_for(known)
        if (one := _read(known, unit, tomorrow_us)) is not None
    ]
    most = max((len(one.us) for one in read), default=0)
    likely = [one for one in read if one.is_likely and len(one.us) == most]
    if likely:
        return sorted(_different(likely), key=_span)
    counted = [one for one in read if one.unit in ("s", *_TEXTS) or "%" in one.unit]
    return _different(counted)


def is_clock(texts: Sequence[str]) -> bool:
    """Whether texts are times of a day alone."""
    known = [text.strip() for text in texts if text.strip()]
    return bool(known) and all(map(_CLOCK.fullmatch, known))


def _units_for(texts: Sequence[str]) -> list[str]:
    """The units in which the first texts may be written."""
    few = [text.strip() for text in texts[:3]]
    units = dict.fromkeys(unit for text in few for unit in _candidates(text))
    return list(units)


def _candidates(text: str) -> Iterator[str]:
    if _IS_NUMBER.fullmatch(text):
        yield from (*_COUNTED, "excel", "excel1904")
    else:
        yield from _TEXTS
    if (ctime := _CTIME.fullmatch(text)) is not None:
        yield f"%a %b %d %H:%M:%S{' %Z' if ctime[1] else ''} %Y"
    weekday = _WEEKDAY.match(text)
    before = f"%a{weekday['s']} " if weekday else ""
    rest = text[weekday.end() :] if weekday else text
    for pattern, dates in _DATES:
        if (date := re.match(pattern, rest)) is not None:
            between = date.groupdict().get("s") or ""
            behind = list(_behind(rest[date.end() :]))
            for one in dates:
                yield from (f"{before}{one.format(s=between)}{end}" for end in behind)


def _behind(rest: str) -> Iterator[str]:
    """The ways to read what stands behind a date: nothing, or a clock and maybe a zone."""
    if not rest:
        yield ""
        return
    gap = _BETWEEN.match(rest)
    between = gap[0] if gap else ""
    for pattern, clock in _CLOCKS:
        if (read := re.match(pattern, rest[len(between) :])) is None:
            continue
        noon = read.groupdict().get("p")
        shown = clock if noon is None else f"{clock}{' ' if ' ' in noon else ''}%p"
        zone = rest[len(between) + read.end() :]
        for ending, form in _ZONES:
            if re.match(ending, zone):
                yield f"{between}{shown}{form}"
                break


def _instants(texts: Sequence[str], unit: str) -> tuple[Ints, NDArray[np.bool_]]:
    """The instants, and which texts have one; of a unit that the decoder does not know none has."""
    try:
        parsed = instants(pa.array(texts, pa.string()), unit)
    except (KeyError, ValueError, pa.ArrowException):
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), bool)
    return np.asarray(parsed.values, np.int64), ~(parsed.missing | parsed.bad)


def _read(texts: Sequence[str], unit: str, tomorrow_us: int) -> Reading | None:
    us, good = _instants(texts, unit)
    if _MOST_ODD * int((~good).sum()) > len(texts):
        return None
    us = us[good]
    likely = (us >= EARLIEST_US) & (us <= tomorrow_us)
    counts = unit in _COUNTED
    return Reading(
        unit=unit,
        us=us,
        is_likely=bool(2 * likely.sum() > len(us)),
        has_zone=counts or bool(_HAS_ZONE.search(texts[0].strip())),
    )


def _different(readings: Sequence[Reading]) -> list[Reading]:
    """Those that give other instants than the ones in front of them."""
    kept: list[Reading] = []
    for one in readings:
        if not any(np.array_equal(one.us, other.us) for other in kept):
            kept.append(one)
    return kept


def _span(reading: Reading) -> int:
    """How far the times are apart: of two readings the right one runs on, as a rule."""
    return int(np.abs(np.diff(reading.us)).sum()) if len(reading.us) else 0
