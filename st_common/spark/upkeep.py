"""Upkeep of tables by delta-spark: OPTIMIZE, DELETE and VACUUM of those that jobs on Spark write.

layers, visits, differences, quality, trials    nobody appends to them: delta-spark, under the table's lock
positions, changes, rejects, ..                 streams append to them: delta-rs, as without Spark (docs/adr/0006)
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from st_common import tables
from st_common.spark.causes import cause_of
from st_common.spark.session import configured
from st_common.tables.active import active_files, day_column
from st_common.tables.handle import required
from st_common.tables.purging import Mask, Purged, mark_purged, purgeable

WRITTEN = frozenset({"layers", "visits", "differences", "quality"})
"""The contracts of tables that jobs on Spark write; trials are of `visits`."""
_MB = 1 << 20
_OPTIMIZE = "spark.databricks.delta.optimize"
_VACUUM = {
    "spark.databricks.delta.vacuum.logging.enabled": "false",  # two commits for nothing, each time
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",  # tasks that list folders: else 10,000
}
_AT_ONCE = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@dataclass(frozen=True)
class SparkUpkeep:
    """Keeps tables in order that jobs on Spark write; an `Upkeep` of `maintenance.maintain`.

    Args:
        spark_of: gives a session with Delta; it is asked only where there is something to do.
    """

    spark_of: Callable[[], SparkSession]

    def compact(
        self,
        path: Path,
        *,
        before: dt.date | None,
        zorder: tuple[str, ...] | None = None,
        cluster: str | None = None,
        cells: tuple[str, ...] = (),
        target_mb: int = 64,
    ) -> dict[str, int]:
        """Makes few files of the small ones of each day by OPTIMIZE, in Z-order where it is wanted.

        Days that have two files smaller than half of `target_mb` are written again, in one commit; what was done is
        not done again. See `tables.compact` for the arguments and what is given back.

        Raises:
            FairwayError: there is no table.
        """
        column, days = _due(path, before, target_mb * _MB)
        names = ("files_before", "files_after", "rows", "bytes_before", "bytes_after")
        done = dict.fromkeys(("partitions", *names), 0)
        if not days:
            return done
        metrics = self._optimize(
            path, f"{column} IN ({_listed(days)})", zorder, target_mb
        )
        return done | {
            "partitions": len(days),
            "files_before": metrics["numFilesRemoved"],
            "files_after": metrics["numFilesAdded"],
            "bytes_before": metrics["filesRemoved"]["totalSize"],
            "bytes_after": metrics["filesAdded"]["totalSize"],
        }

    def purge(
        self,
        path: Path,
        is_gone: Callable[[pa.Table], Mask],
        *,
        before: int | None = None,
        dry: bool = False,
    ) -> Purged:
        """Takes whole days out of a table by DELETE; see `tables.purge`.

        Where some files of a day go and others stay, delta-rs takes them out: no condition on rows says which.
        """
        with tables.locked(path):
            actions, gone, purged = purgeable(path, is_gone)
            day = day_column(required(path))
            if dry or not len(gone):
                return purged
            column = f"partition.{day}"
            days = pc.unique(gone[column]) if day else pa.array([])
            of_days = pc.is_in(actions[column], days) if day else pa.array([])
            if not day or pc.sum(of_days).as_py() != len(gone):
                return tables.purge(path, is_gone, before=before)
            # Before the rows go: whoever reads between the two commits takes none for complete that is not.
            mark_purged(path, purged.rows, before)
            listed = _listed(days.to_pylist())
            with self._committing(path, f"{len(days)} days purged") as spark:
                DeltaTable.forPath(spark, str(path.absolute())).delete(
                    f"{day} IN ({listed})"
                )
        return purged

    def vacuum(self, path: Path, *, retention_h: int | None = None) -> int:
        """Deletes data files that no version needs any more, by VACUUM; see `tables.vacuum`."""
        with tables.locked(path):
            there = _data_files(path)
            with self._committing(path, "files of old versions deleted") as spark:
                hours = None if retention_h is None else float(retention_h)
                conf = _VACUUM | ({} if hours is None else _AT_ONCE)
                with configured(spark, conf):
                    DeltaTable.forPath(spark, str(path.absolute())).vacuum(hours)
            return len(there - _data_files(path))

    def _optimize(
        self, path: Path, where: str, zorder: tuple[str, ...] | None, target_mb: int
    ) -> Mapping[str, Any]:
        """Some days written again; what OPTIMIZE says of it."""
        sizes = {
            f"{_OPTIMIZE}.maxFileSize": str(target_mb * _MB),
            f"{_OPTIMIZE}.minFileSize": str(target_mb * _MB // 2),
        }
        with (
            tables.locked(path),
            self._committing(path, "few files of many") as spark,
            configured(spark, sizes),
        ):
            table = DeltaTable.forPath(spark, str(path.absolute()))
            builder = table.optimize().where(where)
            told = (
                builder.executeZOrderBy(*zorder)
                if zorder
                else builder.executeCompaction()
            )
            metrics: Mapping[str, Any] = told.collect()[0]["metrics"].asDict(
                recursive=True
            )
        return metrics

    @contextmanager
    def _committing(self, path: Path, what: str) -> Iterator[SparkSession]:
        """A session whose jobs are named in Spark's pages; what it commits to a table is durable behind the block."""
        spark = self.spark_of()
        spark.sparkContext.setJobDescription(f"{path.parent.name}/{path.name}: {what}")
        try:
            yield spark
        except PySparkException as error:
            raise cause_of(error) from error
        tables.settle(path)


def _due(
    path: Path, before: dt.date | None, target: int
) -> tuple[str | None, list[dt.date]]:
    """The column of days of a table, and the days with two small files at least."""
    table = required(path)
    small = Counter(
        file.day
        for file in active_files(table)
        if file.day and file.size < target // 2 and (not before or file.day < before)
    )
    return day_column(table), sorted(day for day, n in small.items() if n > 1)


def _listed(days: Sequence[dt.date]) -> str:
    """Days as SQL has them, with commas between them."""
    return ", ".join(f"DATE'{day}'" for day in days)


def _data_files(path: Path) -> set[Path]:
    """The data files in a table's folder, of any version."""
    return {
        file
        for file in path.rglob("*.parquet")
        if not file.relative_to(path).parts[0].startswith("_")
    }
