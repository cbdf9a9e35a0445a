"""Old versions of a table that is replaced as a whole, and whose versions are asked for by their numbers.

    version     1   2   3   4   5   6      6 is the newest; kept are 3, 5 and it
    files       .   .   x   .   x   x      those of no other version go
    commits     .   .   x   x   x   x      those before the oldest that is kept go, behind a checkpoint of it

Nothing is committed, so no version gets another number. Delta's own `VACUUM` commits twice.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from deltalake import DeltaTable

from st_common.tables.active import active_files
from st_common.tables.durable import sync_log
from st_common.tables.handle import at_version, required
from st_common.tables.lock import locked
from st_common.tables.reading import whole
from st_common.tables.steps import takes_out
from st_common.tables.sums import trim_sums

_LOG = "_delta_log"
_DIGITS = 20  # of the number that the names of Delta's commits begin with


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What went with old versions: data files, and their bytes."""

    files: int = 0
    bytes: int = 0


def drop_versions(
    path: Path, keep: Collection[int], *, before: datetime, dry: bool = False
) -> Dropped:
    """Deletes what only old versions of a table hold. Killed anywhere it leaves those that are kept whole.

    Args:
        path: the table's folder.
        keep: versions that stay, beside the newest.
        before: versions that were replaced later stay too, and so do younger files.
        dry: only say what would go.

    Raises:
        FairwayError: there is no table.
    """
    with locked(path):
        table = required(path)
        kept = sorted({*keep, table.version(), *_replaced_since(table, before)})
        known = _whole(path, _with_all_files(path, kept))
        if kept[0] not in known:
            known = _whole(path, kept)
        named = {
            path / file.path for one in known.values() for file in active_files(one)
        }
        gone = [
            file
            for file in _data_files(path)
            if file not in named and file.stat().st_mtime < before.timestamp()
        ]
        dropped = Dropped(
            files=len(gone), bytes=sum(file.stat().st_size for file in gone)
        )
        if not dry:
            for file in gone:
                file.unlink()
            _trim_log(path, min(known))
    return dropped


def _whole(path: Path, versions: Collection[int]) -> dict[int, DeltaTable]:
    opened = {number: whole(path, number) for number in versions}
    return {number: one for number, one in opened.items() if one is not None}


def _with_all_files(path: Path, kept: Sequence[int]) -> list[int]:
    """The oldest of some versions, and those that have all files of the ones before them.

    Of versions that only appended the last one has the files of all: a table that is put to has very many of these.

        kept 3 4 5 8, and 7 took files out   ->   3, 5, 8
    """
    pairs = pairwise(kept)
    lasting = [one for one, after in pairs if takes_out(path, one, after)]
    return sorted({kept[0], *lasting, kept[-1]})


def _replaced_since(table: DeltaTable, before: datetime) -> Iterator[int]:
    """The versions that were the newest at some time since `before`."""
    since_ms = before.timestamp() * 1000
    for commit in table.history():
        if commit["timestamp"] >= since_ms and commit["version"] > 0:
            yield commit["version"] - 1


def _data_files(path: Path) -> Iterator[Path]:
    for file in sorted(path.rglob("*.parquet")):
        if _LOG not in file.relative_to(path).parts:
            yield file


def _trim_log(path: Path, oldest: int) -> None:
    """Deletes the commits before a version, which a checkpoint holds as it is."""
    log = path / _LOG
    before = [file for file in sorted(log.glob("[0-9]*")) if _number(file) < oldest]
    if not before:
        return
    if not (log / f"{oldest:0{_DIGITS}d}.checkpoint.parquet").exists():
        at_version(path, oldest).create_checkpoint()
        # Readers begin at the checkpoint that is named last.
        required(path).create_checkpoint()
        sync_log(path)
    for file in before:
        file.unlink()
    sync_log(path)
    trim_sums(path)


def _number(file: Path) -> int:
    return int(file.name[:_DIGITS])
