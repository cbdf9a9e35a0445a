"""Files: changes are appended as lines of JSON below the home's `files/`; a new file is begun by size and by day.

    HOME/files/exports/alarms.20261123T081502.104233Z.ndjson    has reached `rotate_mb`
                       alarms.20261123T194455.831920Z.ndjson    was written until the day ended
                       alarms.20261124T000013.250447Z.ndjson    is written now

A file is named by its delivery and by when it was begun, so names are in the order of changes, and none comes again
when somebody has taken older files away.
"""

import os
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from st_common.config.home import Home
from st_common.config.keys import key
from st_common.config.values import WrongError, flag, number, takes
from st_common.delivery.outcome import Failed, Outcome, Taken
from st_common.delivery.sink import Sink
from st_common.errors import ConfigError, StorageError
from st_common.storage import LocalStorage, make_folder, refused_at

if TYPE_CHECKING:
    from st_common.delivery.message import Messages

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MEGABYTE = 1_000_000
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_PATH = re.compile(rf"{_PART}(/{_PART})*")
_BEGUN = "%Y%m%dT%H%M%S.%fZ"
_OLD = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_NEW = _OLD | os.O_CREAT | os.O_EXCL


@takes("a folder below `HOME/files`", type="string")
def _path(value: object) -> str:
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise WrongError(
            'must be a folder below HOME/files, such as "exports" or "exports/alarms":'
            " letters, digits, . _ and -, no part with a dot in front"
        )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSink(Sink):
    """A folder below the home's `files/`.

    Attributes:
        path: the folder.
        rotate_mb: from so many megabytes on a new file is begun.
        rotate_daily: whether each day in UTC begins a new file.
    """

    kind: ClassVar[str] = "file"

    path: str = field(metadata=key(_path))
    rotate_mb: float | None = field(
        default=256.0, metadata=key(number(above=0.0, off=True))
    )
    rotate_daily: bool = field(default=True, metadata=key(flag))

    def receiver(self, delivery: str, home: Home) -> "Files":
        """See `Sink.receiver`; a link that leads out of the home's `files/` is refused."""
        top = home.root.resolve() / "files"
        folder = (top / self.path).resolve()
        if not folder.is_relative_to(top):
            raise ConfigError(
                f"delivery {delivery!r}: path {self.path!r} leads out of {top}, to {folder}",
                hint="remove the link",
            )
        return Files(self, folder, delivery)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """The file that is appended to."""

    path: Path
    begun: datetime
    file: FileIO

    def is_in_place(self) -> bool:
        """Whether the file still has its name: nobody has removed, moved or replaced it."""
        try:
            named = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self.file.fileno()))


class Files:
    """The files of one delivery in a folder. Changes are acknowledged when they are synced to the disk."""

    def __init__(self, sink: FileSink, folder: Path, delivery: str) -> None:
        self._sink, self._folder, self._delivery = sink, folder, delivery
        self._name = re.compile(
            rf"{re.escape(delivery)}\.(\d{{8}}T\d{{6}}\.\d{{6}}Z)\.ndjson"
        )
        self._open: _Open | None = None

    def send(self, batch: "Messages") -> Outcome:
        """Appends changes and syncs them. What the disk takes a part of is taken back, and tried again."""
        data = b"".join(line + b"\n" for line in batch.lines)
        try:
            current = self._current()
            _append(current.file, data)
            if current.is_in_place():
                return Taken()
        except (OSError, StorageError) as error:
            self.close()
            return Failed(reason=str(refused_at(error, self._folder)))
        self.close()
        return Failed(reason=f"{current.path} was taken away while it was written")

    def close(self) -> None:
        """Closes the file; the next change goes on in it."""
        if self._open is not None:
            self._open.file.close()
            self._open = None

    def _current(self) -> _Open:
        """The file that the next batch goes to."""
        if self._open is None:
            make_folder(self._folder)
            self._open = self._resumed()
        if self._open is None or self._is_full(self._open):
            begun = self._begun_after(self._open)
            self.close()
            self._open = self._opened(begun, _NEW)
        return self._open

    def _resumed(self) -> _Open | None:
        """The newest file, without what a dead process or a power cut has left behind its last whole line."""
        names = [self._name.fullmatch(path.name) for path in self._folder.iterdir()]
        begun = max((name[1] for name in names if name), default=None)
        if begun is None:
            return None
        newest = self._opened(_instant(begun), _OLD)
        newest.file.truncate(_whole_bytes(newest.file))
        os.fsync(newest.file.fileno())
        return newest

    def _is_full(self, last: _Open) -> bool:
        limit_mb = self._sink.rotate_mb
        is_large = limit_mb is not None and _size(last.file) >= limit_mb * _MEGABYTE
        is_old = self._sink.rotate_daily and _now().date() > last.begun.date()
        return is_large or is_old

    def _begun_after(self, last: _Open | None) -> datetime:
        """Now; behind the last file also when the clock was put back."""
        if last is None:
            return _now()
        return max(_now(), last.begun + timedelta(microseconds=1))

    def _opened(self, begun: datetime, flags: int) -> _Open:
        """A file whose name no power cut takes any more."""
        path = self._folder / f"{self._delivery}.{begun.strftime(_BEGUN)}.ndjson"
        file = FileIO(os.open(path, flags, 0o644), "ab+")
        LocalStorage(self._folder).sync("")
        return _Open(path=path, begun=begun, file=file)


def _append(file: FileIO, data: bytes) -> None:
    """Appends all of the data, durable when this returns, or nothing of it.

    Raises:
        OSError: the disk is full, or refuses.
    """
    before = _size(file)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(before)
        raise


def _whole_bytes(file: FileIO) -> int:
    r"""How many bytes there are up to the end of the last whole line.

    {"id": 1}\n {"id": 2}\n {"id            ->  up to the second \n
    {"id": 1}\n \0\0\0\0\0\0\0 2}\n         ->  up to the first \n: JSON has no zeros, a power cut left them
    """
    size = _size(file)
    if not size:
        return 0
    with mmap(file.fileno(), size, access=ACCESS_READ) as content:
        zeros = content.find(b"\0")
        end = size if zeros < 0 else zeros
        return content.rfind(b"\n", 0, end) + 1


def _size(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_size


def _instant(begun: str) -> datetime:
    return datetime.strptime(begun, _BEGUN).replace(tzinfo=UTC)


def _now() -> datetime:
    return _EPOCH + timedelta(microseconds=time.time_ns() // 1000)
