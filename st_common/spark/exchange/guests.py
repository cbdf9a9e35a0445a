"""What tasks ask each other about guests (docs/adr/0100): who is near the queries of a shard, and where they went.

    task A holds shard 0, and steps 180 .. 183           task B holds shards 1 and 2
    asks B for its guests of 1 and 2, by name      ->    what 1 and 2 knew at 180, and their packets of the part
    asks B who is near its queries, by place       ->    likewise

A task that has no state of a shard at that place, for it was just given it, or has gone on, makes one of what is stored
and the log: what a shard knows of its own objects depends on nobody. So does whoever gets no answer.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.config.home import Home
from st_common.controls.rows import Clock, End, Export
from st_common.engine.cross_shard import NOBODY
from st_common.engine.states import States
from st_common.errors import StateError
from st_common.log.log import Segment
from st_common.operators.events.packet import Packet
from st_common.operators.guests.answering import Own, Told, bare, joined
from st_common.operators.guests.cells import Cells
from st_common.operators.guests.part_fixes import PartFixes
from st_common.operators.runtime.stages import step
from st_common.operators.state.difference import Changed
from st_common.operators.state.intern import shards_of
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.spark.exchange.decoding import Decoding
from st_common.spark.exchange.eras import Era, newest_state, states_of
from st_common.spark.exchange.peers import Arrays, Ask, Peers
from st_common.spark.exchange.results import Untold
from st_common.spark.task_settings import TaskSettings


@dataclass
class Held:
    """A shard in a task.

    Attributes:
        state: what it knows now.
        states: where its states are stored.
        changed: what changed since it was stored; None: its objects were numbered anew, so that it is stored whole.
        untold: what it has made of a plan and keeps until it is asked.
        before: the state before the part that was stepped last; others may still ask for it. None where nobody does.
    """

    state: State
    states: States
    changed: Changed | None
    untold: Untold | None = None
    before: State | None = None

    @staticmethod
    def of(state: State, states: States) -> "Held":
        """A shard whose state was just read."""
        return Held(state=state, states=states, changed=Changed.since(state))


GUESTS = "guests"
"""What others are asked about."""
TOLD = "told"
_WAIT_S = 5.0
"""How long an answer waits until the task has read the packets of a part; then it reads them itself."""
_AT_ONCE_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """A part of the log in an era: segments from `start` to before `end`."""

    start: int
    end: int
    era: Era


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a task has read of a part of the log, by shard, and what was made of it for those who ask."""

    part: LogPart
    packets: Mapping[int, Sequence[Packet]]
    owns: dict[int, Own] = field(default_factory=dict)


