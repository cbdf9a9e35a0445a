"""The part of `pathlib` that reaches a simulated disk."""

from collections.abc import Iterator
from errno import EEXIST, ENOENT, ENOTEMPTY
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.kit.simulated_disk import HOME, Handle, Inode, SimulatedDisk

_TICK_US = 4_000
"""So exact is the time at which a file was changed last."""


class Stat(NamedTuple):
    """What `stat` tells of a file."""

    st_ino: int
    st_size: int
    st_mtime_ns: int


class SimulatedPath:
    """What of `pathlib.Path` is asked of a home."""

    __slots__ = ("_disk", "_text")

    def __init__(self, disk: SimulatedDisk, text: str) -> None:
        self._disk, self._text = disk, text

    def __truediv__(self, more: object) -> "SimulatedPath":
        return (
            SimulatedPath(self._disk, f"{self._text}/{more}")
            if str(more) not in ("", ".")
            else self
        )

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

    def stat(self) -> Stat:
        """What is told of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        self._disk.world.glance()
        inode = self._disk.inode(self._text)
        if inode is None:
            raise FileNotFoundError(ENOENT, "no such file", self._text)
        changed_ns = inode.changed_us // _TICK_US * _TICK_US * 1000
        return Stat(inode.number, len(inode.data), changed_ns)

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
        is_new = mode[0] == "w" or (inode is None and mode[0] == "a")
        self._disk.tried(self._text, takes_room=is_new)
        if is_new:
            inode = Inode()
            self._disk.change(str(self.parent), {self.name: inode})
        if inode is None:
            raise FileNotFoundError(ENOENT, "no such file", self._text)
        return Handle(self._disk, self._text, inode, is_shared=mode[0] == "a")

    def mkdir(
        self,
        *,
        parents: bool = False,
        exist_ok: bool = False,
        mode: int = 0o777,  # noqa: ARG002
    ) -> None:
        """Makes a folder, with `parents` those above it too."""
        inode = self._disk.inode(self._text)
        if inode is not None and inode.is_folder and exist_ok:
            return
        if parents:
            self.parent.mkdir(parents=True, exist_ok=True)
        self._disk.world.pause()
        if self._disk.inode(self._text) is not None:
            if exist_ok:
                return
            raise FileExistsError(EEXIST, "it is there", self._text)
        self._disk.tried(self._text, takes_room=True)
        self._disk.change(str(self.parent), {self.name: Inode(is_folder=True)})
        self._disk.tried(self._text)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Takes the name away; after a power cut it may be there again."""
        if not self.name.startswith(".draft-"):
            self._disk.world.pause()
        if self._disk.inode(self._text) is not None:
            self._disk.change(str(self.parent), {self.name: None})
        elif not missing_ok:
            raise FileNotFoundError(ENOENT, "no such file", self._text)

    def rmdir(self) -> None:
        """Takes an empty folder away."""
        self._disk.world.pause()
        inode = self._disk.inode(self._text)
        if inode is None or self._disk.names(self._text):
            raise OSError(ENOTEMPTY, "it is gone, or not empty", self._text)
        self._disk.change(str(self.parent), {self.name: None})

    def replace(self, target: "SimulatedPath") -> None:
        """Gives it another name in the same folder, whoever had it."""
        self._disk.world.pause()
        inode = self._disk.inode(self._text)
        if inode is None:
            raise FileNotFoundError(ENOENT, "no such file", self._text)
        self._disk.tried(self._text)
        self._disk.change(str(self.parent), {target.name: inode, self.name: None})
        self._disk.tried(self._text)


def root_of(disk: SimulatedDisk) -> SimulatedPath:
    """The folder of a home: durable, and empty at first."""
    return SimulatedPath(disk, HOME)


def copy_folder(disk: SimulatedDisk, folder: str, other: SimulatedDisk) -> None:
    """Copies a folder, with all below it, to the same place on another disk."""
    SimulatedPath(other, folder).mkdir(parents=True, exist_ok=True)
    for name in disk.names(folder) if disk.inode(folder) else ():
        inode = disk.inode(f"{folder}/{name}")
        assert inode is not None
        if inode.is_folder:
            copy_folder(disk, f"{folder}/{name}", other)
        else:
            other.change(folder, {name: Inode(data=inode.data)})
