"""Which days of a stream were processed again, and what each had seen then: what came since makes it due once more.

    streams/S/batch/processed.json      {"days": {"2024-05-02": {"fixes": 904, "of_day": 312, ..}},
                                         "base": {"day": "2024-05-02", "fixes": 592, "purged": 592}}

A day is noted behind its tables: where a run ends in between, or two of them at once lose a note, the day is due again,
and comes to the same rows. Trials are not noted.

Fixes that come for days whose others were purged change nothing any more, so from the base on they are not counted.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from st_common import tables
from st_common.batch.ordered import fixes_of_days
from st_common.config.home import Home
from st_common.operations.records import read_record, write_record

FOLDER = "batch"
"""Of a stream's folder: what batch runs keep."""
FILE = "processed.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """What a day had seen when its visits were written.

    Attributes:
        fixes: how many fixes there were before its end, those of all days before it too.
        of_day: how many of them were its own.
        settings: a digest of all settings that decide answers.
        open_from: the segment from which on statements of the log may still be of the day; None: none can, for the log
            had a fix or a clock row behind the day already. Only an end mark closes a day without one.
    """

    fixes: int
    of_day: int
    settings: str
    open_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """From where on fixes are counted, once those of days before were purged.

    Attributes:
        day: the first day of which all are there.
        fixes: how many were seen before it.
        purged: how many had been purged when that was noted.
    """

    day: date
    fixes: int
    purged: int


def processed_days(home: Home, stream: str) -> dict[date, Processed]:
    """The days that were processed, in their order; none where the record is not there, or was damaged.

    Args:
        home: the home folder.
        stream: the name of the stream.
    """
    return _read(home, stream)[0]


def note_processed(home: Home, stream: str, day: date, processed: Processed) -> None:
    """Notes that the visits of a day were written.

    Args:
        home: the home folder.
        stream: the name of the stream.
        day: the day.
        processed: what it had seen.

    Raises:
        StorageError: the disk is full, or refuses.
    """
    days, base = _read(home, stream)
    _write(home, stream, days | {day: processed}, base)


def fixes_before(home: Home, stream: str, day: date, counts: Mapping[date, int]) -> int:
    """How many fixes were archived of the days before one, those that were purged since too.

    All that is purged is taken for older than the day: of one that is not, the number fits none that was kept. Fixes
    that came late for days that are purged are left out, as soon as maintenance has seen to it.

    Args:
        home: the home folder.
        stream: the name of the stream.
        day: the day.
        counts: how many fixes each day has now, see `fixes_of_days`.
    """
    _, base = _read(home, stream)
    purged = tables.purged_rows(home.table("positions", stream))
    if base is None or day < base.day:
        return purged + sum(count for one, count in counts.items() if one < day)
    kept = sum(count for one, count in counts.items() if base.day <= one < day)
    return base.fixes + purged - base.purged + kept


def last_purged(
    processed: Mapping[date, Processed], fixes_of_days: Mapping[date, int]
) -> date | None:
    """The last of the processed days that has fewer fixes than it had: they were purged, and those of the days before.

    Args:
        processed: by day.
        fixes_of_days: how many fixes each day has now.

    Returns:
        None where all days have all their fixes.
    """
    purged = (
        day for day, one in processed.items() if fixes_of_days.get(day, 0) < one.of_day
    )
    return max(purged, default=None)


def forget_purged(home: Home, stream: str) -> int:
    """Takes the days out of the record of which fixes were purged: they can be processed no more.

    Args:
        home: the home folder.
        stream: the name of the stream.

    Returns:
        How many.
    """
    purged = tables.purged_rows(home.table("positions", stream))
    days, base = _read(home, stream)
    if not days or purged == (0 if base is None else base.purged):
        return 0
    last = last_purged(days, fixes_of_days(home, stream))
    if last is None and base is None:
        return 0
    kept = {day: one for day, one in days.items() if last is None or day > last}
    first = min(kept, default=None)
    if first is None:
        base = None
    else:
        seen = kept[first].fixes - kept[first].of_day
        base = _Base(day=first, fixes=seen, purged=purged)
    _write(home, stream, kept, base)
    return len(days) - len(kept)


def _read(home: Home, stream: str) -> tuple[dict[date, Processed], _Base | None]:
    record = read_record(_path(home, stream)) or {}
    days, base = record.get("days", {}), record.get("base")
    return (
        {date.fromisoformat(day): Processed(**days[day]) for day in sorted(days)},
        base and _Base(**(base | {"day": date.fromisoformat(base["day"])})),
    )


def _write(
    home: Home, stream: str, days: Mapping[date, Processed], base: _Base | None
) -> None:
    noted = {day.isoformat(): asdict(days[day]) for day in sorted(days)}
    since = base and asdict(base) | {"day": base.day.isoformat()}
    write_record(_path(home, stream), {"days": noted, "base": since})


def _path(home: Home, stream: str) -> Path:
    return home.stream(stream) / FOLDER / FILE