class GuestService:
    """Says of shards what they know of their own objects; from several threads. The one that makes it is the task's.

    Args:
        feed: the stream, and its shards.
        decoding: what reads the log where packets are not at hand.

    Attributes:
        held: the shards of this task.
    """

    def __init__(self, feed: TaskSettings, decoding: Decoding) -> None:
        self._feed, self._decoding = feed, decoding
        self._home, self._log = Home(Path(feed.home)), feed.log()
        self._news, self._making = threading.Condition(), threading.Lock()
        self.held: dict[int, Held] = {}
        self._task = threading.get_ident()
        self._reading: _Reading | None = None
        self._made: dict[int, State] = {}
        self._asked: set[int] = set()

    def reads(self, part: LogPart, packets: Mapping[int, Sequence[Packet]]) -> None:
        """Takes note of a part that is stepped next, and of the packets of the shards here."""
        with self._news:
            self._reading = _Reading(part, packets)
            self._news.notify_all()

    def forget(self) -> None:
        """Lets go of states that were made and nobody has asked for since the last time."""
        with self._making:
            self._made = {n: one for n, one in self._made.items() if n in self._asked}
            self._asked = set()

    def answer(
        self, asked: Mapping[str, Any], arrays: Any
    ) -> tuple[list[int], dict[str, Any]]:
        """What another task asks about some shards in a part of the log.

        Args:
            asked: `shards`; the part as `start`, `end` and `era`; and `side` of cells, None where it is asked by name.
            arrays: `hashes` and `new`, or `cells` and `known`; see `Own`.

        Returns:
            How many shards; and what they say, as the blob of a `Told`.

        Raises:
            LogError: a segment cannot be read.
            StateError: a state cannot be used.
        """
        part = LogPart(
            start=asked["start"], end=asked["end"], era=Era.from_json(asked["era"])
        )
        told = [self._told(shard, part, asked, arrays) for shard in asked["shards"]]
        blob = joined(told).to_blob()
        return [len(told)], {TOLD: pa.array([blob], pa.large_binary())}

    def _told(
        self, shard: int, part: LogPart, asked: Mapping[str, Any], arrays: Any
    ) -> Told:
        own = self._own(shard, part)
        if asked["side"] is None:
            return own.named(arrays["hashes"], arrays["new"])
        cells = Cells(side=asked["side"], numbers=arrays["cells"])
        return own.nearby(cells, arrays["known"])

    def _own(self, shard: int, part: LogPart) -> Own:
        """What a shard knows of its own objects in a part; kept while the part is stepped here."""
        state = self._held(shard, part)
        # Who waits for the packets here has the reading of this very part, whatever is read next.
        reading = self._read(part, wait=state is not None)
        if reading is not None and shard in reading.owns:
            return reading.owns[shard]
        packets = None if reading is None else reading.packets.get(shard)
        if state is None:
            state = self._stepped(shard, part)
        if packets is None:
            packets = self._decoded(part)[shard]
        own = Own(state, PartFixes.of(packets), shard, self._feed.shards)
        if reading is not None:
            reading.owns[shard] = own
        return own

    def _held(self, shard: int, part: LogPart) -> State | None:
        """The state of a shard at the start of a part, if it is here."""
        held = self.held.get(shard)
        for state in () if held is None else (held.before, held.state):
            if state is not None and self._feed.place_of(state) == part.start:
                return state
        return None

    def _read(self, part: LogPart, *, wait: bool) -> "_Reading | None":
        """What the task has read of a part, which others wait for; None where it does not come to that."""
        is_task = threading.get_ident() == self._task
        with self._news:
            self._news.wait_for(
                lambda: self._reading is not None and self._reading.part == part,
                _WAIT_S if wait and not is_task else 0.0,
            )
            reading = self._reading
        return reading if reading is not None and reading.part == part else None

    def _decoded(self, part: LogPart) -> dict[int, list[Packet]]:
        """The packets of all shards in a part, each of its own objects."""
        segments = self._log.segments(part.start, end=part.end)
        return self._by_shard(segments)

    def _by_shard(self, segments: Sequence[Segment]) -> dict[int, list[Packet]]:
        made = self._decoding.decoded(segments, following=NOBODY) if segments else []
        shards = range(self._feed.shards)
        return {shard: [packets[shard] for packets in made] for shard in shards}

    def _stepped(self, shard: int, part: LogPart) -> State:
        """What a shard knew of its own objects at the start of a part, by what is stored and the log."""
        with self._making:
            state = self._made.get(shard)
            if state is None or state.next_segment > part.start:
                state = self._stored(shard, part)
            while (place := self._feed.place_of(state)) < part.start:
                segments = self._log.segments(
                    place, end=part.start, max_bytes=_AT_ONCE_BYTES
                )
                packets = map(_without_queries, self._by_shard(segments)[shard])
                settings = replace(self._feed.settings(shard), hosted=True)
                state = step(state, packets, settings, _no_layer).state
            self._made[shard] = state
            self._asked.add(shard)
            return state

    def _stored(self, shard: int, part: LogPart) -> State:
        states = states_of(self._home, self._feed.stream.name, part.era, shard)
        upto = position_of(part.start, 0) - 1
        return bare(newest_state(states, self._feed, shard, upto=upto))


def _without_queries(packet: Packet) -> Packet:
    """A packet that says when it is, and of no queries."""
    if not packet.controls:
        return packet
    rows = [
        row if isinstance(row, Clock | End) else Export() for row in packet.controls
    ]
    return replace(packet, controls=rows, seeds={})


def _no_layer(layer: str, version: int) -> Any:
    raise StateError(f"no query asks for layer {layer!r} in version {version}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherShards:
    """The other shards of one, as `hosted` asks them; several of one task are asked together.

    Attributes:
        peers: the tasks.
        holders: by shard the address of the task that has it, None where that is not known.
        part: of the log.
        shard: the one that asks.
    """

    peers: Peers
    holders: Sequence[Sequence[Any] | None]
    part: LogPart
    shard: int

    def named(self, hashes: np.ndarray, new: np.ndarray) -> list[Told]:
        """See `hosting.Others`; shards are asked that have such objects."""
        wanted = set(np.unique(shards_of(hashes, len(self.holders))).tolist())
        return self._told(wanted, None, {"hashes": hashes, "new": new})

    def nearby(self, cells: Cells, known: np.ndarray) -> list[Told]:
        """See `hosting.Others`."""
        if not len(cells.numbers):
            return []
        every = set(range(len(self.holders)))
        arrays = {"cells": cells.numbers, "known": known}
        return self._told(every, cells.side, arrays)

    def _told(self, shards: set[int], side: float | None, arrays: Arrays) -> list[Told]:
        by_task: dict[int, list[int]] = {}
        for shard in sorted(shards - {self.shard}):
            number = self.peers.number_of(self.holders[shard])
            by_task.setdefault(number, []).append(shard)
        part = {
            "start": self.part.start,
            "end": self.part.end,
            "era": self.part.era.to_json(),
        }
        asks = {
            number: Ask({"what": GUESTS, "shards": asked, "side": side, **part}, arrays)
            for number, asked in by_task.items()
        }
        return [
            Told.from_blob(arrays[TOLD][0].as_buffer())
            for _, arrays in self.peers.ask(asks).values()
        ]
