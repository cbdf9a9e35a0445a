"""A disk in memory that forgets what was not synced.

The real adapter of storage, leases and journals run on it: `simulated_path` and `simulated_system` are the parts of
`pathlib`, `os` and `fcntl` that reach it. What is visible to others is not durable before it was synced, neither the
bytes of a file nor the names in a folder: a power cut keeps some names and loses others, whatever came first, and
leaves a file that was not synced empty, cut, full of zeros, or whole. At any step it may fail, or have no room.
"""

import os
from dataclasses import dataclass, field
from errno import EAGAIN, ENOENT, ENOSPC
from itertools import count
from types import TracebackType
from typing import Self

from tests.kit.simulated import Actor, World


@dataclass(eq=False, slots=True)
class Inode:
    """A file or a folder: its bytes, and those that a power cut leaves; None when none of them were synced."""

    is_folder: bool = False
    data: bytes = b""
    durable: bytes | None = None
    changed_us: int = 0
    number: int = field(default_factory=count().__next__)


@dataclass(eq=False, slots=True)
class Faults:
    """What fails of the steps of actors with some name, each before it is done or behind it.

    Attributes:
        actor: the name of the actors.
        left: after so many steps one fails; None: none does.
        code: the system's number of the error.
        is_full: whether nothing has room.
        count: how many steps have failed.
    """

    actor: str
    left: int | None = None
    code: int = ENOSPC
    is_full: bool = False
    count: int = 0

    def step(self, world: World, path: str, *, takes_room: bool) -> None:
        """One more step.

        Raises:
            OSError: it fails.
        """
        here = world.here
        if here is None or here.name != self.actor or here.is_killed:
            return
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                self._fail(self.code, path)
        if self.is_full and takes_room:
            self._fail(ENOSPC, path)

    def _fail(self, code: int, path: str) -> None:
        self.count += 1
        raise OSError(code, os.strerror(code), path)


Names = dict[str, Inode]
HOME = "/home"
"""The one folder that is there from the beginning, durable and empty."""


class SimulatedDisk:
    """Folders of names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults: Faults | None = None
        self._there: dict[str, Names] = {
            "": {HOME.strip("/"): Inode(is_folder=True)},
            HOME: {},
        }
        self._durable = {folder: dict(names) for folder, names in self._there.items()}
        self._unsynced: list[tuple[str, dict[str, Inode | None]]] = []
        self._holders: dict[str, Handle] = {}

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

    def tried(self, path: str, *, takes_room: bool = False) -> None:
        """A step begins, or ends: it may fail here.

        Raises:
            OSError: it does.
        """
        if self.faults is not None:
            self.faults.step(self.world, path, takes_room=takes_room)

    def _left_of(self, inode: Inode) -> bytes:
        rng, data = self.world.rng, inode.data
        return rng.choice(
            (
                inode.durable or b"",
                data,
                data[: rng.randint(0, len(data))],
                b"\0" * len(data),
            )
        )

    def inode(self, path: str) -> Inode | None:
        """What has a name; None for nothing. The root has an empty one."""
        if not path:
            return Inode(is_folder=True)
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
        return any(
            at == folder and name.endswith(suffix)
            for at, names in self._unsynced
            for name in names
        )

    def sync(self, folder: str) -> None:
        """Makes the names in a folder durable."""
        for at, names in self._unsynced:
            if at == folder:
                _change(self._durable.setdefault(folder, {}), names)
        self._unsynced = [change for change in self._unsynced if change[0] != folder]

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
        return (
            holder is not None
            and holder is not handle
            and (holder.actor is None or not holder.actor.is_done)
        )

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

    def __init__(
        self,
        disk: SimulatedDisk,
        path: str,
        inode: Inode | None,
        *,
        is_shared: bool = False,
    ) -> None:
        self.disk, self.path = disk, path
        self.actor: Actor | None = disk.world.here
        self._inode, self._at, self._is_shared = inode, 0, is_shared

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def fileno(self) -> Self:
        """What `System.fsync` and `System.flock` take."""
        return self

    def seek(self, at: int) -> None:
        """Reads from there on."""
        self._at = at

    def read(self, length: int = -1) -> bytes:
        """The bytes from where it stands."""
        self.disk.tried(self.path)
        data = self._file().data[self._at :]
        data = data if length < 0 else data[:length]
        self._at += len(data)
        return data

    def write(self, data: bytes) -> None:
        """Adds bytes; others see them at once."""
        if self._is_shared:
            self.disk.world.pause()
        self.disk.tried(self.path, takes_room=bool(data))
        self._set(self._file().data + data)

    def truncate(self, length: int) -> None:
        """Lets go of the bytes behind."""
        self.disk.world.pause()
        self._set(self._file().data[:length])

    def flush(self) -> None:
        """Nothing is held back."""

    def sync(self) -> None:
        """Makes the bytes of a file durable, or the names in a folder."""
        self.disk.tried(self.path)
        if self._inode is None:
            self.disk.sync(self.path)
        else:
            self._inode.durable = self._inode.data
        self.disk.tried(self.path)

    def close(self) -> None:
        """Gives back its lock."""
        self.disk.let_go(self)

    def _set(self, data: bytes) -> None:
        inode = self._file()
        inode.data, inode.changed_us = data, self.disk.world.now_us

    def _file(self) -> Inode:
        assert self._inode is not None
        return self._inode
