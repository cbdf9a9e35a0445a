"""Who owns a table keeps its open days tidy: the more files, the longer take commits, and the more readers open."""

from pathlib import Path

from st_common import tables
from st_common.contracts import Contract

EVERY_COMMITS = 200
OPEN_MB = 32
"""How large files of open days become: what is joined at once is in memory. The nightly run joins by the same size."""


def tidy(
    table: Path,
    contract: Contract,
    commits: int,
    *,
    every: int = EVERY_COMMITS,
    target_mb: int = 16,
) -> None:
    """Compacts a table's small files at every so many commits of its owner, between two batches.

    Args:
        table: the folder of the table.
        contract: of the table: by which column rows lie together.
        commits: how many commits the owner has made in this run.
        every: at which of them: each one that is a multiple.
        target_mb: how large files become, in MiB; what is joined at once is in memory.
    """
    if commits and commits % every == 0 and tables.exists(table):
        tables.compact(
            table, before=None, cluster=contract.cluster_by, target_mb=target_mb
        )
