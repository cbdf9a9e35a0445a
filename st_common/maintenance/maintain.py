"""One run of maintenance over everything that a home holds: purge, compact, checkpoint, clean up (docs/operations.md).

Each step is a commit of its own or deletes what nothing names any more, so a run that is killed anywhere loses nothing:
the next one does the rest. It may run beside engines, readers and another run.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from time import time_ns
from typing import Any, Protocol

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.tidy import OPEN_MB
from st_common.errors import TableError
from st_common.maintenance.layer_retention import (
    Needed,
    fold_layer,
    needed_versions,
    retain_layer,
)
from st_common.maintenance.retention import Retained, kept_days, retain
from st_common.maintenance.stored import Size, Stored, size_of, stored_tables
from st_common.operations.days import open_since
from st_common.storage import bytes_below
from st_common.tables.purging import Mask


class Upkeep(Protocol):
    """Keeps a table in order: `st_common.tables` by delta-rs, `st_common.spark.upkeep.SparkUpkeep` by delta-spark."""

    def compact(
        self,
        path: Path,
        *,
        before: date | None,
        zorder: tuple[str, ...] | None = None,
        cluster: str | None = None,
        cells: tuple[str, ...] = (),
        target_mb: int = 64,
    ) -> dict[str, int]:
        """Makes few files of many; see `tables.compact`."""

    def purge(
        self,
        path: Path,
        is_gone: Callable[[pa.Table], Mask],
        *,
        before: int | None = None,
        dry: bool = False,
    ) -> tables.Purged:
        """Takes rows out that are kept no longer; see `tables.purge`."""

    def vacuum(self, path: Path, *, retention_h: int | None = None) -> int:
        """Deletes files of old versions; see `tables.vacuum`."""


def by_delta_rs(stored: Stored) -> Upkeep:  # noqa: ARG001 - whatever the table
    """Who keeps a table in order without a JVM."""
    return tables


@contextmanager
def upkeep_by(home: Home, engine: str) -> Iterator[Callable[[Stored], Upkeep]]:
    """Says who keeps each table in order while a block runs: with `spark` it those that no stream appends to.

    Its session begins with the first table that needs it; with `local` none does.
    """
    if engine == "local":
        yield by_delta_rs
        return
    from st_common.spark.session import late_session
    from st_common.spark.upkeep import WRITTEN, SparkUpkeep

    with late_session(home, "fairway maintain") as spark_of:
        by_spark = SparkUpkeep(spark_of)
        yield lambda one: by_spark if one.contract.name in WRITTEN else tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """What was done to one table.

    Attributes:
        table: the table and its stream or layer, `positions/taxis`.
        before: what it took.
        after: what it takes; files of old versions stay until nobody can be reading them.
        joined: how many files were written again, into fewer or in better order.
        retained: what was purged.
        deleted: how many files of old versions were deleted.
        refused: why the rest was left; "" where all was done.
    """

    table: str
    before: Size
    after: Size
    joined: int = 0
    retained: Retained = field(default_factory=Retained)
    deleted: int = 0
    refused: str = ""

    def to_json(self) -> dict[str, Any]:
        """What was done, as JSON values."""
        since = self.retained.since
        return {
            "table": self.table,
            "files_before": self.before.files,
            "files_after": self.after.files,
            "bytes_before": self.before.bytes,
            "bytes_after": self.after.bytes,
            "joined": self.joined,
            "purged": asdict(self.retained.purged),
            "kept_since": since and since.isoformat(),
            "held_by": self.retained.held_by,
            "deleted": self.deleted,
            "refused": self.refused or None,
        }


def maintain(
    home: Home,
    *,
    today: date,
    purge: bool = True,
    streams: Mapping[str, StreamSettings] | None = None,
    upkeep_of: Callable[[Stored], Upkeep] = by_delta_rs,
) -> Iterator[Maintained]:
    """Maintains every table of a home, also beside running streams.

    Small files of open days are joined by size. Those of closed days are cut along what the contract clusters by, in
    Z-order. Rows go that are older than their contract, or their stream, says; versions, commits and files that no
    reader can want go too. A table that cannot be read or written is left as it is; the others are maintained.

    Args:
        home: the home folder.
        today: the day (UTC) by the wall clock.
        purge: whether rows go that are older than their table's retention.
        streams: the settings by name; None: all is kept as the contracts say.
        upkeep_of: who keeps each table in order.

    Yields:
        What was done to each table, as soon as it is done.
    """
    needed = _needed(home) if purge else None
    for stored in stored_tables(home):
        run = _Run(
            home=home,
            stored=stored,
            today=today,
            upkeep=upkeep_of(stored),
            streams=(streams or {}) if purge else None,
        )
        try:
            yield run.layer(needed) if stored.contract.name == "layers" else run.table()
        except TableError as error:
            size = Size(files=0, bytes=bytes_below(stored.path))
            yield Maintained(
                table=stored.label, before=size, after=size, refused=str(error)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What maintenance does to one table; `streams` are None where no rows go."""

    home: Home
    stored: Stored
    today: date
    upkeep: Upkeep
    streams: Mapping[str, StreamSettings] | None

    def table(self) -> Maintained:
        """Joins, purges, cleans up."""
        path, before = self.stored.path, size_of(self.stored.path)
        joined = compact(self.home, self.stored, today=self.today, upkeep=self.upkeep)
        retained = Retained()
        if self.streams is not None:
            days = kept_days(self.stored, self.streams)
            retained = retain(
                self.home,
                self.stored,
                today=self.today,
                days=days,
                purge=self.upkeep.purge,
            )
        deleted = self.upkeep.vacuum(path)
        tables.checkpoint(path)
        return self._done(before, joined, retained, deleted)

    def layer(self, needed: Needed | TableError | None) -> Maintained:
        """Old versions of a layer are what a replay of the log joins with: those that nobody needs any more go."""
        before, layer = size_of(self.stored.path), self.stored.part
        joined = compact(self.home, self.stored, today=self.today, upkeep=self.upkeep)
        if layer is not None:
            midnight = datetime.combine(self.today, time(), UTC)
            clock = datetime.fromtimestamp(time_ns() / 1e9, UTC)
            fold_layer(self.home, layer, now=max(midnight, clock) if needed else None)
        tables.checkpoint(self.stored.path, keeps_commits=True)
        if isinstance(needed, TableError):  # nobody knows which versions are needed
            raise needed
        if needed is None or layer is None:
            return self._done(before, joined, Retained(), 0)
        done = retain_layer(self.home, layer, needed, today=self.today)
        retained = Retained(held_by=done.held_by)
        return self._done(before, joined, retained, done.dropped.files)

    def _done(
        self, before: Size, joined: int, retained: Retained, deleted: int
    ) -> Maintained:
        return Maintained(
            table=self.stored.label,
            before=before,
            after=size_of(self.stored.path),
            joined=joined,
            retained=retained,
            deleted=deleted,
        )


