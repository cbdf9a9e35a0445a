"""Which days of a stream were processed again, and what each had seen then: what came since makes it due once more.

    streams/S/batch/processed.json      {"days": {"2024-05-02": {"fixes": 904, "of_day": 312, ..}}}

A day is noted behind its tables: where a run ends in between, or two of them at once lose a note, the day is due again,
and comes to the same rows. Trials are not noted.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from st_common.batch.borders import FOLDER
from st_common.config.home import Home
from st_common.operations.records import read_record, write_record

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


def processed_days(home: Home, stream: str) -> dict[date, Processed]:
    """The days that were processed, in their order; none where the record is not there, or was damaged.

    Args:
        home: the home folder.
        stream: the name of the stream.
    """
    days = (read_record(_path(home, stream)) or {}).get("days", {})
    return {date.fromisoformat(day): Processed(**days[day]) for day in sorted(days)}


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
    _write(home, stream, processed_days(home, stream) | {day: processed})


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


def forget_purged(home: Home, stream: str, fixes_of_days: Mapping[date, int]) -> int:
    """Takes the days out of the record of which fixes were purged: they can be processed no more.

    Args:
        home: the home folder.
        stream: the name of the stream.
        fixes_of_days: how many fixes each day has now.

    Returns:
        How many.
    """
    days = processed_days(home, stream)
    purged = last_purged(days, fixes_of_days)
    if purged is None:
        return 0
    kept = {day: one for day, one in days.items() if day > purged}
    _write(home, stream, kept)
    return len(days) - len(kept)


def _write(home: Home, stream: str, days: Mapping[date, Processed]) -> None:
    record = {day.isoformat(): asdict(days[day]) for day in sorted(days)}
    write_record(_path(home, stream), {"days": record})


def _path(home: Home, stream: str) -> Path:
    return home.stream(stream) / FOLDER / FILE
