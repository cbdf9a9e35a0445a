"""What an engine sees to before it starts: tables that a power cut tore are whole again (SPEC S2)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from st_common import tables
from st_common.engine.owner import owned
from st_common.engine.states import States
from st_common.home import Home
from st_common.ops.alerts import tell
from st_common.storage import LocalStorage

OF_STREAM = (
    "changes",
    "positions",
    "latest",
    "snapshots",
    "visits",
    "differences",
)  # tables that are made from the log of one stream
_OF_ALL = ("rejects", "queries")


def recover_tables(home: Home, stream: str) -> None:
    """Brings the tables that are made from a stream's log back to their last whole versions, with an alert for each.

    What is cut off is written again from the log. Called by the owner before an engine starts.

    Raises:
        FairwayError: one is damaged beyond that; it names the file and the way out.
    """
    for notice in _recovered(_tables_of(home, stream)):
        tell(home, stream, notice)


def repair(home: Home) -> Iterator[str]:
    """Does what is safe while nothing runs, and says what it did.

    Torn commits of tables are cut off, damaged states go, and so do drafts that dead writers left. Nothing that anybody
    was told is lost by it: what is made from a log is made again at the next start.

    Raises:
        FencedError: a stream is running.
        FairwayError: a table is damaged beyond that; it names the file and the way out.
    """
    for folder in sorted((home.root / "streams").glob("*")):
        with owned(home, folder.name, engine="doctor"):
            yield from _recovered(_tables_of(home, folder.name))
            yield from States.of(home, folder.name).check()
            yield from _without_drafts(folder)
    # What is made from no log, such as layers, loses no version that can be read.
    derived = {
        path
        for folder in (home.root / "streams").glob("*")
        for path in _tables_of(home, folder.name)
    }
    for log in sorted((home.root / "tables").rglob("_delta_log")):
        if (
            log.parent not in derived
            and (notice := tables.recover(log.parent, derived=False)) is not None
        ):
            yield notice


def _tables_of(home: Home, stream: str) -> list[Path]:
    return [
        *(home.table(name, stream) for name in OF_STREAM),
        *(home.table(name) for name in _OF_ALL),
    ]


def _recovered(paths: Iterable[Path]) -> list[str]:
    return [notice for path in paths if (notice := tables.recover(path)) is not None]


def _without_drafts(folder: Path) -> Iterator[str]:
    storage = LocalStorage(folder)
    for part in (
        ".",
        *(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()),
    ):
        count = storage.clear_drafts(part)
        if count:
            yield f"{folder / part}: {count} drafts of dead writers are gone"
