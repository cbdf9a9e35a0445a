"""A copy of a home beside running streams, from which they can go on elsewhere.

Each part is copied before what it follows from, so nothing in the copy is ahead of what it could be made from again:

    states, progress of deliveries    what engines and deliveries have done, at most as far as their tables
    tables                            their commits first: files that these name are kept for hours
    logs                              they hold all that the rest follows from, and perhaps more
    seeds                             last: rows of the logs name them, and they are written before these rows

What the log has more, the streams do once more when they start from the copy: with the same rows at the same places.

The manifest `backup.json` is written last: a folder without one is no whole backup. It has the size and the checksum of
every file, and how far each log and each table is. A restore takes all of it or nothing: parts of different times never
come together.
"""

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.delivery.feeding_query import feed_folder
from st_common.engine.log_identity import check_log, made_from_log, next_segment
from st_common.engine.owner import now_us
from st_common.errors import ConfigError, FairwayError, StateError, TableError
from st_common.log.log import Log
from st_common.log.seeds import seeds_folder
from st_common.maintenance.stored import unread_tables
from st_common.operations.launcher import ENGINE_FILE
from st_common.operations.lease import LEASE_FILE
from st_common.operations.records import read_record, write_record
from st_common.operations.stop import STOP_FILE
from st_common.position import printed, start_of
from st_common.tables.sums import SUMS

MANIFEST = "backup.json"
_FORMAT = 1
_PART = 1 << 20
_RUNNING = ("lineage", "running")  # which runs are under way
_OF_PROCESSES = {LEASE_FILE, ENGINE_FILE, STOP_FILE}
_STARTS = {"commits": 0, "offsets": 1}  # Spark notes a batch last: its state is there
_LOG_ENDS = {"segments": 1, "raw": 2, "skipped": 2, "raw-packs": 3, "packs": 3}
_LOG_ENDS |= {"purged.json": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """What a backup holds, or a restore brought back.

    Attributes:
        files: how many files.
        bytes: of these files.
        streams: how far each stream is: its log, and the tables that are made from it, by their places as texts.
        problems: where a log is not the one that its tables were made from, as it was in the home.
        unread: tables that are there as they were in the home, and of which rows cannot be read: a line each that says
            what to do.
    """

    files: int
    bytes: int
    streams: dict[str, dict[str, str]]
    problems: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def back_up(home: Home, target: Path) -> BackedUp:
    """Copies a home into a new folder, beside streams that run; resets and reshards must wait until it is done.

    What belongs to processes (leases, stop markers) is left out, and so are drafts and locks.

    Args:
        home: the home folder.
        target: a folder that does not exist yet, or is empty; not in the home.

    Raises:
        ConfigError: it has files, lies in the home, or is no folder for a home.
        StateError: streams feed each other in a circle, so no order of their logs is right.
        OSError: the disk is full, or refuses. The copy is of no use then.
    """
    copy = Home(target)
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(f"{target} is not empty", hint="name a new folder")
    if target.resolve().is_relative_to(home.root.resolve()):
        raise ConfigError(f"{target} lies in the home", hint="name a folder beside it")
    target.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[int]] = {}
    for path in _in_order(home):
        name = path.relative_to(home.root)
        if (copied := _copied(path, target / name)) is not None:
            files[str(name)] = list(copied)
    done = _backed_up(copy, files, home)
    write_record(
        target / MANIFEST,
        {
            "format": _FORMAT,
            "made_us": now_us(),
            "streams": done.streams,
            "files": files,
        },
        private=True,
    )
    return done


def restore(backup: Path, home: Home) -> BackedUp:
    """Puts a backup in the place of a home that is not there: all of it, or nothing.

    It is copied beside the place first, each file checked against the manifest, and gets its name last.

    Args:
        backup: a folder that `back_up` made.
        home: where to; a folder that does not exist yet, or is empty.

    Raises:
        ConfigError: there are files, so that parts of two times would come together; or it lies in the backup.
        StateError: the backup is not whole: it has no manifest, or a file is missing or not what it was.
        OSError: the disk is full, or refuses. Nothing has come to its place then.
    """
    root = home.root.resolve()
    if root.is_dir() and any(root.iterdir()):
        raise ConfigError(
            f"{root} is not empty: a backup is not mixed with what is there",
            hint="move it away first, or name another home",
        )
    if root.is_relative_to(backup.resolve()):
        raise ConfigError(f"{root} lies in the backup", hint="name a folder beside it")
    manifest = _manifest(backup)
    files: dict[str, list[int]] = manifest["files"]
    draft = root.with_name(f".{root.name}.restoring")
    shutil.rmtree(draft, ignore_errors=True)
    for name, expected in files.items():
        if _copied(backup / name, draft / name) != tuple(expected):
            shutil.rmtree(draft, ignore_errors=True)
            raise StateError(
                f"{backup / name} is not what was backed up: it is missing, or was changed",
                hint="nothing was restored; take another backup",
            )
    draft.mkdir(parents=True, exist_ok=True)
    os.sync()  # thousands of files: one by one takes minutes
    draft.replace(root)
    return _backed_up(Home(root), files, Home(root))


def _backed_up(home: Home, files: Mapping[str, Sequence[int]], cured: Home) -> BackedUp:
    """What is said of a copy: its home, its files with their bytes, and the home in which people cure its tables."""
    return BackedUp(
        files=len(files),
        bytes=sum(size for size, _ in files.values()),
        streams=_positions(home),
        problems=tuple(_problems(home)),
        unread=tuple(_unread(home, cured)),
    )


