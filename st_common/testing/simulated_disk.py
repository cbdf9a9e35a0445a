"""A disk in memory that forgets what was not synced, and the part of `pathlib`, `os` and `fcntl` that reaches it.

The real adapter of storage, leases and journals run on it. What is visible to others is not durable before it was
synced, neither the bytes of a file nor the names in a folder: a power cut keeps some names and loses others, whatever
came first, and leaves a file that was not synced empty, cut, full of zeros, or whole.
"""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from errno import EAGAIN, EEXIST, ENOENT
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Self

from st_common.testing.simulated import Actor, World


@dataclass(eq=False, slots=True)
class Inode:
    """A file or a folder: its bytes, and those that a power cut leaves; None when none of them were synced."""

    is_folder: bool = False
    data: bytes = b""
    durable: bytes | None = None


Names = dict[str, Inode]
_HOME = "home"


class SimulatedDisk:
    """Folders of names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._there: dict[str, Names] = {"": {_HOME: Inode(is_folder=True)}, f"/{_HOME}": {}}
        self._durable = {folder: dict(names) for folder, names in self._there.items()}
        self._unsynced: list[tuple[str, dict[str, Inode | None]]] = []
        self._holders: dict[str, Handle] = {}

    @property
    def root(self) -> "SimulatedPath":
        """The folder of a home: durable, and empty at first."""
        return SimulatedPath(self, f"/{_HOME}")

    def cut(self) -> None:
        """A power cut: what was not synced is there afterwards in part, and nobody holds a lock."""
        rng = self.world.rng
        for folder, names in self._unsynced:
            if rng.random() < 0.5:
                _change(self._durable.setdefault(folder, {}), names)
        there: dict[str, Names] = {}
        folders = [""]
        while folders:
            folder = folders.pop()
            there[folder] = dict(self._durable.setdefault(folder, {}))
            for name, inode in there[folder].items():
                if inode.is_folder:
                    folders.append(f"{folder}/{name}")
                elif inode.data != inode.durable:
                    inode.data = inode.durable = self._left_of(inode)
        self._there, self._unsynced, self._holders = there, [], {}
        self._durable = {folder: dict(names) for folder, names in there.items()}

    def _left_of(self, inode: Inode) -> bytes:
        rng, data = self.world.rng, inode.data
        return rng.choice((inode.durable or b"", data, data[: rng.randint(0, len(data))], b"\0" * len(data)))

    def inode(self, path: str) -> Inode | None:
        """What has a name; None for nothing."""
        folder, _, name = path.rpartition("/")
        return self._there.get(folder, {}).get(name)

    def names(self, path: str) -> list[str]:
        """The names in a folder.

        Raises:
            FileNotFoundError: there is none.
        """
        if path not in self._there:
            raise FileNotFoundError(ENOENT, "no such folder", path)
        return list(self._there[path])

    def change(self, folder: str, names: dict[str, Inode | None]) -> None:
        """Gives and takes names in a folder, all at once.

        Raises:
            FileNotFoundError: there is no such folder.
        """
        if folder not in self._there:
            raise FileNotFoundError(ENOENT, "no such folder", folder)
        _change(self._there[folder], names)
        for name, inode in names.items():
            if inode is not None and inode.is_folder:
                self._there.setdefault(f"{folder}/{name}", {})
        self._unsynced.append((folder, names))

    def is_unsynced(self, folder: str, suffix: str) -> bool:
        """Whether a name in a folder that ends so is there, and is not durable yet."""
        return any(at == folder and name.endswith(suffix) for at, names in self._unsynced for name in names)

    def sync(self, folder: str) -> None:
        """Makes the names in a folder durable."""
        for at, names in self._unsynced:
            if at == folder:
                _change(self._durable.setdefault(folder, {}), names)
        self._unsynced = [change for change in self._unsynced if change[0] != folder]

    def copy(self, folder: str, other: "SimulatedDisk") -> None:
        """Copies a folder, with all below it, to the same place on another disk."""
        SimulatedPath(other, folder).mkdir(parents=True, exist_ok=True)
        for name, inode in self._there.get(folder, {}).items():
            if inode.is_folder:
                self.copy(f"{folder}/{name}", other)
            else:
                other.change(folder, {name: Inode(data=inode.data)})

    def hold(self, handle: "Handle", *, wait: bool) -> None:
        """Takes the lock of a file for an open handle, as `flock` does.

        Raises:
            BlockingIOError: somebody else holds it, and `wait` is off.
        """
        while self._is_held(handle):
            if not wait:
                raise BlockingIOError(EAGAIN, "somebody else holds it", handle.path)
            self.world.pause()
        self._holders[handle.path] = handle

    def _is_held(self, handle: "Handle") -> bool:
        holder = self._holders.get(handle.path)
        return holder is not None and holder is not handle and (holder.actor is None or not holder.actor.is_done)

    def let_go(self, handle: "Handle") -> None:
        """Gives the lock back, if the handle holds it."""
        if self._holders.get(handle.path) is handle:
            del self._holders[handle.path]


def _change(names: Names, changes: dict[str, Inode | None]) -> None:
    for name, inode in changes.items():
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


class Handle:
    """An open file or folder."""

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode | None, *, is_shared: bool = False) -> None:
        self.disk, self.path = disk, path
        self.actor: Actor | None = disk.world.here
        self._inode, self._at, self._is_shared = inode, 0, is_shared

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def fileno(self) -> Self:
        """What `System.fsync` and `System.flock` take."""
        return self

    def seek(self, at: int) -> None:
        """Reads from there on."""
        self._at = at

    def read(self, length: int = -1) -> bytes:
        """The bytes from where it stands."""
        data = self._file().data[self._at :]
        data = data if length < 0 else data[:length]
        self._at += len(data)
        return data

    def write(self, data: bytes) -> None:
        """Adds bytes; others see them at once."""
        if self._is_shared:
            self.disk.world.pause()
        self._file().data += data

    def truncate(self, length: int) -> None:
        """Lets go of the bytes behind."""
        self.disk.world.pause()
        self._file().data = self._file().data[:length]

    def flush(self) -> None:
        """Nothing is held back."""

    def sync(self) -> None:
        """Makes the bytes of a file durable, or the names in a folder."""
        if self._inode is None:
            self.disk.sync(self.path)
        else:
            self._inode.durable = self._inode.data

    def close(self) -> None:
        """Gives back its lock."""
        self.disk.let_go(self)

    def _file(self) -> Inode:
        assert self._inode is not None  # noqa: S101 - who asks has opened a file
        return self._inode


class SimulatedPath:
    """What of `pathlib.Path` is asked of a home."""

    __slots__ = ("_disk", "_text")

    def __init__(self, disk: SimulatedDisk, text: str) -> None:
        self._disk, self._text = disk, text

    def __truediv__(self, more: object) -> "SimulatedPath":
        return SimulatedPath(self._disk, f"{self._text}/{more}") if str(more) not in ("", ".") else self

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"SimulatedPath({self._text})"

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulatedPath) and other._text == self._text

    def __lt__(self, other: "SimulatedPath") -> bool:
        return self._text < other._text

    @property
    def disk(self) -> SimulatedDisk:
        """Where it lies."""
        return self._disk

    @property
    def name(self) -> str:
        """Its last part."""
        return self._text.rpartition("/")[2]

    @property
    def parent(self) -> "SimulatedPath":
        """The folder that it lies in."""
        return SimulatedPath(self._disk, self._text.rpartition("/")[0])

    def with_name(self, name: str) -> "SimulatedPath":
        """Another one in the same folder."""
        return self.parent / name

    def exists(self) -> bool:
        """Whether something has this name."""
        self._disk.world.glance()
        return self._disk.inode(self._text) is not None

    def glob(self, pattern: str) -> Iterator["SimulatedPath"]:
        """What lies directly in this folder and has such a name."""
        self._disk.world.glance()
        names = self._disk.names(self._text) if self._disk.inode(self._text) else []
        return (self / name for name in names if fnmatchcase(name, pattern))

    def read_bytes(self) -> bytes:
        """All of it."""
        with self.open("rb") as file:
            return file.read()

    def read_text(self, encoding: str) -> str:
        """All of it."""
        return self.read_bytes().decode(encoding)

    def open(self, mode: str, buffering: int = -1) -> Handle:  # noqa: ARG002 - nothing is held back
        """Opens a file; `w` makes a new one, `a` adds to what is there.

        Raises:
            FileNotFoundError: there is none to read, or no such folder.
        """
        if mode[0] == "r":  # a new one is a draft or a lock, which nobody else looks at
            self._disk.world.glance()
        inode = self._disk.inode(self._text)
        if mode[0] == "w" or (inode is None and mode[0] == "a"):
            inode = Inode()
            self._disk.change(str(self.parent), {self.name: inode})
        if inode is None:
            raise FileNotFoundError(ENOENT, "no such file", self._text)
        return Handle(self._disk, self._text, inode, is_shared=mode[0] == "a")

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False, mode: int = 0o777) -> None:  # noqa: ARG002
        """Makes a folder, with `parents` those above it too."""
        found = self._disk.inode(self._text)
        if found is not None and found.is_folder and exist_ok:
            return
        if parents:
            self.parent.mkdir(parents=True, exist_ok=True)
        self._disk.world.pause()
        if self._disk.inode(self._text) is not None:
            if exist_ok:
                return
            raise FileExistsError(EEXIST, "it is there", self._text)
        self._disk.change(str(self.parent), {self.name: Inode(is_folder=True)})

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Takes the name away; after a power cut it may be there again."""
        if not self.name.startswith(".draft-"):
            self._disk.world.pause()
        if self._disk.inode(self._text) is not None:
            self._disk.change(str(self.parent), {self.name: None})
        elif not missing_ok:
            raise FileNotFoundError(ENOENT, "no such file", self._text)

    def replace(self, target: "SimulatedPath") -> None:
        """Gives it another name in the same folder, whoever had it."""
        self._disk.world.pause()
        inode = self._disk.inode(self._text)
        if inode is None:
            raise FileNotFoundError(ENOENT, "no such file", self._text)
        self._disk.change(str(self.parent), {target.name: inode, self.name: None})