def _needed(home: Home) -> Needed | TableError:
    """The versions of layers that may be asked again; the error of the table that does not say it."""
    try:
        return needed_versions(home)
    except TableError as error:
        return error


def compact(home: Home, stored: Stored, *, today: date, upkeep: Upkeep = tables) -> int:
    """Compacts the days of one table, the closed ones and the open ones; gives how many files were written again.

    A day of a stream's table is closed when the clock of every job that writes it has passed its end; of others when it
    is over by the wall clock. Tables without days are left alone: they are replaced as a whole, or hardly grow.
    """
    contract = stored.contract
    if not any(_is_day(stored, name) for name in contract.partition_by):
        return 0
    closed = today if stored.part is None else open_since(home, stored.part)
    joined = 0
    if closed is not None:
        done = upkeep.compact(
            stored.path,
            before=closed,
            zorder=contract.zorder_by or None,
            cluster=contract.cluster_by,
        )
        joined = done["files_before"]
    done = upkeep.compact(
        stored.path,
        before=None,
        cluster=contract.cluster_by,
        cells=contract.zorder_by,
        target_mb=OPEN_MB,
    )
    return joined + done["files_before"]


def _is_day(stored: Stored, name: str) -> bool:
    column = stored.contract.column(name)
    return column is not None and column.type == "date"
