"""Objects as files of a local disk."""

import errno
import fcntl
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from st_common.errors import (
    ConfigError,
    ConflictError,
    FairwayError,
    MissingError,
    StorageError,
)

_DRAFT = ".draft-"
_NUMBER = re.compile(r"\(os error (\d+)\)")


class LocalStorage:
    """Files below a folder; making one touches nothing on disk.

    A new file is written as a draft, synced, and linked to its name, which fails when the name is taken. Then the
    folder is synced. So a name stands for whole bytes at any time, also after a power cut.

        .draft-000000000007.seg.PID.THREAD   write, fsync
        000000000007.seg                     link: the name appears, unless it is taken; then fsync of the folder

    Args:
        root: the folder below which all keys lie.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._thread_lock = threading.RLock()
        self._held: dict[str, int] = {}
        self._durable: set[Path] = set()  # folders that no power cut takes any more

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """See `Storage.read`."""
        try:
            with (self.root / key).open("rb", buffering=0) as file:
                if start:
                    file.seek(start)
                return file.read() if length is None else file.read(length)
        except (FileNotFoundError, NotADirectoryError):
            raise MissingError(f"there is no {self.root / key}") from None
        except OSError as error:
            raise failed(error, self.root / key) from error

    def exists(self, key: str) -> bool:
        """See `Storage.exists`."""
        return (self.root / key).exists()

    def names(self, folder: str) -> list[str]:
        """See `Storage.names`; names that begin with a dot are drafts and locks."""
        try:
            names = os.listdir(self.root / folder)  # noqa: PTH208 - names, not paths
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise failed(error, self.root / folder) from error
        return sorted(name for name in names if not name.startswith("."))

    def create(self, key: str, data: bytes | Iterable[bytes]) -> bool:
        """See `Storage.create`."""
        return self.create_all([(key, data)])

    def create_all(
        self, objects: Iterable[tuple[str, bytes | Iterable[bytes]]]
    ) -> bool:
        """See `Storage.create_all`."""
        drafts: list[tuple[Path, Path]] = []
        try:
            for key, data in objects:
                path = self.root / key
                drafts.append((_draft_of(path), path))
                self._write_draft(drafts[-1][0], data)
            return self._link(drafts)
        except OSError as error:
            raise failed(error, drafts[-1][1] if drafts else self.root) from error
        finally:
            for draft, _ in drafts:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)

    def _link(self, drafts: list[tuple[Path, Path]]) -> bool:
        for number, (draft, path) in enumerate(drafts):
            try:
                os.link(draft, path)
            except FileExistsError:
                # The first name decides: where it is taken, nothing was made.
                if not number:
                    _sync_folder(path.parent)  # who made it may have died before
                    return False
                raise ConflictError(f"{path} was made by somebody else") from None
            _sync_folder(
                path.parent
            )  # each by itself: a power cut leaves no name without those in front of it
        return True

    def _write_draft(
        self, draft: Path, data: bytes | Iterable[bytes], *, private: bool = False
    ) -> None:
        folder = draft.parent
        if folder not in self._durable:
            make_folder(folder)
            self._durable.add(folder)
        try:
            file = draft.open("wb")
        except FileNotFoundError:  # somebody has removed the folder since
            make_folder(folder)
            file = draft.open("wb")
        with file:
            if private:
                os.fchmod(file.fileno(), 0o600)
            for part in [data] if isinstance(data, bytes) else data:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())

    def tagged(self, key: str) -> tuple[bytes, str] | None:
        """See `Storage.tagged`."""
        try:
            data = self.read(key)
        except MissingError:
            return None
        return data, _tag_of(data)

    def replace(self, key: str, data: bytes, *, tag: str | None) -> str:
        """See `Storage.replace`."""
        path = self.root / key
        with self.locked(f"{key}.lock"):
            stored = self.tagged(key)
            if (stored[1] if stored else None) != tag:
                raise ConflictError(f"{path} was replaced by somebody else")
            self.put(key, data)
        return _tag_of(data)

    def put(self, key: str, data: bytes, *, private: bool = False) -> None:
        """See `Storage.put`."""
        path = self.root / key
        draft = _draft_of(path)
        try:
            self._write_draft(draft, data, private=private)
            draft.replace(path)
            _sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise failed(error, path) from error

    def delete(self, key: str) -> None:
        """See `Storage.delete`."""
        try:
            (self.root / key).unlink(missing_ok=True)
        except OSError as error:
            raise failed(error, self.root / key) from error

    def forget(self, folder: str) -> None:
        """See `Storage.forget`."""
        with suppress(OSError):  # gone, or not empty
            (self.root / folder).rmdir()

    def sync(self, folder: str) -> None:
        """See `Storage.sync`."""
        try:
            _sync_folder(self.root / folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise failed(error, self.root / folder) from error

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """See `Storage.locked`; the same thread may enter it again."""
        # The file's lock keeps processes apart; threads of this one wait for each other here.
        with self._thread_lock:
            if name in self._held:
                yield
                return
            fd = self._open_lock(name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                self._held[name] = fd
                yield
            finally:
                self._held.pop(name, None)
                fcntl.flock(
                    fd, fcntl.LOCK_UN
                )  # not by closing alone: a forked child may hold the descriptor too
                os.close(fd)

    def _open_lock(self, name: str) -> int:
        path = self.root / name
        path = path.with_name(f".{path.name}")
        try:
            make_folder(path.parent)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise failed(error, path) from error

    def clear_drafts(self, folder: str) -> int:
        """Removes the drafts that dead writers left directly in a folder; gives how many.

        Call it where no other writer is at work: a draft of one that lives would go too.
        """
        drafts = list((self.root / folder).glob(f"{_DRAFT}*"))
        for draft in drafts:
            draft.unlink(missing_ok=True)
        return len(drafts)


def refused(error: Exception) -> Exception:
    """The error itself, or one for people that names the file when the system refused it.

    Args:
        error: any error; an `OSError` with a file name and one of the numbers that have a hint here is replaced by a
            `StorageError`, or by a `ConfigError` where the path itself cannot be.
    """
    if isinstance(error, ValueError) and str(error) == "embedded null byte":
        return ConfigError("no file has a name with a null character")
    if not isinstance(error, OSError) or error.filename is None:
        return error
    path = Path(os.fsdecode(error.filename2 or error.filename))
    known = error.errno in _HINTS or error.errno in _WRONG
    is_folder = error.errno == errno.EBUSY and path.is_dir()
    return failed(error, path) if known or is_folder else error


def refused_at(error: Exception, path: Path) -> Exception:
    """As `refused`, for an error that names no file, as those of Arrow and delta-rs.

    Args:
        error: any error; delta-rs gives the system's number in its text alone.
        path: the file or table that was worked on.
    """
    match = _NUMBER.search(str(error))
    number = (
        error.errno
        if isinstance(error, OSError) and error.errno
        else int(match[1])
        if match
        else 0
    )
    return (
        failed(OSError(number, os.strerror(number)), path)
        if number in _HINTS
        else error
    )


def failed(error: OSError, path: Path) -> FairwayError:
    """A `StorageError` that says which file the system refused and why, with what to do.

    Where the path itself cannot be, trying again does not help: a `ConfigError`.
    """
    reason = error.strerror or type(error).__name__
    if error.errno == errno.EBUSY and path.is_dir():
        error = OSError(errno.EISDIR, reason)  # `..` cannot be replaced
    if error.errno in _WRONG:
        return ConfigError(f"{path}: {reason}", hint=_WRONG[error.errno])
    hint = _HINTS.get(
        error.errno or 0,
        "the system refused it; nothing was lost of what was stored before",
    )
    return StorageError(f"{path}: {reason}", hint=hint)


_HINTS = {
    errno.ENOSPC: "free some space; whoever wrote goes on where it was",
    errno.EDQUOT: "the quota is used up; whoever wrote goes on where it was",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "give this user the right to write there",
    errno.EFBIG: "a limit on the size of files is in the way",
    errno.EIO: "the disk reports an error; look at the system's log",
}


_WRONG = {
    errno.EISDIR: "it is a folder, and a file is to stand there",
    errno.ENOTDIR: "a file stands where a folder is to be",
    errno.EEXIST: "something else has this name",
    errno.ENAMETOOLONG: "no file can have so long a name",
}


def _draft_of(path: Path) -> Path:
    return path.with_name(f"{_DRAFT}{path.name}.{os.getpid()}.{threading.get_ident()}")


def bytes_below(folder: Path) -> int:
    """The bytes of all files in a folder and those below it, while others write there."""
    return sum(map(_bytes_of, folder.rglob("*")))


def _bytes_of(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a writer's draft that has its name by now
        return 0


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, where they are missing, each one durable in the one that holds it.

    The lowest that is there already is made durable too: who made it may have died before it was. Those above it are,
    for nobody puts anything into a folder that is not.

    Raises:
        OSError: the system refuses; see `refused`.
    """
    missing = [folder]
    while not missing[-1].exists():
        missing.append(missing[-1].parent)
    _sync_if_ours(missing.pop().parent)
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def _sync_if_ours(folder: Path) -> None:
    """Makes a folder durable, if it can be one that we have made: not one that we may not read, nor a read-only one."""
    try:
        _sync_folder(folder)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:  # that of a descriptor names no file
        raise OSError(error.errno, error.strerror, str(folder)) from error
    finally:
        os.close(fd)


def _tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
