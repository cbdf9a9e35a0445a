"""The tasks that stay, as their driver sees them: who has which shard, what each answers, who has fallen silent.

A task says hello when it starts, and again when Spark has started it anew. Shards are dealt out among those that live,
and dealt out again when one joins, breaks off, or says nothing for 15 s. Whoever is left out is not heard any more: its
connection is closed, and nothing else that it does is told. What a shard tells of a part of the log is the same whoever
steps it, so a plan that was under way is sent to whoever has the shard now.
"""

import queue
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from st_common.spark.exchange.wire import Head, Listener, Wire, error_of

SILENT_S = 15.0
"""For how long a task may say nothing; it says that it lives every three seconds."""
_LOOK_S = 0.5


@dataclass(eq=False)
class _Task:
    """A task that said hello: its connection, when it was heard last, the shards that it has.

    One that `stands_in` has all shards until it is relieved, whoever comes. `peer` is where others may ask it, by host
    and port (see `Peers`). `worker` is what its process said of itself last.
    """

    wire: Wire
    name: str
    heard_s: float
    shards: set[int] = field(default_factory=set)
    stands_in: bool = False
    peer: tuple[str, int] | None = None
    since_s: float = field(default_factory=time.monotonic)
    worker: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A part of the log that all shards step: segments from `start` to before `end`, in an era as `Era` has it.

    A shard with as many changes as `untold` keeps them until it is asked for them (see `Crew.tell`); None: none does.
    """

    number: int
    start: int
    end: int
    committed: int
    era: Mapping[str, Any] = field(default_factory=dict)
    untold: int | None = None


class Asked(NamedTuple):
    """What tasks are asked for a plan, by which word they answer, and what they must know for it."""

    do: str
    answer: str
    body: bytes = b""


_Heard = tuple[_Task, Head | None, bytes]


class Crew:
    """Listens for tasks, and has them step all shards.

    Args:
        shards: how many shards there are.
        host: the address to listen on, which tasks reach.
    """

    def __init__(self, shards: int, host: str) -> None:
        self._shards = shards
        self.token = secrets.token_hex(16)
        self._inbox: queue.SimpleQueue[_Heard] = queue.SimpleQueue()
        self._tasks: list[_Task] = []
        self._stored: dict[int, int] = {}
        self._round = 0
        self._listener = Listener(host, self.token, self._read, name="crew")
        self.address = self._listener.address

    def step(self, plan: Plan, check: Callable[[], None] = lambda: None) -> list[bytes]:
        """What all shards have to tell of a part of the log, in their order, as `result_blob` makes it.

        Args:
            plan: the part.
            check: called again and again while tasks are waited for; what it raises ends the wait.

        Raises:
            FairwayError: a task could not go on: the log or a state cannot be used.
        """
        results = self._asked(plan, check, Asked("step", "stepped"), self._all)
        return [results[shard] for shard in self._all]

    def tell(
        self,
        plan: Plan,
        shards: Sequence[int],
        shared: bytes,
        check: Callable[[], None] = lambda: None,
    ) -> list[bytes]:
        """Has some shards write what they made of a plan, and kept, into files; what became of it, as `Told` has it.

        Args:
            plan: one that was stepped by `step`; whoever has not, as it has a shard of one that broke off, does that
                first.
            shards: those that kept what they made.
            shared: int64, positions that are told by the driver.
            check: as for `step`.

        Raises:
            FairwayError: as `step`.
        """
        what = Asked("tell", "told", shared)
        results = self._asked(plan, check, what, shards)
        return [results[shard] for shard in shards]

    def _asked(
        self, plan: Plan, check: Callable[[], None], what: Asked, shards: Sequence[int]
    ) -> dict[int, bytes]:
        """What shards answer, whoever has them meanwhile."""
        results: dict[int, bytes] = {}
        asked: dict[int, _Task] = {}
        self._deal(plan)
        while len(results) < len(shards):
            waiting = [shard for shard in shards if shard not in results]
            self._send_steps(plan, waiting, asked, what)
            check()
            for task, head, body in self._heard():
                is_answer = self._of(task, head) == what.answer
                if is_answer and head is not None and head["plan"] == plan.number:
                    results[head["shard"]] = body
            self._leave_silent()
            self._deal(plan)
        return results

    @property
    def _all(self) -> Sequence[int]:
        return range(self._shards)

    def store(self) -> None:
        """Has all states stored; `stored` says when they are."""
        self._round += 1
        self._stored = {}
        for task in self._tasks:
            if task.shards:
                shards = sorted(task.shards)
                self._say(task, {"do": "store", "shards": shards, "round": self._round})

    def stored(self) -> int | None:
        """The segment before which all that is needed is stored, by the round of `store` that was last; else None."""
        self.listen()
        whole = len(self._stored) == self._shards
        return min(self._stored.values()) if whole else None

    def listen(self) -> None:
        """Hears what tasks have said since, without waiting.

        Raises:
            FairwayError: as `step`.
        """
        while not self._inbox.empty():
            task, head, _ = self._inbox.get()
            self._of(task, head)
        self._leave_silent()

    def close(self) -> None:
        """Says that this is the end, and closes all connections."""
        self._listener.stop()
        for task in list(self._tasks):
            self._say(task, {"do": "end"})
        self._listener.close()

    def break_off(self, number: int) -> None:
        """Breaks the connection of a task, if there are so many: it is not heard any more, and starts anew."""
        if number < len(self._tasks):
            self._leave(self._tasks[number])

    @property
    def can_relieve(self) -> bool:
        """Whether tasks have come, and one that stands in for them still has their shards."""
        standing = sum(task.stands_in for task in self._tasks)
        return 0 < standing < len(self._tasks)

    def relieve(self) -> None:
        """Lets those go that stand in; their shards are dealt out to the others."""
        for task in [task for task in self._tasks if task.stands_in]:
            self._say(task, {"do": "end"})
            self._leave(task)

    def renew(self, *, after_s: float) -> None:
        """Lets the task end that has been there for longest, if that is so long, and others can take its shards.

        Spark starts another one in its slot, which is given some.
        """
        tasks = [task for task in self._tasks if not task.stands_in]
        oldest = min(tasks, key=lambda task: task.since_s, default=None)
        is_due = oldest and time.monotonic() - oldest.since_s >= after_s
        if oldest and is_due and len(tasks) > 1:
            self._say(oldest, {"do": "end"})
            if oldest in self._tasks:
                self._tasks.remove(oldest)  # it closes the connection when it has heard

    @property
    def names(self) -> list[str]:
        """The names of the tasks: the number of the process of each, and a word that tells starts apart."""
        return [task.name for task in self._tasks]

    def workers(self) -> list[dict[str, Any]]:
        """What the processes of the tasks said of themselves last, and which shards each has; safe for threads."""
        return [
            {**task.worker, "shards": sorted(task.shards.copy())}
            for task in list(self._tasks)
            if task.worker is not None and not task.stands_in
        ]

    @property
    def is_whole(self) -> bool:
        """Whether each shard is with a task that lives."""
        return sum(map(_load, self._tasks)) == self._shards

    @property
    def living(self) -> int:
        """How many tasks there are."""
        return len(self._tasks)

    def _read(self, wire: Wire, hello: Head) -> None:
        """Hears one task until it breaks off."""
        task = _Task(wire, str(hello["name"]), time.monotonic())
        task.stands_in = bool(hello.get("stands_in"))
        if "peer" in hello:
            task.peer = (str(hello["peer"][0]), int(hello["peer"][1]))
        self._inbox.put((task, {"is": "hello"}, b""))
        try:
            while True:
                head, body = wire.receive()
                task.heard_s = time.monotonic()
                self._inbox.put((task, head, body))
        except (OSError, EOFError, ValueError, KeyError):
            self._inbox.put((task, None, b""))

    def _heard(self) -> Iterable[_Heard]:
        """What was said next; nothing after half a second."""
        try:
            yield self._inbox.get(timeout=_LOOK_S)
        except queue.Empty:
            return

    def _of(self, task: _Task, head: Head | None) -> str:
        """Takes note of what a task said; what it was, "" where it broke off or is not heard any more."""
        if head is None:
            self._leave(task)
            return ""
        said = str(head["is"])
        if said == "hello":
            task.heard_s = time.monotonic()
            self._tasks.append(task)
        if task not in self._tasks:
            return ""
        if said == "failed":
            raise error_of(head)
        if said == "alive":
            task.worker = head.get("worker")
        if said == "stored" and head["round"] == self._round:
            self._stored[head["shard"]] = head["next"]
        return said

    def _deal(self, plan: Plan) -> None:
        """Gives each shard to a task, and moves one where a task has two more than another."""
        tasks = [task for task in self._tasks if task.stands_in] or self._tasks
        if not tasks:
            return
        held = {shard for task in self._tasks for shard in task.shards}
        for shard in sorted(set(range(self._shards)) - held):
            self._give(min(tasks, key=_load), shard, plan)
        while True:
            least, most = min(tasks, key=_load), max(tasks, key=_load)
            if _load(most) - _load(least) < 2:
                return
            shard = max(most.shards)
            most.shards.discard(shard)
            self._say(most, {"do": "drop", "shards": [shard]})
            self._give(least, shard, plan)

    def _give(self, task: _Task, shard: int, plan: Plan) -> None:
        task.shards.add(shard)
        place = {"at": plan.start, **self._known(plan)}
        self._say(task, {"do": "take", "shards": [shard], **place})

    def _known(self, plan: Plan) -> dict[str, Any]:
        """What a task must know to step for a plan, whatever it is asked."""
        peers = sorted(task.peer for task in self._tasks if task.peer)
        holder = {shard: task.peer for task in self._tasks for shard in task.shards}
        return {
            "committed": plan.committed,
            "era": plan.era,
            "peers": peers,
            "holders": [holder.get(shard) for shard in self._all],
        }

    def _send_steps(
        self,
        plan: Plan,
        waiting: Sequence[int],
        asked: dict[int, _Task],
        what: Asked,
    ) -> None:
        """Asks each task for those of its shards that are waited for, and that it was not asked for."""
        for task in list(self._tasks):
            shards = [
                shard
                for shard in waiting
                if shard in task.shards and asked.get(shard) is not task
            ]
            if shards:
                asked.update(dict.fromkeys(shards, task))
                said = {"plan": plan.number, "shards": shards, "untold": plan.untold}
                said |= {"start": plan.start, "end": plan.end, **self._known(plan)}
                self._say(task, {"do": what.do, **said}, what.body)

    def _leave_silent(self) -> None:
        """Leaves out who has said nothing for too long: it may be stopped, and go on later."""
        since_s = time.monotonic() - SILENT_S
        for task in [task for task in self._tasks if task.heard_s < since_s]:
            self._leave(task)

    def _leave(self, task: _Task) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        task.wire.close()

    def _say(self, task: _Task, head: dict[str, Any], body: bytes = b"") -> None:
        try:
            task.wire.send(head, body)
        except OSError:
            self._leave(task)


def _load(task: _Task) -> int:
    return len(task.shards)
