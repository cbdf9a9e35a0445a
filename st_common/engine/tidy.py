"""Who owns a table keeps its open days tidy: the more files, the longer take commits, and the more readers open."""

from pathlib import Path

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import Contract
from st_common.engine.damage import tell_damage
from st_common.errors import TableError

EVERY_COMMITS = 200
OPEN_MB = 32
"""How large files of open days become: what is joined at once is in memory. The nightly run joins by the same size."""


def tidy(
    home: Home,
    stream: str,
    table: Path,
    contract: Contract,
    commits: int,
    *,
    every: int = EVERY_COMMITS,
    target_mb: int = 16,
) -> None:
    """Compacts a table's small files at every so many commits of its owner, between two batches.

    One that another program has altered so that it cannot be compacted is told of, and stays as it is: its owner
    appends to it all the same.

    Args:
        home: the home folder, which keeps the alerts.
        stream: whose table it is.
        table: the folder of the table.
        contract: of the table: by which columns rows lie together.
        commits: how many commits the owner has made in this run.
        every: at which of them: each one that is a multiple.
        target_mb: how large files become, in MiB; what is joined at once is in memory.
    """
    if commits and commits % every == 0 and tables.exists(table):
        try:
            tables.compact(
                table,
                before=None,
                cluster=contract.cluster_by,
                cells=contract.zorder_by,
                target_mb=target_mb,
            )
        except TableError as error:
            tell_damage(home, stream, str(error))