class System:
    """What `os` and `fcntl` are to code that works on simulated paths.

    With `locks` off, `flock` keeps nobody waiting: for code that says that it does not rely on it.
    """

    O_RDONLY, O_RDWR, O_CREAT = os.O_RDONLY, os.O_RDWR, os.O_CREAT
    O_DIRECTORY, O_CLOEXEC = os.O_DIRECTORY, os.O_CLOEXEC
    LOCK_EX, LOCK_NB, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_NB, fcntl.LOCK_UN

    def __init__(self, world: World, *, locks: bool = True) -> None:
        self._world, self._locks = world, locks

    def getpid(self) -> int:
        """The process that asks."""
        return self._world.here.pid if self._world.here else 1

    def listdir(self, path: SimulatedPath) -> list[str]:
        """See `os.listdir`."""
        self._world.glance()
        return path.disk.names(str(path))

    def link(self, source: SimulatedPath, target: SimulatedPath) -> None:
        """See `os.link`."""
        self._world.pause()
        if target.disk.inode(str(target)) is not None:
            raise FileExistsError(EEXIST, "it is there", str(target))
        target.disk.change(str(target.parent), {target.name: source.disk.inode(str(source))})

    def open(self, path: SimulatedPath, flags: int, mode: int = 0) -> Handle:  # noqa: ARG002 - nobody else is there
        """See `os.open`: folders to sync, files to lock."""
        inode = path.disk.inode(str(path))
        if inode is None and flags & os.O_CREAT:
            inode = Inode()
            path.disk.change(str(path.parent), {path.name: inode})
        if inode is None:
            raise FileNotFoundError(ENOENT, "no such file", str(path))
        return Handle(path.disk, str(path), None if inode.is_folder else inode)

    def fsync(self, handle: Handle) -> None:
        """See `os.fsync`."""
        self._world.pause()
        handle.sync()

    def close(self, handle: Handle) -> None:
        """See `os.close`."""
        handle.close()

    def flock(self, handle: Handle, operation: int) -> None:
        """See `fcntl.flock`."""
        self._world.pause()
        if not self._locks:
            return
        if operation & fcntl.LOCK_UN:
            handle.disk.let_go(handle)
        else:
            handle.disk.hold(handle, wait=not operation & fcntl.LOCK_NB)

    def fchmod(self, handle: Handle, mode: int) -> None:
        """See `os.fchmod`."""