def _manifest(backup: Path) -> dict[str, Any]:
    manifest = read_record(backup / MANIFEST)
    if manifest is None or not isinstance(manifest.get("files"), dict):
        raise StateError(
            f"{backup} has no manifest ({MANIFEST}): it is no backup, or one that was cut off",
            hint="name the folder that `fairway backup create` made",
        )
    if manifest.get("format") != _FORMAT:
        raise StateError(
            f"{backup / MANIFEST} has format {manifest.get('format')!r}",
            hint="a newer version of Fairway wrote it: restore with that version",
        )
    if any(
        Path(name).is_absolute() or ".." in Path(name).parts
        for name in manifest["files"]
    ):
        raise StateError(
            f"{backup / MANIFEST} names files outside of the backup",
            hint="it was changed; take another backup",
        )
    return manifest


def _positions(home: Home) -> dict[str, dict[str, str]]:
    """How far each stream of a home is: its log's end, and up to where its tables have everything."""
    known: dict[str, dict[str, str]] = {}
    for folder in sorted((home.root / "streams").glob("[!.]*")):
        end = printed(start_of(Log(home.log(folder.name)).end()))
        known[folder.name] = {"log": end}
        for table, app in made_from_log(home, folder.name):
            name = str(table.relative_to(home.root / "tables"))
            with suppress(TableError):  # it is among those that cannot be read
                if (following := next_segment(table, app)) is not None:
                    known[folder.name][name] = printed(start_of(following))
    return known


def _problems(home: Home) -> Iterator[str]:
    for folder in sorted((home.root / "streams").glob("[!.]*")):
        try:
            check_log(home, folder.name)
        except TableError:
            continue  # see `_unread`
        except FairwayError as error:
            yield str(error)


def _unread(home: Home, cured: Home) -> Iterator[str]:
    """The tables of a copy of which rows cannot be read; what is as wrong in the home is said of the table there."""
    there = {stored.label: error for stored, error in unread_tables(cured)}
    for stored, error in unread_tables(home):
        yield f"table {stored.label}: {there.get(stored.label, error)}"


def _in_order(home: Home) -> Iterator[Path]:
    """The files of a home; each part is listed when its turn comes, for what came since belongs to later parts."""
    logs = [home.log(name) for name in _fed_first(home)]
    tables, seeds = home.root / "tables", [seeds_folder(log) for log in logs]
    late = [tables, *logs, *seeds]
    rest = [path for path in _files(home.root) if not _is_below(path, late)]
    yield from sorted(rest, key=lambda path: min(map(_start, path.parts)))
    # Of files of the log that came since, nothing may be noted.
    yield from (path for path in _files(tables) if path.name == SUMS)
    commits = [path for path in _files(tables) if "_delta_log" in path.parts]
    # Which checkpoint is the newest is said first, so that it is there.
    yield from sorted(commits, key=lambda path: path.name != "_last_checkpoint")
    yield from (
        path
        for path in _files(tables)
        if "_delta_log" not in path.parts and path.name != SUMS
    )
    for log in logs:
        for turn in (0, 1, 2, 3, 3, 4):  # retention may put a pack in the place of some
            parts = [each for each in sorted(log.glob("*")) if _turn(each) == turn]
            for part in parts:
                yield from _files(part) if part.is_dir() else [part]
    for folder in seeds:
        yield from _files(folder)


def _fed_first(home: Home) -> list[str]:
    """The streams, those that are fed before those that feed them: none may have what its source has not told."""
    names = [path.name for path in sorted((home.root / "streams").glob("[!.]*"))]
    fed_by = {
        name: {
            note.name.partition(".")[0] for note in feed_folder(home, name).glob("*")
        }
        for name in names
    }
    try:
        order = list(TopologicalSorter(fed_by).static_order())
    except CycleError:
        raise StateError(
            "streams feed each other in a circle", hint="stop them, and copy the home"
        ) from None
    return [name for name in reversed(order) if name in names]


def _files(folder: Path) -> Iterator[Path]:
    """The files below a folder, without drafts, locks, and what belongs to processes."""
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder).parts
        is_draft = any(
            part.startswith(".") and not part.endswith(".crc") for part in below
        )
        is_of_process = (
            path.name in _OF_PROCESSES
            or path == folder / MANIFEST
            or below[:2] == _RUNNING
        )
        if not is_of_process and not is_draft and path.is_file():
            yield path


def _is_below(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _start(part: str) -> int:
    return _STARTS.get(part, len(_STARTS))


def _turn(path: Path) -> int:
    """Notes about segments are copied before these; then packs, into which they go, and what says what is gone."""
    return _LOG_ENDS.get(path.name, 0)


def _copied(path: Path, target: Path) -> tuple[int, int] | None:
    """Copies a file with mode and times; gives its bytes and their checksum.

    None when it is gone by now: nothing names it any more.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    size = checksum = 0
    try:
        with path.open("rb") as source, target.open("wb") as sink:
            while part := source.read(_PART):
                sink.write(part)
                size, checksum = size + len(part), zlib.crc32(part, checksum)
        shutil.copystat(path, target)
    except FileNotFoundError:
        target.unlink(missing_ok=True)
        return None
    return size, checksum
