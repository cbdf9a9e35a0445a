"""States of engines as checked objects: the local engine's by the place in the log, those of a reshard by shard.

A state follows from the log up to its place, so it is a cache: whoever wrote it, it is the same. A damaged one is done
without, for an older one and the log after it lead to the same place (SPEC S2).
"""

import struct
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from st_common.config.home import Home
from st_common.engine.topology import generation_folder
from st_common.errors import MissingError, StateError
from st_common.operators.runtime.stored import delta_from_blob, state_from_blob
from st_common.operators.state.delta import apply
from st_common.operators.state.difference import Changed
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.storage import LocalStorage, Storage

_MAGIC, _CHANGED = b"FWST", b"FWSD"
_HEAD = struct.Struct("<4sIQ")  # magic, CRC-32 and length of the bytes that follow
_BEFORE = struct.Struct(
    "<QI"
)  # of what changed: the place and the checksum of the object before
_SUFFIX, _DELTA = ".state", ".delta"
_LEAST_BYTES = 1 << 20  # of changes before a small state is stored whole again
_MOST_LINKS = 128  # between a whole state and the newest: each takes a start some 20 ms with a million objects
_NEWEST = 2  # so many of the newest are always kept


def end_of(state: State) -> int:
    """The last position that a state has seen; -1 before the first segment.

    A state is always between two segments: with `next_segment` 5 it has seen every position below `position_of(5, 0)`,
    so its end is 83886079, one less.
    """
    return position_of(state.next_segment, 0) - 1


def to_bytes(state: State) -> bytes:
    """The bytes of a stored state: magic `FWST`, CRC-32 and length of what follows, then the state's blob."""
    return _with_head(_MAGIC, state.to_blob())


def _with_head(magic: bytes, body: bytes) -> bytes:
    return b"".join((_HEAD.pack(magic, zlib.crc32(body), len(body)), body))


def _checksum(data: bytes) -> int:
    """The checksum in the head of an object."""
    checksum: int = _HEAD.unpack_from(data)[1]
    return checksum


def from_bytes(data: bytes, where: str) -> State:
    """The state in the bytes of an object that `to_bytes` made.

    Args:
        data: the whole object.
        where: the place of the object, for people; errors name it.

    Raises:
        StateError: the bytes are damaged, or of another format.
    """
    if not _is_whole(data, _SUFFIX):
        raise StateError(
            f"{where} is damaged",
            hint="remove it: the state is made again from the log",
        )
    return state_from_blob(data[_HEAD.size :])


def _is_whole(data: bytes, suffix: str) -> bool:
    body = memoryview(data)[_HEAD.size :]
    magic = _MAGIC if suffix == _SUFFIX else _CHANGED
    return len(data) >= _HEAD.size and _HEAD.unpack_from(data) == (
        magic,
        zlib.crc32(body),
        len(body),
    )


def stored_states(folder: Path) -> list[Path]:
    """The objects of states below a folder, of all shards; their names are the segments before which they stand."""
    return [
        path
        for path in sorted(folder.rglob("[0-9]*.*"))
        if path.suffix in (_SUFFIX, _DELTA) and path.stem.isdigit()
    ]


def is_damaged(path: Path) -> bool:
    """Whether an object of a state is not what was written; one that is gone by now is not."""
    try:
        return not _is_whole(path.read_bytes(), path.suffix)
    except FileNotFoundError:
        return False


def save(path: Path, state: State) -> None:
    """Puts a state into a file; a crash leaves the old one or the new one, each whole.

    Raises:
        StorageError: the disk is full, or refuses.
    """
    LocalStorage(path.parent).put(path.name, to_bytes(state))


def load(path: Path) -> State:
    """The state in a file; an empty one when there is no file.

    Raises:
        StateError: it is damaged, or of another format.
    """
    return from_bytes(path.read_bytes(), str(path)) if path.exists() else State()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """An object that was stored or read: its place, its checksum, and how much lies between it and a whole state."""

    number: int
    checksum: int
    base_bytes: int
    bytes: int = 0
    links: int = 0


