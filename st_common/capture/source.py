"""Where the bytes of a replay come from: a file, packed by gzip or not, a folder, a pipe, standard input."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from st_common.decode.gzipped import MAGIC
from st_common.errors import ConfigError, StorageError

STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that can be read again and again, and what people call it."""

    path: Path
    name: str


def is_packed(raw: IO[bytes]) -> bool:
    """Whether an open file begins like gzip; it stands at its start again."""
    packed = raw.read(len(MAGIC)) == MAGIC
    raw.seek(0)
    return packed


def open_file(path: Path) -> IO[bytes]:
    """A file opened for reading.

    Raises:
        ConfigError: it is absent, or cannot be read.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


@contextmanager
def files_to_read(path: Path) -> Iterator[list[NamedFile]]:
    """The files that a path names: see `files_of`; `-` is standard input.

    Standard input and named pipes are read to their end first, into a file that is there as long as the context is: a
    file is looked at before any of it goes into a log, and Parquet says at its end what is in it.

    Raises:
        ConfigError: it cannot be read, or the folder holds no file.
        StorageError: there is no room for what comes by a pipe.
    """
    if path != STANDARD_INPUT and not path.is_fifo():
        yield [NamedFile(each, str(each)) for each in files_of(path)]
        return
    name = "standard input" if path == STANDARD_INPUT else str(path)
    with tempfile.NamedTemporaryFile(prefix="fairway-") as kept:
        with _opened_pipe(path) as pipe:
            _keep(pipe, kept, name)
        yield [NamedFile(Path(kept.name), name)]


def _opened_pipe(path: Path) -> IO[bytes]:
    if path != STANDARD_INPUT:
        return open_file(path)
    if sys.stdin is None:
        raise ConfigError("there is no standard input", hint="name a file")
    return sys.stdin.buffer


def _keep(pipe: IO[bytes], kept: IO[bytes], name: str) -> None:
    try:
        shutil.copyfileobj(pipe, kept)
        kept.flush()
    except OSError as error:
        raise StorageError(
            f"cannot keep {name} in {tempfile.gettempdir()}: {error.strerror}",
            hint="TMPDIR names a folder with more room",
        ) from None


def files_of(path: Path) -> list[Path]:
    """A file itself; of a folder its files in the order of their names, without hidden ones and folders in it.

    Raises:
        ConfigError: the folder holds no file.
    """
    if not path.is_dir():
        return [path]
    shown = (each for each in path.iterdir() if not each.name.startswith("."))
    files = sorted(each for each in shown if each.is_file())
    if not files:
        raise ConfigError(
            f"{path} holds no file", hint="name a file, or another folder"
        )
    return files
