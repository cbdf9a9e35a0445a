"""A table whose newest commits were torn, brought back to the last whole one.

Only for tables that are made from a log: what is cut off is written again by whoever reads the log from the place that
the table names then (SPEC S2). Cut off means moved to `_damaged/`, for people to look at.
"""

import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from st_common.errors import FairwayError
from st_common.tables.durable import (
    checkpointed,
    log_name,
    newest_version,
    sync_before,
    sync_cut,
)
from st_common.tables.files import checksum_in
from st_common.tables.foreign import unsupported
from st_common.tables.handle import at_version, forget, required
from st_common.tables.lock import locked
from st_common.tables.sums import changed_in_log, trim_sums

_DAMAGED = "_damaged"
_LOG = "_delta_log"
_PARQUET_END = b"PAR1"


def recover(table: Path, *, derived: bool = True) -> str | None:
    """Brings a table back to its newest version that is whole (SPEC S2).

    Whole is a version whose file in the log can be read, and all of whose data files are there with their length. What
    is behind it is moved to `_damaged/` in the table's folder.

    Args:
        table: the table's folder; nothing happens when there is no table.
        derived: the table is made from a log, which writes again what is cut off. Another table loses no version that
            can be read.

    Returns:
        What was cut off, as a line for people; None when nothing was.

    Raises:
        FairwayError: an older commit is damaged, which whole ones were built on.
    """
    if not (table / "_delta_log").is_dir():
        return None
    with locked(table):
        before = newest_version(table)
        # Checkpoints first: without a torn one the log can still be read from its beginning.
        _cut_checkpoints(table)
        whole = _whole_log(table, before, derived=derived)
        whole = _whole_files(table, whole) if derived else whole
        forget(table)
        # Who committed last may have been killed before it was durable, and now somebody goes on from there.
        sync_before(table)
    if whole == before:
        return None
    trim_sums(table)
    then = (
        "are written again from the log" if derived else "had been committed by nobody"
    )
    return f"{table}: versions {whole + 1} to {before} were torn and {then}"


def _whole_log(table: Path, newest: int, *, derived: bool) -> int:
    """The newest version up to which the log can be read; what is behind it is cut off."""
    first = _first_torn(table)
    if first is None:
        return newest
    later = [one for one in _versions(table) if one > first]
    if any(_actions(table, one) is not None for one in later):
        what = (
            f"version {first} in its log {_how(table, first)}, but later ones are whole"
        )
        raise _unusable(table, what, derived=derived)
    _cut(table, first)
    return first - 1


def _first_torn(table: Path) -> int | None:
    """The first version that the log should have, and that is missing or cannot be read; None for none.

    It should have all behind its checkpoint; of those before it as many as nobody has cleaned away.
    """
    versions = _versions(table)
    torn = [one for one in versions if _actions(table, one) is None]
    begins = checkpointed(table) + 1
    missing = {*range(begins, max(versions, default=-1))} - {*versions}
    return min({*torn, *missing}, default=None)


def _how(table: Path, version: int) -> str:
    is_there = (table / _LOG / log_name(version)).exists()
    return "cannot be read" if is_there else "is missing"


def _whole_files(table: Path, newest: int) -> int:
    """The newest version all of whose files are whole."""
    while newest >= 0:
        damaged = damaged_files(table)
        if not damaged:
            return newest
        first = next(
            (
                version
                for version in _versions(table)
                if _adds(table, version) & damaged
            ),
            None,
        )
        if first is None:
            raise _unusable(
                table,
                f"{min(damaged)} is missing or cut, and its commit is old",
                derived=True,
            )
        _cut(table, first)
        newest = first - 1
    return newest


def damage(table: Path) -> list[str]:
    """What is wrong with the bytes of a table's newest version, for people; all of them are read.

    Found are files that are missing or cut, data files that are not what their names say, and files of its log that are
    not what was noted of them. A file that another program or an older version wrote has no checksum: it is only
    looked at as `damaged_files` does.

    Args:
        table: the table's folder; where there is no table nothing is wrong.
    """
    if newest_version(table) < 0:
        return []
    newest_checkpoint = checkpointed(table)
    said = [
        f"{_LOG}/{name} was changed"
        for name in changed_in_log(table)
        if not name.endswith(".json") or int(name[:20]) > newest_checkpoint
    ]
    torn = _first_torn(table)
    if not said and torn is not None and torn > newest_checkpoint:
        said.append(f"{_LOG}/{log_name(torn)} {_how(table, torn)}")
    if said:
        return said
    try:
        return [
            f"{name} is missing, cut or changed"
            for name in sorted(damaged_files(table, thorough=True))
        ]
    except FairwayError as error:
        # What another program has turned on is no damage, and nothing is to be cut off for it.
        return [] if unsupported(error.__cause__) else [error.message]
    except DeltaError as error:
        return [f"its log cannot be read: {str(error).splitlines()[0]}"]


