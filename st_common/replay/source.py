"""Where the bytes of a replay come from: a file, packed or not, a folder, a zip, a pipe, standard input."""

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from st_common.decode.gzipped import MAGIC, GzipSource
from st_common.errors import ConfigError, StorageError
from st_common.formats.format_settings import Source
from st_common.replay.text import HEAD_BYTES, Resumed, as_text
from st_common.replay.zipped import (
    MemberSource,
    is_zip,
    members_of,
    opened_member,
    zip_above,
)

_PACKED = (".gz", ".zip")

STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that can be read again and again, and what people call it."""

    path: Path
    name: str


class Opened:
    """An open file as formats read it: unpacked, and as UTF-8 with line feeds where it is text.

    Attributes:
        source: its bytes.
        head: its first bytes, 64 KiB at most.
        plain: the file itself, where `source` is that, so that it can be read from any place on; else None.
        size: how many bytes it takes on disk.
    """

    def __init__(
        self,
        base: IO[bytes] | MemberSource,
        size: int,
        encoding: str | None,
        name: str = "what came",
    ) -> None:
        self._base = _Counted(base)
        self._packed: GzipSource | None = None
        head = self._base.read(HEAD_BYTES)
        source: Source = Resumed(head, self._base)
        if head.startswith(MAGIC):
            self._packed = GzipSource(source, name)
            head = self._packed.read(HEAD_BYTES)
            source = Resumed(head, self._packed)
        text = as_text(head, source, encoding)
        if text is not None:
            head = text.read(HEAD_BYTES)
            text = Resumed(head, text)
        self.plain: IO[bytes] | None = None
        if not isinstance(base, MemberSource) and self._packed is None and text is None:
            base.seek(0)
            self.plain = base
        self.source: Source = self.plain or text or source
        self.head, self.size = head, size

    @property
    def broken(self) -> bool:
        """Whether it is packed, and ended or broke early."""
        packed = self._packed is not None and self._packed.broken
        return packed or getattr(self._base.base, "broken", False)

    @property
    def read_bytes(self) -> int:
        """How many bytes of the file have been read; of a member of a zip, as they are unpacked."""
        return self._base.count if self.plain is None else self.plain.tell()


class _Counted:
    """A source that counts what was read of it."""

    def __init__(self, base: Source) -> None:
        self.base, self.count = base, 0

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most."""
        data = self.base.read(size)
        self.count += len(data)
        return data


@contextmanager
def opened(path: Path, *, encoding: str | None = None) -> Iterator[Opened]:
    """A file, or a file in a zip, opened for reading.

    Args:
        path: it; of a file in a zip, its name behind the path of the zip.
        encoding: of its text, where that is known.

    Raises:
        ConfigError: it is absent, or cannot be read or unpacked.
    """
    archive = None if path.is_file() else zip_above(path)
    if archive is not None:
        with opened_member(path, archive) as (member, size):
            yield Opened(member, size, encoding, str(path))
        return
    with open_file(path) as file:
        yield Opened(file, size_of(path), encoding, str(path))


def opened_bytes(data: bytes, *, encoding: str | None = None) -> Opened:
    """Bytes as a file that holds them."""
    return Opened(io.BytesIO(data), len(data), encoding)


def on_disk(path: Path) -> Path:
    """The file itself; of a file in a zip, the zip."""
    return path if path.exists() else zip_above(path) or path


def size_of(path: Path) -> int:
    """How many bytes a file has; 0 of what is none by itself."""
    return path.stat().st_size if path.is_file() else 0


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
    """The files that a path names: see `files_of`; `-` is standard input. Those of a zip are files like others.

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
        inside = files_of(Path(kept.name))
        yield [NamedFile(each, _called(each, Path(kept.name), name)) for each in inside]


def _called(path: Path, kept: Path, name: str) -> str:
    """What people call a file that came by a pipe, or one in a zip that did."""
    inside = path.relative_to(kept).as_posix()
    return name if inside == "." else f"{name}: {inside}"


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

    In place of a zip stand the files in it.

    Raises:
        ConfigError: the folder or the zip holds no file.
    """
    if not path.is_dir():
        return members_of(path) if is_zip(path) else [path]
    shown = (each for each in path.iterdir() if not each.name.startswith("."))
    files = sorted(each for each in shown if each.is_file())
    if not files:
        raise ConfigError(
            f"{path} holds no file", hint="name a file, or another folder"
        )
    return [each for file in files for each in files_of(file)]


def name_of(path: Path) -> str:
    """The name of a file without its endings: `trip` of `trip.csv.gz`."""
    return (path.with_suffix("") if path.suffix in _PACKED else path).stem
