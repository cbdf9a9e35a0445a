"""Files in a zip: each by a path that goes on behind that of the zip, `AIS_2024.zip/AIS_2024_05_01.csv`.

A member is unpacked as it is read and never written anywhere, so its name can do no harm, and neither can its size.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from st_common.decode.gzipped import require_no_bomb
from st_common.errors import ConfigError, one_line

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_ENCRYPTED = 1  # a flag of a member
_SHOWN = 8
_SHEETS, _MARKS = "[Content_Types].xml", ("doc.kml",)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)


class MemberSource:
    """The bytes of a member; `broken` tells that they ended early, or are not those that were packed."""

    def __init__(self, member: IO[bytes]) -> None:
        self.broken = False
        self._member = member

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end or behind a break."""
        if self.broken:
            return b""
        try:
            return self._member.read(size)
        except _BROKEN:
            self.broken = True
            return b""


def is_zip(path: Path) -> bool:
    """Whether a file begins like a zip."""
    try:
        with path.open("rb") as file:
            return file.read(4) in MAGIC
    except OSError:
        return False


def zip_above(path: Path) -> Path | None:
    """The zip whose member a path names; None where it names no member of one."""
    for parent in path.parents:
        if parent.is_file():
            return parent if is_zip(parent) else None
    return None


def members_of(path: Path) -> list[Path]:
    """The files in a zip, in the order of their names, without folders and what is hidden.

    Raises:
        ConfigError: it is no whole zip, is a workbook or a map, holds no file, or two of one name.
    """
    with _opened(path) as archive:
        names = sorted(_by_name(path, archive))
    return [path / name for name in names]


@contextmanager
def opened_member(path: Path, archive_path: Path) -> Iterator[tuple[MemberSource, int]]:
    """A member of a zip, and how many bytes it takes there.

    Raises:
        ConfigError: there is none of that name, it is encrypted, packed in a way that is not known, or a bomb.
    """
    name = path.relative_to(archive_path).as_posix()
    with _opened(archive_path) as archive:
        members = _by_name(archive_path, archive)
        if name not in members:
            raise ConfigError(
                f"{archive_path} holds no {shown_name(name)}",
                hint=f"it holds {shown_names(sorted(members))}",
            )
        info = members[name]
        _check(info, path)
        try:
            with archive.open(info) as member:
                yield MemberSource(member), info.compress_size
        except (NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
            raise ConfigError(
                f"{shown_name(str(path))} cannot be unpacked: {error}",
                hint="unpack it, and name the file",
            ) from None


def shown_names(names: list[str]) -> str:
    """Some names for people, in one line."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(shown_name, names[:_SHOWN])) + more


def shown_name(name: str) -> str:
    """A name from outside for people, in one line."""
    return one_line(name)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise ConfigError(
            f"{path} is no whole zip: {error}", hint="is the file complete?"
        ) from None
    with archive:
        yield archive


def _by_name(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by names that lead nowhere else: without a root, and without steps upwards."""
    infos = [info for info in archive.infolist() if not info.is_dir()]
    _refuse_others(path, {info.filename for info in infos})
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        steps = info.filename.replace("\\", "/").split("/")
        steps = [step for step in steps if step not in ("", ".", "..")]
        if not steps or steps[0] == "__MACOSX" or steps[-1].startswith("."):
            continue
        name = "/".join(steps)
        if name in members:
            raise ConfigError(
                f"{path} holds two files called {shown_name(name)}",
                hint="unpack it, and name a file",
            )
        members[name] = info
    if not members:
        raise ConfigError(f"{path} holds no file", hint="name another file")
    return members


def _refuse_others(path: Path, names: set[str]) -> None:
    """What is packed as a zip, and is something else."""
    if _SHEETS in names:
        raise ConfigError(
            f"{path} is a workbook or a document of an office program",
            hint="save its sheet as CSV",
        )
    if names & set(_MARKS):
        raise ConfigError(
            f"{path} is a KMZ map, which holds no records",
            hint="`fairway layer load` reads layers",
        )


def _check(info: zipfile.ZipInfo, path: Path) -> None:
    name = shown_name(str(path))
    if info.flag_bits & _ENCRYPTED:
        raise ConfigError(f"{name} is encrypted", hint="unpack it, and name the file")
    require_no_bomb(name, info.compress_size, info.file_size)