@dataclass
class States:
    """The states of a local engine at some places of its log (docs/adr/0003).

    A state is stored whole, or as what changed since the one that was stored or read last. Such an object names that
    one by its place and its checksum, for of one place there may be states that have forgotten more and less.

        000000000100.state    whole, before segment 100 is read
        000000000180.delta    what changed since; names 100 and the checksum of its object
        000000000260.delta    what changed since; names 180

    Attributes:
        storage: where the objects lie.
        where: their folder, for people.
        notices: what people should know: states that were damaged, a start from the log's beginning.
        mends: whether damaged objects are deleted; not by who only reads beside an engine.
        needed: the segment before which a state has to stay, see `store`; None: none has to.
    """

    storage: Storage
    where: Path
    notices: list[str] = field(default_factory=list)
    mends: bool = True
    needed: int | None = None
    _last: _Link | None = field(default=None, repr=False)
    _befores: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        home: Home,
        stream: str,
        generation: int | None = None,
        *,
        mends: bool = True,
    ) -> "States":
        """The states of the local engine of a stream.

        Args:
            home: the home folder.
            stream: the name of the stream.
            generation: which one (see `topology`); None for the one in force.
            mends: whether damaged states are deleted.
        """
        folder = generation_folder(home, stream, generation) / "local" / "states"
        return States(LocalStorage(folder), folder, mends=mends)

    def store(self, state: State, changed: Changed | None = None) -> None:
        """Keeps a state, durable when this returns, and deletes old ones that are not needed.

        With `changed`, only what changed is written, as long as all changes since the last whole state are together no
        larger than that state (or 1 MiB), and no more than 128 of them hang together: a start has to apply each.

        Of the old ones, that from which a start would read on to `needed` stays.

        Args:
            state: the state to keep; its place is its `next_segment`. Where an object of that place exists, it stays.
            changed: what was touched since the state that was stored or read last by this object; None: store it whole.

        Raises:
            StorageError: the disk is full, or refuses.
        """
        last, number = self._last, state.next_segment
        if (
            last is not None and last.number == number
        ):  # it stands there; a state that forgot more has other numbers
            self._last = last if changed is not None else None
            return
        self._last = None
        body = self._body(state, changed, last)
        if last is not None and body is not None:
            data = _with_head(_CHANGED, body)
            if self.storage.create(_name(number, _DELTA), data):
                self._befores[number] = last.number, last.checksum
                self._last = replace(
                    last,
                    number=number,
                    checksum=_checksum(data),
                    bytes=last.bytes + len(data),
                    links=last.links + 1,
                )
        else:
            data = to_bytes(state)
            if self.storage.create(_name(number), data):
                self._last = _Link(
                    number=number, checksum=_checksum(data), base_bytes=len(data)
                )
        self._let_go()

    def _body(
        self, state: State, changed: Changed | None, last: _Link | None
    ) -> bytes | None:
        """What changed since the last one; None when that is not known, or too much."""
        if changed is None or last is None or last.links >= _MOST_LINKS:
            return None
        delta = changed.until(state)
        body = (
            None
            if delta is None
            else _BEFORE.pack(last.number, last.checksum) + delta.to_blob()
        )
        return (
            body
            if body is not None
            and last.bytes + len(body) <= max(last.base_bytes, _LEAST_BYTES)
            else None
        )

    def _let_go(self) -> None:
        """Deletes whole states far back, and what changed since them; not those that the start or the next one needs.

        needed = 6, the next delta names 12
        1.state   3.state   5.delta (of 3)   9.state   11.state   12.delta (of 11)
        goes      stays     stays            stays     stays      stays
        """
        bases, roots = self._numbers(_SUFFIX), self._roots()
        last = bases[-1] if self.needed is None else self.needed
        base = roots.get(max((n for n in roots if n <= last), default=-1), -1)
        going_on = None if self._last is None else roots.get(self._last.number)
        for number in _spare(bases):
            if number not in (base, going_on):
                self.storage.delete(_name(number))
        # Links up to the last but one whole state are not needed: a start takes a whole state, and what changed since.
        least = bases[-_NEWEST] if len(bases) >= _NEWEST else -1
        usable = self._roots()
        for number in self._numbers(_DELTA):
            if number <= min(least, base) or number not in usable:
                self.storage.delete(_name(number, _DELTA))
                self._befores.pop(number, None)

    def _roots(self) -> dict[int, int]:
        """On which whole state that of each place hangs; places of which a link is missing are left out."""
        bases, links = set(self._numbers(_SUFFIX)), set(self._numbers(_DELTA))
        roots = {number: number for number in bases}
        for number in sorted(links - bases):
            at, checksum = self._before(number)
            while at in links and (at not in bases or self._whole_sum(at) != checksum):
                at, checksum = self._before(at)
            if at in bases:
                roots[number] = at
        return roots

    def _before(self, number: int) -> tuple[int, int]:
        """The place and the checksum of what a delta names as the one before; -1 where it cannot be read."""
        if number not in self._befores:
            data = self._read(_name(number, _DELTA))
            named = (-1, 0) if data is None else _BEFORE.unpack_from(data, _HEAD.size)
            self._befores[number] = named
        return self._befores[number]

    def _whole_sum(self, number: int) -> int | None:
        """The checksum of the whole state of a place; None: it cannot be read."""
        data = self._read(_name(number))
        return None if data is None else _checksum(data)

    def begins(self) -> int:
        """The segment before which no start reads the log: that of the newest state up to `needed`, else the oldest."""
        places = sorted(self._roots())
        allowed = [n for n in places if self.needed is None or n <= self.needed]
        return allowed[-1] if allowed else min(places, default=0)

    def places(self) -> list[int]:
        """The next segments of the stored states, rising."""
        return sorted({*self._numbers(_SUFFIX), *self._numbers(_DELTA)})

    def _numbers(self, suffix: str) -> list[int]:
        return sorted(
            int(name.removesuffix(suffix))
            for name in self.storage.names("")
            if name.endswith(suffix)
        )

    def newest(self, *, upto: int) -> State:
        """The newest stored state that is whole and has seen nothing behind a position.

        A damaged one is deleted with a notice, and an older one is taken: the log after it leads to the same state.

        Args:
            upto: the last position that the state may have seen, as `end_of` gives it; -1 allows none.

        Returns:
            The state; an empty one when none can be used, so that the log is read from its beginning.

        Raises:
            StateError: it is of another format.
        """
        places = self.places()
        for number in reversed(places):
            state = self._found(number) if position_of(number, 0) - 1 <= upto else None
            if state is not None:
                return state
        if places:
            self.notices.append(
                f"no state in {self.where} could be used: the stream starts from the log's beginning"
            )
        return State()

    def check(self) -> list[str]:
        """Reads every object, deletes those that are damaged, and gives all notices so far."""
        for name in self.storage.names(""):
            if name.endswith((_SUFFIX, _DELTA)):
                self._read(name)
        return self.notices

    def _found(self, number: int) -> State | None:
        """The state of a place: a whole one, and what changed since; None when something of it is missing."""
        changes: list[bytes] = []
        at, wanted = number, None
        # Back from link to link, each of which names the one before it, down to a whole state.
        while (data := self._object(at, wanted)) is not None and data.startswith(
            _CHANGED
        ):
            at, wanted = _BEFORE.unpack_from(data, _HEAD.size)
            changes.append(data)
        if data is None:
            return None
        state = from_bytes(data, f"{self.where / _name(at)}")
        for change in reversed(changes):
            state = apply(state, delta_from_blob(change[_HEAD.size + _BEFORE.size :]))
        newest = changes[0] if changes else data
        self._last = _Link(
            number=number,
            checksum=_checksum(newest),
            base_bytes=len(data),
            bytes=sum(map(len, changes)),
            links=len(changes),
        )
        return state

    def _object(self, number: int, checksum: int | None) -> bytes | None:
        """What is stored for a place, the whole state first; with a checksum only what has it."""
        for name in (_name(number), _name(number, _DELTA)):
            data = self._read(name)
            if data is not None and checksum in (None, _checksum(data)):
                return data
        return None

    def _read(self, name: str) -> bytes | None:
        try:
            data = self.storage.read(name)
        except MissingError:
            return None
        if _is_whole(data, _SUFFIX if name.endswith(_SUFFIX) else _DELTA):
            return data
        where = self.where / name
        if self.mends:
            self.notices.append(
                f"{where} was damaged and is gone: an older state and the log after it lead to the same"
            )
            self.storage.delete(name)
        return None


def _name(number: int, suffix: str = _SUFFIX) -> str:
    return f"{number:012d}{suffix}"


def _spare(places: list[int]) -> list[int]:
    """Which of some places, rising, need not be kept: of those 2 to 3, 4 to 7, 8 to 15 .. segments back one each stays.

    So few states reach far back. Of places 1 to 20, for example, 1, 5, 13, 17, 19 and 20 stay.
    """
    kept: dict[int, int] = {}
    for number in reversed(places):
        kept[(places[-1] - number).bit_length()] = number
    stay = {*kept.values(), *places[-_NEWEST:]}
    return [number for number in places if number not in stay]
