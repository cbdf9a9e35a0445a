"""The job that owns `changes` keeps its open days tidy: a commit takes longer the more files there are."""

from pathlib import Path

from st_common import tables

EVERY_COMMITS = 200
_TARGET_MB = 16


def tidy(table: Path, commits: int) -> None:
    """Compacts a table's small files at every 200th commit of its owner, between two batches.

    Args:
        table: the folder of the table.
        commits: how many commits the owner has made in this run.
    """
    if commits and commits % EVERY_COMMITS == 0:
        tables.compact(table, before=None, target_mb=_TARGET_MB)
