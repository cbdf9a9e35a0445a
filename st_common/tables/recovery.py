"""A table whose newest commits were torn, brought back to the last whole one.

Only for tables that are made from a log: what is cut off is written again by whoever reads the log from the place that
the table names then (SPEC S2). Cut off means moved to `_damaged/`, for people to look at.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from st_common.errors import FairwayError
from st_common.tables.durable import log_name, newest_version
from st_common.tables.handle import forget, required
from st_common.tables.lock import locked

_DAMAGED = "_damaged"
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
        whole = _whole_log(table, before)
        whole = _whole_files(table, whole) if derived else whole
        forget(table)
    if whole == before:
        return None
    then = (
        "are written again from the log" if derived else "had been committed by nobody"
    )
    return f"{table}: versions {whole + 1} to {before} were torn and {then}"


def _whole_log(table: Path, newest: int) -> int:
    """The newest version up to which the log can be read; what is behind it is cut off."""
    torn = [version for version in _versions(table) if _actions(table, version) is None]
    if not torn:
        return newest
    whole = [
        version
        for version in _versions(table)
        if version > torn[0] and version not in torn
    ]
    if whole:
        raise _unusable(
            table, f"version {torn[0]} in its log cannot be read, but later ones can"
        )
    _cut(table, torn[0])
    return torn[0] - 1


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
                table, f"{min(damaged)} is missing or cut, and its commit is old"
            )
        _cut(table, first)
        newest = first - 1
    return newest


def damaged_files(table: Path) -> set[str]:
    """The data files of the newest version that are missing, of another length, or without a Parquet file's end."""
    if newest_version(table) < 0:
        return set()
    forget(table)
    actions = pa.table(required(table).get_add_actions(flatten=True))
    names = [unquote(name) for name in actions["path"].to_pylist()]
    sizes = actions["size_bytes"].to_pylist()
    return {
        name
        for name, size in zip(names, sizes, strict=True)
        if not _is_whole(table / name, size)
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


def _versions(table: Path) -> list[int]:
    return sorted(
        int(path.stem)
        for path in (table / "_delta_log").glob("*.json")
        if path.stem.isdigit()
    )


def _actions(table: Path, version: int) -> list[dict[str, Any]] | None:
    """What a version says, None when it cannot be read."""
    try:
        text = (table / "_delta_log" / log_name(version)).read_text(encoding="utf-8")
        actions = [json.loads(line) for line in text.splitlines()]
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


def _move_away(table: Path, path: Path) -> None:
    target = table / _DAMAGED / path.name
    target.parent.mkdir(exist_ok=True)
    if path.exists():
        path.replace(target)


def _unusable(table: Path, what: str) -> FairwayError:
    return FairwayError(
        f"{table} is damaged: {what}",
        hint="restore the table from a copy, older ones do too, or remove it: it is made again from the log",
    )
