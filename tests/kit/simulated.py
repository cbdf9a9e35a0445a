"""A machine of which a seed decides everything: who runs, who dies, what time it is.

Actors are threads of which one runs at a time. When one touches the disk it stops, and the world says who goes on: so
real code (logs, leases, engines) is interleaved at every point where another process could see what it did. A killed
actor ends where it stops, and does nothing more.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_START_US = 1_700_000_000 * 1_000_000
_TURN_US = 1_000
_FIRST_PID = 100
_GLANCES = 0.25


class KilledError(BaseException):
    """Ends an actor as kill -9 ends a process: no handler of errors sees it."""


class Actor:
    """One process of the machine. `error` is what it ended with, if that was an error.

    Its `pid` is given out again when it has ended, its `serial` is not; processes of other `namespace`s are not seen.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        *,
        pid: int,
        serial: int,
        namespace: str,
    ) -> None:
        self.name, self.work = name, work
        self.pid, self.serial, self.namespace = pid, serial, namespace
        self.go = _shut()
        self.is_killed = self.is_paused = self.is_done = False
        self.error: Exception | None = None


class World:
    """Actors, the order in which a seed lets them run, the wall clock, and how often the machine was started."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.actors: list[Actor] = []
        self.now_us = _START_US
        self.boots = 0
        self._back = _shut()
        self._here = threading.local()

    def start(
        self, name: str, work: Callable[[], None], *, namespace: str = ""
    ) -> Actor:
        """A new actor, which waits for its first turn."""
        taken = {actor.pid for actor in self.actors if not actor.is_done}
        pid = next(
            number
            for number in range(_FIRST_PID, _FIRST_PID + 1 + len(taken))
            if number not in taken
        )
        actor = Actor(name, work, pid=pid, serial=len(self.actors), namespace=namespace)
        self.actors.append(actor)
        threading.Thread(
            target=self._run, args=(actor,), name=name, daemon=True
        ).start()
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

    @property
    def here(self) -> Actor | None:
        """The actor that asks; None outside of actors."""
        return getattr(self._here, "actor", None)

    def pause(self) -> None:
        """Called by an actor: others may run now. Outside of actors nothing happens."""
        actor = self.here
        if actor is None:
            return
        if not actor.is_killed:
            self._back.release()
            actor.go.acquire()
        if actor.is_killed:
            raise KilledError

    def glance(self) -> None:
        """As `pause`, but seldom: for what only reads, since whoever writes afterwards pauses before that."""
        if self.here is not None and self.rng.random() < _GLANCES:
            self.pause()

    def turn(self, actor: Actor) -> None:
        """Lets an actor run until it stops or ends."""
        if not actor.is_done:
            self.now_us += _TURN_US
            actor.go.release()
            self._back.acquire()

    def kill(self, actor: Actor) -> None:
        """Ends an actor where it stands."""
        actor.is_killed = True
        self.turn(actor)

    def living(self) -> list[Actor]:
        """The actors that can run."""
        return [
            actor for actor in self.actors if not actor.is_done and not actor.is_paused
        ]


@dataclass
class Inline:
    """A thread that runs where it is started: the machine's actors are the only ones at work."""

    target: Callable[..., None]
    args: tuple[object, ...]
    name: str

    def start(self) -> None:
        """Runs to the end."""
        self.target(*self.args)

    def join(self) -> None:
        """It has ended."""

    def is_alive(self) -> bool:
        """It has ended."""
        return False


def _shut() -> threading.Lock:
    """A lock that somebody else must open: lighter than a semaphore, for one turn is one."""
    lock = threading.Lock()
    lock.acquire()
    return lock
