"""What queries knew when they were registered FROM somewhere, kept beside the log that names it.

    streams/S/log/..           a registration of q whose seed is 9f86d0..
    streams/S/seeds/9f86d0..

An id is the checksum of the bytes, so that the log says which bytes it means.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from st_common.controls.reading import chosen
from st_common.controls.rows import ControlRow, Register
from st_common.errors import LogError, MissingError
from st_common.storage import LocalStorage

_FOLDER = "seeds"


def seeds_folder(log_folder: Path) -> Path:
    """Where the seeds of a stream lie whose log lies there."""
    return log_folder.parent / _FOLDER


def keep_seed(log_folder: Path, seed: bytes) -> str:
    """Keeps a seed, durable when this returns, and gives its id.

    Args:
        log_folder: where the log of the stream lies.
        seed: the bytes.

    Raises:
        StorageError: the disk is full, or refuses.
    """
    seed_id = hashlib.sha256(seed).hexdigest()
    LocalStorage(seeds_folder(log_folder)).put(seed_id, seed)
    return seed_id


def seeds_in(log_folder: Path, rows: Sequence[ControlRow]) -> dict[str, bytes]:
    """The seeds that rows of a control segment name, by the names of their queries.

    Args:
        log_folder: where the log of the stream lies.
        rows: the rows.

    Raises:
        LogError: one is not there, or is not the one that the row means.
    """
    return {
        row.query: _seed(log_folder, row.query, row.seed)
        for _, row in chosen(rows, Register)
        if row.seed is not None
    }


def _seed(log_folder: Path, query: str, seed_id: str) -> bytes:
    path = seeds_folder(log_folder) / seed_id
    try:
        seed = LocalStorage(path.parent).read(seed_id)
    except MissingError:
        seed = b""
    if hashlib.sha256(seed).hexdigest() != seed_id:
        raise LogError(
            f"what query {query!r} knew when it was registered is missing or damaged: {path}",
            hint="restore the file from a copy",
        )
    return seed
