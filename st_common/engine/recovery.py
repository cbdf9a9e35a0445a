"""What an engine sees to before it starts: tables that a power cut tore are whole again (SPEC S2)."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from st_common import tables
from st_common.config.home import Home
from st_common.engine.log_identity import ARCHIVE, ENGINE, check_log, positions
from st_common.engine.owner import owned
from st_common.engine.states import is_damaged, stored_states
from st_common.engine.topology import generation_folder, topology_of
from st_common.errors import FairwayError
from st_common.log.checked import check_bytes
from st_common.log.log import Log
from st_common.operations.alerts import tell
from st_common.position import segment_of
from st_common.query.area_store import areas
from st_common.query.created_streams import created_streams
from st_common.rejects.notes import noted
from st_common.sources.offsets import Offsets, stored_sources
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


LOG_FOLDER = "log"


def prepare(home: Home, stream: str) -> None:
    """Brings a stream into a state from which an engine can start; called by its owner, with an alert for each repair.

    The tables that are made from its log go back to their last whole versions; what is cut off is written again from
    the log. That must be the log which they were made from. States that are ahead of the tables go, for the log may
    become another one up to their places.

    Raises:
        FairwayError: a table is damaged beyond that; it names the file and the way out.
        StateError: the log is older than a table, or another one.
        LogError: a segment of the log is missing or damaged.
    """
    for notice in _recovered(_tables_of(home, stream)):
        tell(home, stream, notice)
    check_log(home, stream)
    _remove_states_ahead(home, stream)


def _remove_states_ahead(home: Home, stream: str) -> None:
    """Removes states that have seen what no table holds: they are caches, made again when the tables come there."""
    ends = (end for _, app, end in positions(home, stream) if app == ENGINE)
    upto = next(ends, 0)
    for folder in sorted(home.stream(stream).glob("[!.]*")):
        if folder.name == LOG_FOLDER or not folder.is_dir():
            continue  # the log has more files than all else
        for path in stored_states(folder):
            if int(path.stem) > upto:
                path.unlink(missing_ok=True)


def repair(home: Home) -> Iterator[str]:
    """Does what is safe while nothing runs, and says what it did.

    Torn commits of tables are cut off, damaged states go, and so do drafts that dead writers left. A table in which
    bytes were changed goes back to its newest version that is whole, where the log still has what was made from there
    on. Nothing that anybody was told is lost by it: what is made from a log is made again at the next start.

    Raises:
        FencedError: a stream is running.
        FairwayError: a table is damaged beyond that; it names the file and the way out.
    """
    for folder in sorted((home.root / "streams").glob("*")):
        with owned(home, folder.name, engine="doctor"):
            yield from _without_changed_bytes(home, folder.name)
            yield from _recovered(_tables_of(home, folder.name))
            yield from _without_damaged_states(folder)
            yield from _without_drafts(folder)
    # What is made from no log, such as layers, loses no version that can be read.
    derived = {
        path
        for folder in (home.root / "streams").glob("*")
        for path in _tables_of(home, folder.name)
    }
    for path in sorted(_all_tables(home) - derived):
        if (notice := tables.recover(path, derived=False)) is not None:
            yield notice


def damage_of(home: Home) -> Iterator[tuple[str, list[str]]]:
    """Looks at every byte that a home has stored: logs, tables, states, and whether logs are those of their tables.

    Args:
        home: the home folder; nothing in it is changed, and streams may run.

    Yields:
        What was looked at, for people, and what is wrong with it: a line each.
    """
    yield (
        "registry",
        [*_said(partial(areas, home)), *_said(partial(created_streams, home))],
    )
    seen: set[Path] = set()
    for folder in sorted((home.root / "streams").glob("[!.]*")):
        stream = folder.name
        said = _said(partial(_checked_log, home, stream))
        yield f"stream {stream}: its log", said
        mine = [path for path in _tables_of(home, stream) if path not in seen]
        seen.update(mine)
        broken = [line for path in mine for line in _lasting(home, stream, path)]
        yield f"stream {stream}: its tables", broken
        damaged = [
            f"{path.relative_to(home.root)} is damaged: `fairway doctor --repair` removes it"
            for path in stored_states(folder)
            if is_damaged(path)
        ]
        yield f"stream {stream}: its states", damaged
    broken = [
        f"{line}; it is made from no log: restore it from a backup"
        for path in sorted(_all_tables(home) - seen)
        for line in _damage(home, path)
    ]
    yield "other tables", broken


def _all_tables(home: Home) -> set[Path]:
    """The folders of all tables, those of no stream too; not what was put aside, whose names begin with a dot."""
    root = home.root / "tables"
    found = {log.parent for log in root.rglob("_delta_log")}
    return {
        path
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    }


def _damage(home: Home, path: Path) -> list[str]:
    return [f"{path.relative_to(home.root)}: {line}" for line in tables.damage(path)]


def _lasting(home: Home, stream: str, path: Path) -> list[str]:
    """What is wrong with a table that is made from a log, with the way out."""
    if not (said := _damage(home, path)):
        return []
    way_out = (
        "`fairway doctor --repair` has it written again from the log"
        if _leads_on(home, stream, path, tables.whole_version(path))
        else "the log has no more what it was made from: restore the home from a backup"
    )
    return [f"{line}; {way_out}" for line in said]


def _checked_log(home: Home, stream: str) -> None:
    check_log(home, stream)
    log = Log(home.log(stream))
    check_bytes(log)
    noted(log)
    for source in stored_sources(log):
        Offsets(log, source)
    topology_of(home, stream)


def _said(check: Callable[[], object]) -> list[str]:
    try:
        check()
    except FairwayError as error:
        return [str(error)]
    return []


def _tables_of(home: Home, stream: str) -> list[Path]:
    return [
        *(home.table(name, stream) for name in OF_STREAM),
        *(home.table(name) for name in _OF_ALL),
    ]


def _recovered(paths: Iterable[Path]) -> list[str]:
    return [notice for path in paths if (notice := tables.recover(path)) is not None]


def _without_changed_bytes(home: Home, stream: str) -> Iterator[str]:
    """Takes tables in which bytes were changed back to where they are whole, if the log leads on from there."""
    for path in _tables_of(home, stream):
        if not (said := tables.damage(path)):
            continue
        version = tables.whole_version(path)
        if _leads_on(home, stream, path, version):
            tables.cut_behind(path, version)
            yield f"{path}: {said[0]}; what came behind version {version} is written again from the log"


def _leads_on(home: Home, stream: str, path: Path, version: int) -> bool:
    """Whether what a table had behind a version can be made again from logs, and states that are left."""
    if path == home.table("queries"):
        return True  # of control rows, which are never purged
    if path == home.table("rejects"):
        names = [folder.name for folder in (home.root / "streams").glob("[!.]*")]
        return all(_archives_on(home, name, path, version) for name in names)
    if path == home.table("positions", stream):
        return _archives_on(home, stream, path, version)
    if path == home.table("changes", stream):
        committed = tables.committed_at(path, version, ENGINE)
        upto = 0 if committed is None else segment_of(committed + 1)
        return _steps_on(home, stream, upto)
    # Made from these two, whole as they are.
    made_from = (home.table("changes", stream), home.table("positions", stream))
    return version >= 0 or not any(map(tables.purged_before, made_from))


def _archives_on(home: Home, stream: str, path: Path, version: int) -> bool:
    done = tables.committed_at(path, version, f"{ARCHIVE}-{stream}")
    purged = Log(home.log(stream)).purged_before()
    return purged <= (0 if done is None else done + 1)


def _steps_on(home: Home, stream: str, upto: int) -> bool:
    """Whether an engine can go on from a segment at which its table stands: from the log's beginning, or a state."""
    topology, purged = topology_of(home, stream), Log(home.log(stream)).purged_before()
    if topology is None:
        return not purged
    begins = topology.start if topology.generation else 0
    if purged <= begins <= upto:
        return True
    folder = generation_folder(home, stream) / "local" / "states"
    places = [int(path.stem) for path in stored_states(folder) if not is_damaged(path)]
    return any(max(purged, begins) <= place <= upto for place in places)


def _without_damaged_states(folder: Path) -> Iterator[str]:
    for path in stored_states(folder):
        if is_damaged(path):
            path.unlink(missing_ok=True)
            yield f"{path} was damaged and is gone: an older state and the log after it lead to the same"


def _without_drafts(folder: Path) -> Iterator[str]:
    storage = LocalStorage(folder)
    for part in (
        ".",
        *(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()),
    ):
        count = storage.clear_drafts(part)
        if count:
            yield f"{folder / part}: {count} drafts of dead writers are gone"
