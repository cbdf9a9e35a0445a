"""The history of closed days: which days a table holds, and making few large files of many small ones."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from st_common import tables
from st_common.contracts import load_contract
from st_common.home import Home
from st_common.ops.days import open_since

HISTORIES = ("positions", "changes")
"""The tables of a stream that grow by the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What was done to one table.

    Attributes:
        table: the table and its stream, `positions/taxis`.
        open_since: the first day that was left alone; None when no day is closed, and nothing was done.
        partitions: how many were touched.
        files_before: files of closed days that were joined.
        files_after: what they became.
        rows: rows in them.
        bytes_before: bytes of the files that were joined.
        bytes_after: bytes of what they became.
        deleted: files that nobody can still be reading: their rows were moved longer ago than the table keeps old
            versions.
    """

    table: str
    open_since: date | None
    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    rows: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    deleted: int = 0

    def to_json(self) -> dict[str, Any]:
        """The compaction as JSON values."""
        return asdict(self) | {
            "open_since": self.open_since and self.open_since.isoformat()
        }


def days_of(path: Path) -> list[date]:
    """The days of a table that is partitioned by `event_date`, oldest first; read from its log alone."""
    if not tables.exists(path):
        return []
    values = {
        partition["event_date"] for partition in DeltaTable(str(path)).partitions()
    }
    return sorted(date.fromisoformat(str(value)) for value in values)


def compact_history(
    home: Home, streams: Iterable[str], *, before: date | None = None
) -> list[Compaction]:
    """Compacts the closed days of `positions` and `changes` of some streams.

    A day that is open for any job of its stream is never touched, whatever `before` says; so a running stream and this
    job never write into the same day (a fix that comes late into a closed one is appended beside it). Rows stay as they
    are, and a second run finds nothing to do.

    Args:
        home: where the tables lie.
        streams: the streams' names; those without tables are passed over.
        before: only days before this one.

    Returns:
        What was done, an entry for each table that exists.
    """
    paths = [
        (stream, name, home.table(name, stream))
        for stream in streams
        for name in HISTORIES
    ]
    return [
        _compact(home, stream, name, path, before)
        for stream, name, path in paths
        if tables.exists(path)
    ]


def compact_beats(home: Home, *, today: date) -> list[Compaction]:
    """Compacts the days before `today` (UTC) of `stream_status`, which goes by the wall clock and not by a stream's.

    Args:
        home: where the table lies.
        today: the first day that is left alone.

    Returns:
        One entry; none without a table.
    """
    path = home.table("stream_status")
    if not tables.exists(path):
        return []
    done = tables.compact(path, before=today)
    return [
        Compaction(
            table="stream_status", open_since=today, deleted=tables.vacuum(path), **done
        )
    ]


def _compact(
    home: Home, stream: str, name: str, path: Path, before: date | None
) -> Compaction:
    since = open_since(home, stream)
    label = f"{name}/{stream}"
    if since is None:
        return Compaction(table=label, open_since=None)
    bound = min(since, before) if before else since
    contract = load_contract(name)
    done = tables.compact(
        path,
        before=bound,
        zorder=contract.zorder_by or None,
        cluster=contract.cluster_by,
    )
    return Compaction(
        table=label, open_since=bound, deleted=tables.vacuum(path), **done
    )
