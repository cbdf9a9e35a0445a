"""The parts of `os` and `fcntl` that reach a simulated disk."""

import fcntl
import os
from errno import EEXIST, ENOENT

from tests.kit.simulated import World
from tests.kit.simulated_disk import Handle, Inode
from tests.kit.simulated_path import SimulatedPath


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
        path.disk.tried(str(path))
        return path.disk.names(str(path))

    def link(self, source: SimulatedPath, target: SimulatedPath) -> None:
        """See `os.link`."""
        self._world.pause()
        if target.disk.inode(str(target)) is not None:
            raise FileExistsError(EEXIST, "it is there", str(target))
        target.disk.tried(str(target), takes_room=True)
        target.disk.change(
            str(target.parent), {target.name: source.disk.inode(str(source))}
        )
        target.disk.tried(str(target))

    def open(self, path: SimulatedPath, flags: int, mode: int = 0) -> Handle:  # noqa: ARG002 - nobody else is there
        """See `os.open`: folders to sync, files to lock."""
        inode = path.disk.inode(str(path))
        is_new = inode is None and bool(flags & os.O_CREAT)
        path.disk.tried(str(path), takes_room=is_new)
        if is_new:
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
