"""States of engines as checked objects: the local engine's by the place in the log, those of a reshard by shard.

A state follows from the log up to its place, so it is a cache: whoever wrote it, it is the same. A damaged one is done
without, for an older one and the log after it lead to the same place (SPEC S2).
"""

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from st_common.engine.topology import generation_folder
from st_common.errors import MissingError, StateError
from st_common.home import Home
from st_common.operators.state import State
from st_common.position import position_of
from st_common.storage import LocalStorage, Storage

_MAGIC = b"FWST"
_HEAD = struct.Struct("<4sIQ")  # magic, CRC-32 and length of the bytes that follow
_SUFFIX = ".state"
_NEWEST = 2  # so many of the newest are always kept


def end_of(state: State) -> int:
    """The last position that a state has seen; -1 before the first segment."""
    return position_of(state.next_segment, 0) - 1


def to_bytes(state: State) -> bytes:
    """A state with a checksum."""
    blob = state.to_blob()
    return _HEAD.pack(_MAGIC, zlib.crc32(blob), len(blob)) + blob


def from_bytes(data: bytes, where: str) -> State:
    """The state in these bytes.

    Raises:
        StateError: they are damaged, or of another format.
    """
    if not _is_whole(data):
        raise StateError(f"{where} is damaged", hint="remove it: the state is made again from the log")
    return State.from_blob(data[_HEAD.size :])


def _is_whole(data: bytes) -> bool:
    body = data[_HEAD.size :]
    return len(data) >= _HEAD.size and _HEAD.unpack_from(data) == (_MAGIC, zlib.crc32(body), len(body))


def save(path: Path, state: State) -> None:
    """Puts a state into a file; a crash leaves the old one or the new one."""
    LocalStorage(path.parent).put(path.name, to_bytes(state))


def load(path: Path) -> State:
    """The state in a file, an empty one when there is none.

    Raises:
        StateError: it is damaged, or of another format.
    """
    return from_bytes(path.read_bytes(), str(path)) if path.exists() else State()


@dataclass
class States:
    """The states of a local engine at some places of its log; `notices` are what people should know of them."""

    storage: Storage
    where: Path
    notices: list[str] = field(default_factory=list)

    @staticmethod
    def of(home: Home, stream: str, generation: int | None = None) -> "States":
        """Those of the generation that is in force, or of another one."""
        folder = generation_folder(home, stream, generation) / "local" / "states"
        return States(LocalStorage(folder), folder)

    def store(self, state: State) -> None:
        """Keeps a state, durable when this returns, and lets go of some old ones."""
        self.storage.create(_name(state.next_segment), to_bytes(state))
        for number in _spare(self.places()):
            self.storage.delete(_name(number))

    def places(self) -> list[int]:
        """The next segments of the stored states, rising."""
        return [int(name.removesuffix(_SUFFIX)) for name in self.storage.names("") if name.endswith(_SUFFIX)]

    def newest(self, *, upto: int) -> State:
        """The newest state that is whole and has seen nothing behind the position `upto`; an empty one without any.

        Raises:
            StateError: it is of another format.
        """
        places = self.places()
        for number in reversed(places):
            found = self._found(number) if position_of(number, 0) - 1 <= upto else None
            if found is not None:
                return found
        if places:
            self.notices.append(f"no state in {self.where} could be used: the stream starts from the log's beginning")
        return State()

    def check(self) -> list[str]:
        """Looks at every state, and lets go of those that are damaged; gives what it found."""
        for number in self.places():
            self._found(number)
        return self.notices

    def _found(self, number: int) -> State | None:
        where = f"{self.where / _name(number)}"
        try:
            data = self.storage.read(_name(number))
        except MissingError:
            return None
        if _is_whole(data):
            return from_bytes(data, where)
        self.notices.append(f"{where} was damaged and is gone: an older state and the log after it lead to the same")
        self.storage.delete(_name(number))
        return None


def _name(number: int) -> str:
    return f"{number:012d}{_SUFFIX}"


def _spare(places: list[int]) -> list[int]:
    """Which of some places, rising, need not be kept: of those 2 to 3, 4 to 7, 8 to 15 .. segments back one each stays.

    So few states reach far back. Of places 1 to 20, for example, 1, 5, 13, 17, 19 and 20 stay.
    """
    kept: dict[int, int] = {}
    for number in reversed(places):
        kept[(places[-1] - number).bit_length()] = number
    stay = {*kept.values(), *places[-_NEWEST:]}
    return [number for number in places if number not in stay]
