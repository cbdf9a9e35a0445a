"""The tasks that stay, as their driver sees them: who has which shard, what each answers, who has fallen silent.

Shards are dealt out among the tasks that live, and dealt out again when one joins, breaks off, or says nothing for too
long. Whoever is left out is not heard any more: its connection is closed, and nothing else that it does is told. What a
shard tells of a part of the log is the same whoever steps it, so a plan that was under way is sent to whoever has the
shard now.
"""

import contextlib
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from st_common.spark.exchange import wire
from st_common.spark.exchange.wire import Address, Head, Keys, Listener, Wire, error_of

_LOOK_S = 0.5
_ANSWERS = {"step": "stepped", "tell": "told"}
"""What tasks are asked for a plan, and by which word they answer."""


@dataclass(eq=False)
class _Task:
    """A task that said hello: its connection, when it was heard last, the shards that it has.

    One that `stands_in` has all shards until it is relieved, whoever comes. `peer` is where others may ask it (see
    `Peers`). `worker` is what its process said of itself last.
    """

    wire: Wire
    name: str
    stands_in: bool
    peer: Address | None
    shards: set[int] = field(default_factory=set)
    heard_s: float = field(default_factory=time.monotonic)
    since_s: float = field(default_factory=time.monotonic)
    worker: Mapping[str, Any] | None = None

    @staticmethod
    def of(connection: Wire, hello: Head) -> "_Task":
        """A task, by what it said first."""
        peer = hello.get("peer")
        return _Task(
            connection,
            name=str(hello["name"]),
            stands_in=bool(hello.get("stands_in")),
            peer=None if peer is None else (str(peer[0]), int(peer[1])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A part of the log that all shards step: segments from `start` to before `end`, in an era as `Era` has it.

    A shard with as many changes as `untold` keeps them until it is asked for them (see `Crew.tell`); None: none does.
    Tasks hand over what they decoded, unless all of it `is_archived`.
    """

    number: int
    start: int
    end: int
    committed: int
    era: Mapping[str, Any] = field(default_factory=dict)
    untold: int | None = None
    is_archived: bool = True


class Crew:
    """Listens for tasks, and has them step all shards.

    Args:
        shards: how many shards there are.
        host: the address to listen on, which tasks reach.

    Attributes:
        address: where tasks find it.
        keys: by which they show that they are its own.
    """

    def __init__(self, shards: int, host: str) -> None:
        self._all = range(shards)
        self._inbox: queue.SimpleQueue[tuple[_Task, Head, bytes]] = queue.SimpleQueue()
        self._tasks: list[_Task] = []
        self._stored: dict[int, int] = {}
        self._begins: dict[int, int] = {}
        self._round = 0
        self.keys = Keys.made()
        self._listener = Listener(host, self.keys, self._read, name="driver")
        self.address = self._listener.address

    def step(self, plan: Plan, check: Callable[[], None] = lambda: None) -> list[bytes]:
        """What all shards have to tell of a part of the log, in their order, as `result_blob` makes it.

        Args:
            plan: the part.
            check: called again and again while tasks are waited for; what it raises ends the wait.

        Raises:
            FairwayError: a task could not go on: the log or a state cannot be used.
        """
        return self._answers(plan, "step", self._all, b"", check)

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
        return self._answers(plan, "tell", shards, shared, check)

    def _answers(
        self,
        plan: Plan,
        do: str,
        shards: Sequence[int],
        body: bytes,
        check: Callable[[], None],
    ) -> list[bytes]:
        """What shards answer, whoever has them meanwhile."""
        results: dict[int, bytes] = {}
        asked: dict[int, _Task] = {}
        self._deal(plan)
        while len(results) < len(shards):
            waiting = [shard for shard in shards if shard not in results]
            self._ask(plan, do, waiting, body, asked)
            check()
            with contextlib.suppress(queue.Empty):
                task, head, answer = self._inbox.get(timeout=_LOOK_S)
                is_answer = self._hear(task, head) == _ANSWERS[do]
                if is_answer and head["plan"] == plan.number:
                    results[head["shard"]] = answer
            self._leave_silent()
            self._deal(plan)
        return [results[shard] for shard in shards]

    def _ask(
        self,
        plan: Plan,
        do: str,
        waiting: Sequence[int],
        body: bytes,
        asked: dict[int, _Task],
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
                part: Head = {"plan": plan.number, "start": plan.start}
                part["end"] = plan.end
                part |= {"untold": plan.untold, "is_archived": plan.is_archived}
                known = {**part, **self._known(plan)}
                self._say(task, {"do": do, "shards": shards, **known}, body)

    def store(self, needed: int | None = None) -> None:
        """Has all states stored; `stored` says when they are. Old ones that a start from `needed` takes stay."""
        self._round += 1
        self._stored, self._begins = {}, {}
        what: Head = {"do": "store", "round": self._round, "needed": needed}
        for task in list(self._tasks):
            if shards := sorted(task.shards):
                self._say(task, {**what, "shards": shards})

    def begins(self) -> int | None:
        """The segment before which no start reads the log, once all is stored; else None."""
        return None if self.stored() is None else min(self._begins.values())

    def stored(self) -> int | None:
        """The segment before which all is stored, by the round of `store` that was last; None: not all is yet."""
        self.listen()
        is_whole = len(self._stored) == len(self._all)
        return min(self._stored.values()) if is_whole else None

    def listen(self) -> None:
        """Hears what tasks have said since, without waiting.

        Raises:
            FairwayError: as `step`.
        """
        while not self._inbox.empty():
            task, head, _ = self._inbox.get()
            self._hear(task, head)
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
        return sum(map(_load, self._tasks)) == len(self._all)

    def _read(self, connection: Wire) -> None:
        """Hears one task until it breaks off."""
        hello, _ = connection.receive()
        task = _Task.of(connection, hello)
        self._inbox.put((task, hello, b""))
        try:
            while True:
                head, body = connection.receive()
                task.heard_s = time.monotonic()
                self._inbox.put((task, head, body))
        finally:
            self._inbox.put((task, {"is": "gone"}, b""))

    def _hear(self, task: _Task, head: Head) -> str:
        """Takes note of what a task said; what it was, "" where it is not heard any more."""
        said = str(head["is"])
        if said == "hello":
            task.heard_s = time.monotonic()
            self._tasks.append(task)
        if task not in self._tasks:
            return ""
        match said:
            case "gone":
                self._leave(task)
            case "failed":
                raise error_of(head)
            case "alive":
                task.worker = head.get("worker")
            case "stored" if head["round"] == self._round:
                self._stored[head["shard"]] = head["next"]
                self._begins[head["shard"]] = head["begins"]
        return said

    def _deal(self, plan: Plan) -> None:
        """Gives each shard to a task, and moves one where a task has two more than another."""
        tasks = [task for task in self._tasks if task.stands_in] or self._tasks
        if not tasks:
            return
        held = {shard for task in self._tasks for shard in task.shards}
        for shard in sorted(set(self._all) - held):
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
        holder = {shard: task.peer for task in self._tasks for shard in task.shards}
        return {
            "committed": plan.committed,
            "era": plan.era,
            "peers": sorted(task.peer for task in self._tasks if task.peer),
            "holders": [holder.get(shard) for shard in self._all],
        }

    def _leave_silent(self) -> None:
        """Leaves out who has said nothing for too long: it may be stopped, and go on later."""
        since_s = time.monotonic() - wire.SILENT_S
        for task in [task for task in self._tasks if task.heard_s < since_s]:
            self._leave(task)

    def _leave(self, task: _Task) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        task.wire.close()

    def _say(self, task: _Task, head: Head, body: bytes = b"") -> None:
        try:
            task.wire.send(head, body)
        except OSError:
            self._leave(task)


def _load(task: _Task) -> int:
    return len(task.shards)