def whole_version(table: Path) -> int:
    """The newest version of a table whose log and data files are what was written, all of their bytes; -1 for none.

    Nothing is changed: see `cut_behind`.
    """
    changed = [int(name[:20]) for name in changed_in_log(table)]
    torn = _first_torn(table)
    changed += [] if torn is None else [torn]
    version = min([newest_version(table), *(number - 1 for number in changed)])
    while version >= 0:
        try:
            damaged = damaged_files(table, version=version, thorough=True)
        except DeltaError:
            return -1
        if not damaged:
            return version
        first = next(
            (one for one in _versions(table) if _adds(table, one) & damaged), 0
        )
        version = min(first, version) - 1
    return version


def cut_behind(table: Path, version: int) -> None:
    """Takes a table back to a version, or away when that is -1; what is cut off lies in `_damaged/` beside or in it."""
    with locked(table):
        if version < 0:
            aside = table.with_name(f".{table.name}{_DAMAGED}")
            shutil.rmtree(aside, ignore_errors=True)
            table.replace(aside)
        else:
            _cut(table, version + 1)
            _cut_checkpoints(table)
            trim_sums(table)
        forget(table)


def committed_at(table: Path, version: int, app: str) -> int | None:
    """As `committed`, of an older version; None for version -1."""
    if version < 0:
        return None
    return at_version(table, version).transaction_version(app)


def damaged_files(
    table: Path, *, version: int | None = None, thorough: bool = False
) -> set[str]:
    """The data files of a version that are missing, of another length, or without a Parquet file's end.

    Args:
        table: the table's folder.
        version: which one; None: the newest.
        thorough: also those whose bytes are not what their names say; all of them are read.
    """
    if newest_version(table) < 0:
        return set()
    forget(table)
    opened = required(table) if version is None else at_version(table, version)
    actions = pa.table(opened.get_add_actions(flatten=True))
    names = [unquote(name) for name in actions["path"].to_pylist()]
    sizes = actions["size_bytes"].to_pylist()
    return {
        name
        for name, size in zip(names, sizes, strict=True)
        if not _is_whole(table / name, size)
        or (thorough and not _is_unchanged(table / name))
    }


def _is_whole(path: Path, size: int) -> bool:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                return False
            file.seek(-len(_PARQUET_END), os.SEEK_END)
            return file.read() == _PARQUET_END
    except OSError:
        return False


def _is_unchanged(path: Path) -> bool:
    expected, found = checksum_in(path.name), 0
    if expected is None:
        return True
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                found = zlib.crc32(part, found)
    except OSError:
        return False
    return found == expected


def _versions(table: Path) -> list[int]:
    return sorted(
        int(path.stem)
        for path in (table / "_delta_log").glob("*.json")
        if path.stem.isdigit()
    )


def _actions(table: Path, version: int) -> list[dict[str, Any]] | None:
    """What a version says, None when it cannot be read."""
    try:
        # As bytes: a text would end at U+2028 too, which statistics of ids have as it is.
        content = (table / "_delta_log" / log_name(version)).read_bytes()
        actions = [json.loads(line) for line in content.splitlines()]
    except (OSError, ValueError):
        return None
    return actions or None


def _adds(table: Path, version: int) -> set[str]:
    return {
        unquote(action["add"]["path"])
        for action in _actions(table, version) or []
        if "add" in action
    }


def _cut_checkpoints(table: Path) -> None:
    """Removes checkpoints that cannot be read: the log before them is still there, or the table is beyond repair."""
    pointer = table / "_delta_log" / "_last_checkpoint"
    torn = [path for path in _checkpoints(table) if not _is_parquet(path)]
    for path in torn:
        _move_away(table, path)
    try:
        pointed = int(json.loads(pointer.read_bytes())["version"])
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        pointed = None
    if pointed is None or not any(
        path.name.startswith(f"{pointed:020d}") for path in _checkpoints(table)
    ):
        _move_away(table, pointer)


def _checkpoints(table: Path) -> Iterator[Path]:
    return (table / "_delta_log").glob("*.checkpoint*.parquet")


def _is_parquet(path: Path) -> bool:
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid):
        return False
    return True


def _cut(table: Path, first: int) -> None:
    """Moves the versions from `first` on away, newest first, with the checkpoints that build on them."""
    folder = table / "_delta_log"
    for path in _checkpoints(table):
        if int(path.name[:20]) >= first:
            _move_away(table, path)
            _move_away(table, folder / "_last_checkpoint")
    for version in reversed(_versions(table)):
        if version >= first:
            _move_away(table, folder / log_name(version))
    sync_cut(table)


def _move_away(table: Path, path: Path) -> None:
    target = table / _DAMAGED / path.name
    target.parent.mkdir(exist_ok=True)
    if path.exists():
        path.replace(target)


def _unusable(table: Path, what: str, *, derived: bool) -> FairwayError:
    way_out = (
        "`fairway doctor --repair` has it written again from the log, if that goes back so far; "
        if derived
        else ""
    )
    return FairwayError(
        f"{table} is damaged: {what}",
        hint=f"{way_out}restore the table from a copy, older ones do too",
    )
