"""Servers on a simulated machine: intakes that take what clients post, hubs that tell those who listen.

Real are the intake with its keys, the writer of the log, the hub and who follows the table and the journal for it.
Clients are simulated: they make a request again until it is answered, hang up, resume behind the last id that they had.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

from st_common.answers import follow
from st_common.errors import FairwayError, StorageError, TransientError
from st_common.server import changes, intake
from st_common.server.changes import Hub, Hubs
from st_common.server.event_text import place_of_id
from st_common.server.installation import Installation
from st_common.server.intake import ClosedError, Intakes
from st_common.server.parameters import RejectedError, ReusedKeyError
from st_common.sources.writer import Writer
from tests.kit.simulated import Actor
from tests.kit.simulated_disk import Faults
from tests.kit.simulated_loop import inline, run
from tests.kit.simulated_stream import STREAM, Machine, installed

if TYPE_CHECKING:
    from pathlib import Path

SERVER = "server"
KEPT_KEYS = 6
"""So many of the newest keys a server knows after a kill, on this machine."""
_MEDIA = "text/csv"
_AT_ONCE = 4
_IDLE_S = 0.004
_LAST_S = 2.0
"""So long one listens at last who has not heard all."""
At = tuple[int, int]


@dataclass(eq=False)
class Request:
    """A request and what its client knows of it.

    Attributes:
        key: its idempotency key; None: it has none.
        body: what is posted.
        objects: of its records, each of its own; none where no record can be read.
        sent: how often it was made.
        answers: the positions that were told.
        by: the server that has it now; None: nobody has.
    """

    key: str | None
    body: bytes
    objects: tuple[str, ...]
    sent: int = 0
    answers: list[int] = field(default_factory=list)
    by: Actor | None = None


@dataclass(eq=False)
class Ear:
    """One who listens, with what he heard since he began anew.

    Attributes:
        query: the query; None: all of them.
        last: the id that he had last; None: none, so that he begins anew when he comes again.
        begun: behind which place he began.
        heard: the changes: where each stands, and what was told of it.
        resumed: how often he came again with an id.
        ended: how often he was let go.
    """

    query: str | None
    last: str | None = None
    begun: At = follow.FIRST
    heard: list[tuple[At, dict[str, Any]]] = field(default_factory=list)
    resumed: int = 0
    ended: int = 0
    by: Actor | None = None


@dataclass(eq=False)
class Traffic:
    """What clients want of the servers of a machine."""

    machine: Machine
    faults: Faults
    wanted: list[Request] = field(default_factory=list)
    done: list[Request] = field(default_factory=list)
    ears: list[Ear] = field(default_factory=list)
    is_last: bool = False
    """The last server: nobody hangs up any more, and each listens until he has heard all."""
    ending: set[Actor] = field(default_factory=set)
    hung_up: set[str | None] = field(default_factory=set)
    first_sent: dict[str, int] = field(default_factory=dict)
    old_keys: set[str] = field(default_factory=set)
    keys_sent: list[str] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)

    def serve(self) -> None:
        """A server, until there is nothing to do any more, or it is asked to end."""
        run(self.machine.world, self._served)

    async def _served(self) -> None:
        place = Installation(home=self.machine.home, conf=cast("Path", None))
        intakes, hubs = Intakes(place), Hubs(place.home)
        tasks: set[asyncio.Task[None]] = set()
        here = self.machine.world.here
        while here not in self.ending:
            tasks = {one for one in tasks if not one.done() or _raised(one)}
            if len(tasks) < _AT_ONCE + len(self.ears):
                tasks |= self._begun(intakes, hubs)
            if self.is_last and not tasks:
                break
            await asyncio.sleep(_IDLE_S)
        hubs.close()
        await intakes.close()
        await asyncio.gather(*tasks)

    def _begun(self, intakes: Intakes, hubs: Hubs) -> set[asyncio.Task[None]]:
        """What clients begin now."""
        rng, here, begun = self.machine.world.rng, self.machine.world.here, []
        # Where a power cut is near, nothing new is stored: it would make durable what is in front of it.
        is_open = bool(self.wanted) and (
            not self.machine.cut_in or self.wanted[0].sent > 0
        )
        if is_open and (self.is_last or rng.random() < 0.5):
            request = self.wanted.pop(0)
            request.by = here
            begun.append(self._post(intakes, request))
        for ear in self.ears:
            is_free = ear.by is None or ear.by.is_done
            is_wanting = self.is_last or rng.random() < 0.1
            if is_free and is_wanting:
                ear.by = here
                begun.append(self._listen(hubs.of(STREAM), ear))
        if self.is_last:
            self.ears = []
        return {asyncio.create_task(one) for one in begun}

    # --- posts --------------------------------------------------------------------------------------------------------

    def _note_age(self, key: str | None) -> None:
        """Notes a key that a server need not know any more: so many others may have been stored since."""
        if key is not None:
            since = max(0, self.first_sent[key] - 2 * _AT_ONCE)
            if len({*self.keys_sent[since:]}) >= KEPT_KEYS:
                self.old_keys.add(key)

    async def _post(self, intakes: Intakes, request: Request) -> None:
        here, rng = self.machine.world.here, self.machine.world.rng
        if request.key is not None:
            self.first_sent.setdefault(request.key, len(self.keys_sent))
            self.keys_sent.append(request.key)
        request.sent += 1
        failed = self.faults.count
        patience_s = None if self.is_last or rng.random() < 0.8 else rng.random() * 0.1
        try:
            async with asyncio.timeout(patience_s):
                position = await self._put(intakes, request)
        except TimeoutError:
            self._again(request, here, "hung up")
            self.hung_up.add(request.key)
        except ReusedKeyError:
            if _lives(here):
                self._over(request, "reused")
        except RejectedError:
            _must("what can be read was rejected", is_so=not request.objects)
            self._over(request, "rejected")
        except FairwayError as error:
            self._failed(request, here, error, is_faulty=self.faults.count > failed)
        else:
            self._taken(request, here, position)
        finally:
            self._note_age(request.key)

    def _failed(
        self, request: Request, here: Actor | None, error: Exception, *, is_faulty: bool
    ) -> None:
        if _lives(here):
            is_ours = isinstance(error, (StorageError, TransientError))
            _must(f"a request fails with {error!r}", is_so=is_ours)
            may_fail = is_faulty or self.faults.is_full
            may_fail = may_fail or self._may_wait(request, here, error)
            _must(f"a request fails without a fault: {error!r}", is_so=may_fail)
            self._again(request, here, "failed")

    def _taken(self, request: Request, here: Actor | None, position: int) -> None:
        if _lives(here):
            is_good = bool(request.objects)
            _must("what cannot be read was taken", is_so=is_good)
            request.answers.append(position)
            self._over(request, "taken")

    def _may_wait(self, request: Request, here: Actor | None, error: Exception) -> bool:
        """Whether a request may be told to come again though no disk failed."""
        if not isinstance(error, TransientError):
            return False
        return here in self.ending or request.key in self.hung_up

    async def _put(self, intakes: Intakes, request: Request) -> int:
        rng = self.machine.world.rng
        while True:
            # Settings change that no record is read by.
            shards = 2 if rng.random() < 0.9 else 3
            one = await intakes.of(replace(self.machine.stream, shards=shards))
            try:
                live = self.machine.is_live
                stored = await one.put(request.body, _MEDIA, request.key, is_live=live)
            except ClosedError:
                continue
            return stored.position

    def _over(self, request: Request, what: str) -> None:
        """It was answered; at times its client did not hear it, and makes it again."""
        self.told[what] += 1
        if not self.is_last and self.machine.world.rng.random() < 0.3:
            self._again(request, request.by, "again")
        else:
            request.by = None
            self.done.append(request)

    def _again(self, request: Request, here: Actor | None, what: str) -> None:
        if not _lives(here):
            return  # `returned` gives it back
        self.told[what] += 1
        request.by = None
        self.wanted.insert(self._soon(), request)

    def _soon(self) -> int:
        """Where one stands among those that are wanted who makes his request again."""
        return self.machine.world.rng.randint(0, min(3, len(self.wanted)))

    def returned(self, requests: list[Request]) -> None:
        """What servers had that were killed is wanted again."""
        for request in requests:
            if request.by is not None and request.by.is_done:
                request.by = None
                self._note_age(request.key)
                self.wanted.insert(self._soon(), request)

    # --- listeners ----------------------------------------------------------------------------------------------------

    async def _listen(self, hub: Hub, ear: Ear) -> None:
        here, rng = self.machine.world.here, self.machine.world.rng
        failed = self.faults.count
        try:
            after = None if ear.last is None else place_of_id(ear.last)
            mine = await hub.join(ear.query, after)
        except (StorageError, TransientError) as error:
            _must(
                f"nobody can listen without a fault: {error!r}",
                is_so=not _lives(here)
                or self.faults.count > failed
                or self.faults.is_full,
            )
            ear.by = None
            return
        if not _lives(here):
            return
        ear.resumed += after is not None
        if after is None:
            ear.heard, ear.begun = [], follow.FIRST
        try:
            async with asyncio.timeout(_LAST_S if self.is_last else rng.random()):
                await self._heard(hub, mine, ear, is_begun=after is not None)
        except TimeoutError:
            pass  # he hangs up
        except (OSError, StorageError) as error:
            _must(
                f"a listener ends with {error!r}",
                is_so=self.faults.count > failed,
            )
        finally:
            hub.leave(mine)
            ear.by = None

    async def _heard(
        self, hub: Hub, mine: changes.Listener, ear: Ear, *, is_begun: bool
    ) -> None:
        here, rng = self.machine.world.here, self.machine.world.rng
        async with aclosing(cast("Any", hub.told(mine))) as told:
            async for piece in told:
                for event in events_of(piece):
                    if not _lives(here):
                        return
                    _note(ear, event, is_begun=is_begun)
                if self.is_last and self.has_all(ear):
                    return
                await asyncio.sleep(rng.choice((0.0, 0.0, 0.01, 0.2)))

    def expected(self, ear: Ear) -> list[tuple[int, int, str, str, int]]:
        """What he is to have heard in the end: rows of the table behind where he began."""
        rows = self.machine.tables.rows(self.machine.table)
        return [
            (row["position"], row["seq"], row["query"], row["object"], row["sign"])
            for row in rows
            if (row["position"], row["seq"]) > ear.begun
            and ear.query in (None, row["query"])
        ]

    def has_all(self, ear: Ear) -> bool:
        """Whether he has heard as much as there is to hear."""
        return ear.last is None or len(ear.heard) >= len(self.expected(ear))


def _note(ear: Ear, event: dict[str, str], *, is_begun: bool) -> None:
    """What one hears of an event."""
    ear.ended += event.get("event") == "end"
    if "id" not in event:
        return
    ear.last, at = event["id"], place_of_id(event["id"])
    if "data" in event:
        ear.heard.append((at, json.loads(event["data"])))
    elif not is_begun:
        ear.begun = at


def events_of(piece: bytes) -> Iterator[dict[str, str]]:
    """The fields of each event of a piece; lines of comments have none."""
    for block in piece.decode().split("\n\n"):
        fields = [line.partition(": ") for line in block.split("\n")]
        event = {name: value for name, _, value in fields if name}
        if event:
            yield event


def _lives(actor: Actor | None) -> bool:
    return actor is not None and not actor.is_killed


def _raised(task: asyncio.Task[None]) -> bool:
    """Raises what a client found wrong."""
    task.result()
    return False


def _must(what: str, *, is_so: bool) -> None:
    assert is_so, what


@contextmanager
def served(machine: Machine, *, most_waiting: int) -> Iterator[None]:
    """While this is open, servers work on a machine too."""

    def now_us() -> int:
        return machine.world.now_us

    def writer(home: Any, stream: Any, source: str) -> Writer:
        return Writer(home, stream, source, clock=now_us)

    with ExitStack() as stack:
        stack.enter_context(installed(machine))
        for what in (
            patch.object(asyncio, "to_thread", inline(machine.world)),
            patch.multiple(intake, Writer=writer, wall_clock=now_us, _KEYS=KEPT_KEYS),
            patch.object(changes, "MOST_WAITING", most_waiting),
            patch.multiple(follow, Tail=machine.tables.tail, require_kept=_nothing),
        ):
            stack.enter_context(cast("Any", what))
        yield


def _nothing(*_given: object) -> None:
    """Nothing is purged on this machine."""
