"""A machine of which a seed decides everything: who runs, who dies, what a power cut leaves.

Actors are threads of which one runs at a time. When one touches storage it stops, and the world says who goes on: so
real code (logs, engines) is interleaved at every point where another process could see what it did. A killed actor ends
where it stops, and does nothing more. What is visible to others is not durable before it was synced: of that a power
cut keeps some and loses some, whatever came first.
"""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from random import Random

from st_common.errors import ConflictError, MissingError


class KilledError(BaseException):
    """Ends an actor as kill -9 ends a process: no handler of errors sees it."""


@dataclass(eq=False)
class Actor:
    """One process of the machine. `error` is what it ended with, if that was an error."""

    name: str
    work: Callable[[], None]
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_killed: bool = False
    is_paused: bool = False
    is_done: bool = False
    error: Exception | None = None


class World:
    """Actors, and the order in which a seed lets them run."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.actors: list[Actor] = []
        self._back = threading.Semaphore(0)
        self._here = threading.local()

    def start(self, name: str, work: Callable[[], None]) -> Actor:
        """A new actor, which waits for its first turn."""
        actor = Actor(name=name, work=work)
        self.actors.append(actor)
        threading.Thread(target=self._run, args=(actor,), name=name, daemon=True).start()
        return actor

    def _run(self, actor: Actor) -> None:
        self._here.actor = actor
        actor.go.acquire()
        try:
            if not actor.is_killed:
                actor.work()
        except KilledError:
            pass
        except Exception as error:  # noqa: BLE001 - told by the one who judges
            actor.error = error
        finally:
            actor.is_done = True
            self._back.release()

    def pause(self) -> None:
        """Called by an actor: others may run now. Outside of actors nothing happens."""
        actor: Actor | None = getattr(self._here, "actor", None)
        if actor is None:
            return
        if not actor.is_killed:
            self._back.release()
            actor.go.acquire()
        if actor.is_killed:
            raise KilledError

    def turn(self, actor: Actor) -> None:
        """Lets an actor run until it stops or ends."""
        if not actor.is_done:
            actor.go.release()
            self._back.acquire()

    def kill(self, actor: Actor) -> None:
        """Ends an actor where it stands."""
        actor.is_killed = True
        self.turn(actor)

    def living(self) -> list[Actor]:
        """The actors that can run."""
        return [actor for actor in self.actors if not actor.is_done and not actor.is_paused]


class SimulatedStorage:
    """The port of `st_common.storage` in memory; with `locks` off, `locked` keeps nobody waiting."""

    def __init__(self, world: World, *, locks: bool = True) -> None:
        self.visible: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}
        self._unsynced: list[tuple[str, bytes | None]] = []
        self._world, self._locks = world, locks
        self._holders: dict[str, tuple[threading.Thread, int]] = {}

    def cut(self) -> None:
        """A power cut: of what was not synced some is there afterwards, in whatever order it was made."""
        for key, data in self._unsynced:
            if self._world.rng.random() < 0.5:
                _set(self.durable, key, data)
        self.visible = dict(self.durable)
        self._unsynced = []

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """See `Storage.read`."""
        self._world.pause()
        if key not in self.visible:
            raise MissingError(f"there is no {key}")
        data = self.visible[key]
        return data[start:] if length is None else data[start : start + length]

    def exists(self, key: str) -> bool:
        """See `Storage.exists`."""
        self._world.pause()
        return key in self.visible

    def names(self, folder: str) -> list[str]:
        """See `Storage.names`."""
        self._world.pause()
        parts = [PurePosixPath(key).parts for key in self.visible]
        above = PurePosixPath(folder).parts
        return sorted(
            {found[len(above)] for found in parts if found[: len(above)] == above and len(found) > len(above)}
        )

    def create(self, key: str, data: bytes) -> bool:
        """See `Storage.create`."""
        return self.create_all([(key, data)])

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> bool:
        """See `Storage.create_all`."""
        whole = list(objects)
        self._world.pause()
        for number, (key, data) in enumerate(whole):
            if key in self.visible:
                if not number:
                    return False
                raise ConflictError(f"{key} was made by somebody else")
            self._change(key, data)
            self._world.pause()
        for folder in sorted({_folder_of(key) for key, _ in whole}):
            self.sync(folder)
        return True

    def tagged(self, key: str) -> tuple[bytes, str] | None:
        """See `Storage.tagged`."""
        self._world.pause()
        data = self.visible.get(key)
        return None if data is None else (data, _tag_of(data))

    def replace(self, key: str, data: bytes, *, tag: str | None) -> str:
        """See `Storage.replace`."""
        self._world.pause()
        found = self.visible.get(key)
        if (None if found is None else _tag_of(found)) != tag:
            raise ConflictError(f"{key} was replaced by somebody else")
        self._stored(key, data)
        return _tag_of(data)

    def put(self, key: str, data: bytes, *, private: bool = False) -> None:  # noqa: ARG002 - nobody else is there
        """See `Storage.put`."""
        self._world.pause()
        self._stored(key, data)

    def delete(self, key: str) -> None:
        """See `Storage.delete`; after a power cut the object may be there again."""
        self._world.pause()
        if key in self.visible:
            self._change(key, None)

    def sync(self, folder: str) -> None:
        """See `Storage.sync`."""
        self._world.pause()
        synced = [change for change in self._unsynced if _folder_of(change[0]) == folder]
        self._unsynced = [change for change in self._unsynced if _folder_of(change[0]) != folder]
        for key, data in synced:
            _set(self.durable, key, data)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """See `Storage.locked`."""
        me = threading.current_thread()
        while self._locks and self._holders.get(name, (me, 0))[0] is not me:
            self._world.pause()
        depth = self._holders.get(name, (me, 0))[1]
        self._holders[name] = me, depth + 1
        try:
            yield
        finally:
            if depth:
                self._holders[name] = me, depth
            elif self._holders.get(name, (None, 0))[0] is me:
                del self._holders[name]

    def _stored(self, key: str, data: bytes) -> None:
        self._change(key, data)
        self._world.pause()
        self.sync(_folder_of(key))

    def _change(self, key: str, data: bytes | None) -> None:
        _set(self.visible, key, data)
        self._unsynced.append((key, data))


def _set(objects: dict[str, bytes], key: str, data: bytes | None) -> None:
    if data is None:
        objects.pop(key, None)
    else:
        objects[key] = data


def _folder_of(key: str) -> str:
    return "/".join(PurePosixPath(key).parts[:-1])


def _tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
