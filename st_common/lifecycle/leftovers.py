"""What lies in a home beside its tables and logs, and is of no use any more."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from st_common.home import Home
from st_common.lineage.sending import delete_old_files
from st_common.lineage.settings import lineage_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """How many files went: `lineage_files`, days of events of lineage."""

    lineage_files: int = 0


def clear_leftovers(home: Home, conf: Path, *, today: date) -> Cleared:
    """Deletes files that nothing needs any more; also beside running streams.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        today: the day (UTC) by the wall clock.

    Raises:
        ConfigError: the settings are wrong.
    """
    lineage = lineage_settings(conf)
    if lineage is None:
        return Cleared()
    oldest = today - timedelta(days=lineage.keep_days)
    return Cleared(lineage_files=delete_old_files(home, before=oldest))
