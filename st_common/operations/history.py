"""The history of a table: which days it holds."""

from datetime import date
from pathlib import Path

from st_common import tables
from st_common.tables.handle import required


def days_of(path: Path) -> list[date]:
    """The days of a table that is partitioned by `event_date`, oldest first; read from its log alone."""
    if not tables.exists(path):
        return []
    values = {partition["event_date"] for partition in required(path).partitions()}
    return sorted(date.fromisoformat(str(value)) for value in values)
