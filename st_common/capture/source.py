"""Where the bytes of a replay come from: a file, packed by gzip or not."""

from pathlib import Path
from typing import IO

from st_common.decode.gzipped import MAGIC
from st_common.errors import ConfigError


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
