"""A copy of a home beside running streams, from which they can go on elsewhere.

Each part is copied before what it follows from, so nothing in the copy is ahead of what it could be made from again:

    states, progress of deliveries    what engines and deliveries have done, at most as far as their tables
    tables                            their commits first: files that these name are kept for hours
    logs                              they hold all that the rest follows from, and perhaps more
    seeds                             last: rows of the logs name them, and they are written before these rows

What the log has more, the streams do once more when they start from the copy: with the same rows at the same places.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from st_common.capture.seeds import seeds_folder
from st_common.errors import ConfigError, StateError
from st_common.home import Home
from st_common.ops.launcher import ENGINE_FILE
from st_common.ops.lease import LEASE_FILE
from st_common.ops.stop import STOP_FILE
from st_common.serving.feeding import feed_folder

_RUNNING = ("lineage", "running")  # which runs are under way
_OF_PROCESSES = {LEASE_FILE, ENGINE_FILE, STOP_FILE}
_STARTS = {"commits": 0, "offsets": 1}  # Spark notes a batch last: its state is there
_LOG_ENDS = {"segments": 1, "raw": 2, "purged.json": 2, "skipped": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """What a backup holds: files, and their bytes."""

    files: int
    bytes: int


def back_up(home: Home, target: Path) -> BackedUp:
    """Copies a home into a new folder, beside streams that run; resets and reshards must wait until it is done.

    What belongs to processes (leases, stop markers) is left out, and so are drafts and locks.

    Args:
        home: the home folder.
        target: a folder that does not exist yet, or is empty; not in the home.

    Raises:
        ConfigError: it has files, or lies in the home.
        StateError: streams feed each other in a circle, so no order of their logs is right.
        OSError: the disk is full, or refuses. The copy is of no use then.
    """
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(f"{target} is not empty", hint="name a new folder")
    if target.resolve().is_relative_to(home.root.resolve()):
        raise ConfigError(f"{target} lies in the home", hint="name a folder beside it")
    target.mkdir(parents=True, exist_ok=True)
    count = size = 0
    for path in _in_order(home):
        copied = _copied(path, target / path.relative_to(home.root))
        count += copied is not None
        size += copied or 0
    return BackedUp(files=count, bytes=size)


def _in_order(home: Home) -> Iterator[Path]:
    """The files of a home; each part is listed when its turn comes, for what came since belongs to later parts."""
    logs = [home.log(name) for name in _fed_first(home)]
    tables, seeds = home.root / "tables", [seeds_folder(log) for log in logs]
    late = [tables, *logs, *seeds]
    rest = [path for path in _files(home.root) if not _is_below(path, late)]
    yield from sorted(rest, key=lambda path: min(map(_start, path.parts)))
    commits = [path for path in _files(tables) if "_delta_log" in path.parts]
    # Which checkpoint is the newest is said first, so that it is there.
    yield from sorted(commits, key=lambda path: path.name != "_last_checkpoint")
    yield from (path for path in _files(tables) if "_delta_log" not in path.parts)
    for log in logs:
        for turn in range(3):
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
        is_of_process = path.name in _OF_PROCESSES or below[:2] == _RUNNING
        if not is_of_process and not is_draft and path.is_file():
            yield path


def _is_below(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _start(part: str) -> int:
    return _STARTS.get(part, len(_STARTS))


def _turn(path: Path) -> int:
    """Notes about segments are copied before these, and what says of segments that they are gone behind them."""
    return _LOG_ENDS.get(path.name, 0)


def _copied(path: Path, target: Path) -> int | None:
    """Copies a file with mode and times; gives its bytes, None when it is gone by now: nothing names it any more."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copy2(path, target)
    except FileNotFoundError:
        return None
    return target.stat().st_size
