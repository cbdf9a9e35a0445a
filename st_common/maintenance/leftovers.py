"""What lies in a home beside its tables and logs, and is of no use any more.

streams/S/seeds/9f86d0..        what a query knew when it was registered, if no row names it behind the place from which
                                anything is judged again, and it is a day old: a seed comes before its row
streams/S/batch/2024-05-02.*    what batch runs knew on a day whose fixes are purged
streams/S/batch/processed.json  of the days that were processed those whose fixes are purged
streams/S/batch/T/              the same of a trial whose table is gone
lineage/2024-05-02.jsonl        events older than `keep_days`
alerts.jsonl                    lines older than `alerts_days`
reports/quality/2024-05-02.*    pages and results older than `reports_days`, and Data Docs
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from functools import partial
from pathlib import Path

from st_common import tables
from st_common.batch.processed import FOLDER, forget_purged
from st_common.config.home import Home
from st_common.config.operations import KeptDays, operations_of
from st_common.controls.reading import chosen
from st_common.controls.rows import Register
from st_common.errors import TableError
from st_common.lineage.sending import delete_old_files
from st_common.lineage.settings import lineage_settings
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.seeds import seeds_folder
from st_common.maintenance.layer_retention import judged_from
from st_common.operations.alerts import delete_old_alerts
from st_common.operations.history import days_of
from st_common.quality.index_page import write_index
from st_common.quality.report import delete_old_pages
from st_common.query.lookup import logged_streams

_YOUNG_S = 86_400  # so long a registration may take from its seed to its row, and a trial to its first visits


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """How many files went, of each kind: see the top of this file."""

    seeds: int = 0
    borders: int = 0
    lineage_files: int = 0
    alerts: int = 0
    report_files: int = 0


def clear_leftovers(home: Home, conf: Path, *, today: date) -> Cleared:
    """Deletes files that nothing needs any more; also beside running streams.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        today: the day (UTC) by the wall clock.

    Raises:
        ConfigError: the settings are wrong.
        LogError: a log is damaged.
    """
    streams = logged_streams(home)
    seeds = _of_each(streams, partial(_seeds, home))
    borders = _of_each(streams, partial(_borders, home))
    for file in (*seeds, *borders):
        file.unlink(missing_ok=True)
    for stream in streams:
        with suppress(TableError):
            forget_purged(home, stream)
        for folder in _forgotten_trials(home, stream):
            borders += folder.iterdir()
            shutil.rmtree(folder)
    kept = operations_of(conf, "retention", KeptDays)
    return Cleared(
        seeds=len(seeds),
        borders=len(borders),
        lineage_files=_old_lineage(home, conf, today),
        alerts=_old_alerts(home, before=today - timedelta(days=kept.alerts_days)),
        report_files=_old_pages(home, before=today - timedelta(days=kept.reports_days)),
    )


def _of_each(
    streams: Iterable[str], files_of: Callable[[str], Iterable[Path]]
) -> list[Path]:
    """The files of all streams; of one whose tables do not say what it needs none: maintenance names the table."""
    found: list[Path] = []
    for stream in streams:
        with suppress(TableError):
            found += files_of(stream)
    return found


def _seeds(home: Home, stream: str) -> Iterator[Path]:
    """The seeds of a stream that no row names from the place on from which anything is judged again."""
    folder = seeds_folder(home.log(stream))
    old = [seed for seed in folder.glob("[!.]*") if _is_old(seed)]
    named = _named_seeds(home, stream) if old else set()
    yield from (seed for seed in old if seed.name not in named)


def _named_seeds(home: Home, stream: str) -> set[str]:
    log = Log(home.log(stream))
    segments = log.control_segments(judged_from(home, stream))
    rows = (control_rows(log, segment) for segment in segments)
    return {
        row.seed
        for each in rows
        for _, row in chosen(each, Register)
        if row.seed is not None
    }


def _borders(home: Home, stream: str) -> Iterator[Path]:
    """The borders before the last one at which a run over the oldest fixes can begin, where older ones were purged.

    fixes      purged ...... | 05-06  05-07      05-04 and 05-05 had none
    borders    05-01  05-03 05-04        05-07   05-01 and 05-03 go: at 05-04 as much was seen as at 05-06
    """
    positions = home.table("positions", stream)
    days = days_of(positions)
    if not days or not tables.purged_before(positions):
        return
    folder = home.stream(stream) / FOLDER
    for each in (folder, *folder.glob("[!.]*/")):
        files = list(each.glob("[0-9]*.*"))
        first = days[0].isoformat()
        before = [file.stem for file in files if file.stem <= first]
        last = max(before, default="")
        yield from (file for file in files if file.stem < last)


def _forgotten_trials(home: Home, stream: str) -> Iterator[Path]:
    """The folders of borders of trials that have no table, because it was removed; one of today may come to have it."""
    for folder in (home.stream(stream) / FOLDER).glob("[!.]*/"):
        table = home.table("trials") / f"{stream}.{folder.name}"
        if not tables.exists(table) and _is_old(folder):
            yield folder


def _is_old(path: Path) -> bool:
    return path.stat().st_mtime < time.time_ns() / 1e9 - _YOUNG_S


def _old_lineage(home: Home, conf: Path, today: date) -> int:
    lineage = lineage_settings(conf)
    if lineage is None:
        return 0
    return delete_old_files(home, before=today - timedelta(days=lineage.keep_days))


def _old_alerts(home: Home, *, before: date) -> int:
    begin = datetime.combine(before, time_of_day.min, UTC)
    return delete_old_alerts(home, before_us=int(begin.timestamp()) * 1_000_000)


def _old_pages(home: Home, *, before: date) -> int:
    count = delete_old_pages(home, before=before)
    if count:
        write_index(home)  # the page of all days names no page that is gone
    return count
