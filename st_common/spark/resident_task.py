"""A task that stays: steps the shards that it is given, for as long as its driver lives (docs/adr/0081).

driver says                          the task
take shards 0 and 2 at 180           loads their newest states, and steps them up to segment 180, telling nothing
step 0 and 2 from 180 to 183         steps them, and answers with what each has to tell
tell 2 from 180 to 183               which had much to tell, and kept it: writes it into files, answers with their names
store 0 and 2                        stores their states, and answers up to where
drop 2                               forgets it: another task has it now
"""

import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.archive_queue import end_of
from st_common.engine.cross_shard import NOBODY, asking_in, undealt_in
from st_common.engine.export import asked_exports, export_path
from st_common.engine.states import States, save
from st_common.errors import FairwayError
from st_common.log.log import Segment
from st_common.log.reader import Piece
from st_common.operations.workers import Meter
from st_common.operators.events.packet import Packet
from st_common.operators.guests.hosting import hosted
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import Step, step
from st_common.operators.runtime.wanted import wanted_us
from st_common.operators.state.difference import Changed
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.position import position_of, start_of
from st_common.spark.exchange.decoded import arrays_of
from st_common.spark.exchange.decoding import PACKETS, Decoding, shared_packets
from st_common.spark.exchange.eras import Era, newest_state, states_of
from st_common.spark.exchange.guests import (
    GUESTS,
    GuestService,
    Held,
    LogPart,
    OtherShards,
)
from st_common.spark.exchange.layers import LAYERS, RegionService, shared_layers
from st_common.spark.exchange.peers import Peers
from st_common.spark.exchange.results import Untold, tell_by_files
from st_common.spark.exchange.wire import (
    ALIVE_S,
    Address,
    Head,
    Keys,
    Wire,
    connected,
    failure,
)
from st_common.spark.shard import Notes, result_blob
from st_common.spark.task_settings import TaskSettings

_CATCH_UP_BYTES = 32 << 20


def serve(
    address: Address, keys: Keys, feed: TaskSettings, *, stands_in: bool = False
) -> None:
    """Steps shards for the driver at an address until it says that this is the end.

    Args:
        address: host and port of the driver.
        keys: show the driver that this is a task of its own.
        feed: the stream, and its shards.
        stands_in: it has all shards until others have come.

    Where nobody listens any more there is nothing to do.

    Raises:
        OSError: the connection broke; Spark starts the task again.
        EOFError: likewise.
        FairwayError: the log or a state cannot be used; the driver was told, and ends.
    """
    try:
        wire = connected(address, keys)
    except ConnectionRefusedError:
        return
    over = threading.Event()
    try:
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        hello: Head = {"is": "hello", "name": name}
        with _answering(wire.host, keys, feed) as (peers, decoding, guests):
            known = {"stands_in": True} if stands_in else {"peer": peers.address}
            wire.send({**hello, **known})
            told = wire, over, Meter("task", Path(feed.home))
            threading.Thread(target=_beat, args=told, daemon=True).start()
            _work(wire, feed, peers, decoding, guests)
    finally:
        over.set()
        wire.close()


@contextmanager
def _answering(
    host: str, keys: Keys, feed: TaskSettings
) -> Iterator[tuple[Peers, Decoding, GuestService]]:
    """This task for others, at the address by which it reaches its driver, and what it answers them by."""
    regions = RegionService(Home(Path(feed.home)), feed.stream.space)
    decoding = Decoding(feed)
    guests = GuestService(feed, decoding)
    peers = Peers(host, keys, {LAYERS: regions, PACKETS: decoding, GUESTS: guests})
    try:
        yield peers, decoding, guests
    finally:
        peers.close()


def _work(
    wire: Wire,
    feed: TaskSettings,
    peers: Peers,
    decoding: Decoding,
    guests: GuestService,
) -> None:
    """Does what the driver says, until it says that this is the end, or something cannot be used."""
    task = _Task(wire, feed, peers, decoding, guests)
    try:
        while task.does(*wire.receive()):
            pass
    except (OSError, EOFError, MemoryError):
        raise  # it may pass: Spark starts the task again
    except Exception as error:
        wire.send(failure(error))
        raise


def serve_partition(
    address: Address, keys: Keys, feed: TaskSettings, _part: Iterable[int]
) -> None:
    """What a task of the job does with its partition, which has nothing in it but that: see `serve`."""
    serve(address, keys, feed)


def _beat(wire: Wire, over: threading.Event, meter: Meter) -> None:
    """Says again and again that the task lives, and what it takes."""
    while True:
        try:
            wire.send({"is": "alive", "worker": meter.read().to_json()})
        except OSError:
            return
        if over.wait(ALIVE_S):
            return


class _Task:
    """What a task does for its driver.

    Args:
        wire: the connection to it.
        feed: the stream.
        peers: the tasks, this one among them.
        decoding: what it decodes by, for itself and for others.
        guests: what it says to others of its shards' objects.
    """

    def __init__(
        self,
        wire: Wire,
        feed: TaskSettings,
        peers: Peers,
        decoding: Decoding,
        guests: GuestService,
    ) -> None:
        self._wire, self._feed = wire, feed
        self._peers, self._decoding, self._guests = peers, decoding, guests
        self._home, self._log = Home(Path(feed.home)), feed.log()
        self._layer_of = shared_layers(self._home, feed.stream, peers)
        self._held = guests.held
        self._era = Era(start=feed.start, following=NOBODY)
        self._storing: threading.Thread | None = None

    def does(self, head: Head, body: bytes) -> bool:
        """Does what a message says; whether there is more to do after it."""
        if "era" in head:
            self._enter(Era.from_json(head["era"]))
            self._peers.meet(head["peers"])
        match head["do"]:
            case "take" | "drop":
                self._move(head)
            case "step":
                self._step(head)
            case "tell":
                self._tell(head, np.frombuffer(body, np.int64))
            case "store":
                self._store(head["shards"], head["round"], head["needed"])
            case _:
                return False
        return True

    def _move(self, head: Head) -> None:
        """Takes shards that others had, or forgets those that others have now."""
        for shard in head["shards"]:
            if head["do"] == "take":
                self._take(shard, head["at"], head["committed"])
            else:
                self._held.pop(shard, None)

    def _enter(self, era: Era) -> None:
        """Forgets the states of another era; those of this one begin where that one ended."""
        if era != self._era:
            self._held.clear()
        self._era = era

    def _step(self, head: Head) -> None:
        """Steps shards over some segments, and answers for each."""
        for shard, blob in self._results(head, head["shards"]):
            said = {"is": "stepped", "shard": shard, "plan": head["plan"]}
            self._wire.send(said, blob)

    def _results(
        self, head: Head, shards: Sequence[int]
    ) -> Iterator[tuple[int, bytes]]:
        """Steps shards for a plan, and gives what each answers; what has much to tell may keep it."""
        if not shards:
            return  # the log is not read for nobody
        start = head["start"]
        for shard in shards:
            if shard not in self._held or self._place(shard) != start:
                self._take(shard, start, head["committed"])
        segments = self._log.segments(start, end=head["end"])
        part = LogPart(start=start, end=head["end"], era=self._era)
        made = self._packets(segments, shards)
        decoded = self._for_archive(head, shards)
        self._guests.reads(part, made)
        for shard in shards:
            packets = self._with_guests(shard, made[shard], part, head["holders"])
            done = self._stepped(shard, packets)
            yield shard, self._answer(shard, done, packets, head, decoded)
            decoded = []
        self._guests.forget()

    def _for_archive(self, head: Head, shards: Sequence[int]) -> list[Piece]:
        """What this task hands over of a plan: its share; where each has decoded all, the one with shard 0 does."""
        decoded = self._decoding.taken(head["start"], head["end"])
        if head["is_archived"] or not decoded:
            return []
        has_all = decoded[0].segments[0].number == head["start"]
        has_all &= end_of(decoded[-1]) == head["end"]
        return [] if has_all and 0 not in shards else decoded

    def _answer(
        self,
        shard: int,
        done: Step,
        packets: list[Packet],
        head: Head,
        decoded: Sequence[Piece],
    ) -> bytes:
        """What a shard answers for a plan; what is much to tell it keeps where that may go into files."""
        least, untold = head["untold"], None
        has_others = self._era.by_reach or shard in self._era.following
        if least is not None:
            own = [] if has_others else packets
            untold = Untold.of(head["plan"], done.changes, own)
        # Who follows others has their fixes, too: all that it tells may stand where others tell something.
        is_kept = least is not None and not has_others and len(done.changes) >= least
        self._held[shard].untold = untold if is_kept else None
        notes = self._notes(shard, done.state)
        return result_blob(
            done,
            packets,
            notes,
            untold=untold,
            is_kept=is_kept,
            decoded=({}, {})
            if head["is_archived"]
            else arrays_of(done, decoded, self._settings(shard)),
        )

    def _notes(self, shard: int, state: State) -> Notes:
        """What the driver must know of a shard."""
        shards = self._feed.shards
        return Notes(
            wanted=wanted_us(state, self._settings(shard)),
            asking=asking_in(state.queries, shards),
            undealt=undealt_in(state.queries, start_of(self._era.start)),
        )

    def _with_guests(
        self,
        shard: int,
        packets: list[Packet],
        part: LogPart,
        holders: Sequence[Any],
    ) -> list[Packet]:
        """The packets of a shard with the fixes of its guests, which its state knows then (docs/adr/0100)."""
        if shard in self._era.following or not (self._era.by_reach and packets):
            return packets
        held = self._held[shard]
        others = OtherShards(peers=self._peers, holders=holders, part=part, shard=shard)
        state, read = hosted(
            held.state,
            packets,
            self._settings(shard),
            others,
            is_first=part.start == max(self._era.start, self._feed.start),
        )
        if state is not held.state:
            held.state, held.changed = state, None
        return read

    def _tell(self, head: Head, shared: np.ndarray) -> None:
        """Writes what shards made of a plan into files, and answers for each; who has not stepped it does so first."""
        missing = [shard for shard in head["shards"] if not self._has(shard, head)]
        for _ in self._results(head, missing):
            pass  # what it answers is known, by whoever had the shard before
        table = self._home.table("changes", self._feed.stream.name)
        for shard in head["shards"]:
            untold = self._held[shard].untold
            assert untold is not None  # noqa: S101 - it was just stepped
            told = tell_by_files(
                untold,
                shared,
                table=table,
                contract=load_contract("changes"),
                committed=head["committed"],
            )
            said = {"is": "told", "shard": shard, "plan": head["plan"]}
            self._wire.send(said, told.to_blob())

    def _has(self, shard: int, head: Head) -> bool:
        """Whether a shard has made what a plan has to tell."""
        untold = self._held[shard].untold if shard in self._held else None
        return untold is not None and untold.plan == head["plan"]

    def _take(self, shard: int, at: int, committed: int) -> None:
        """Loads the newest state of a shard, and steps it up to a place: what it tells until then is known."""
        states = self._states(shard)
        upto = min(committed, position_of(at, 0) - 1)
        state = newest_state(states, self._feed, shard, upto=upto)
        self._held[shard] = Held.of(state, states)
        unknown = [None] * self._feed.shards
        while (place := self._place(shard)) < at:
            segments = self._log.segments(place, end=at, max_bytes=_CATCH_UP_BYTES)
            end = segments[-1].number + 1
            part = LogPart(start=place, end=end, era=self._era)
            own = self._packets(segments, [shard])[shard]
            # Others have gone on: what they knew there is made of what is stored.
            self._stepped(shard, self._with_guests(shard, own, part, unknown))

    def _place(self, shard: int) -> int:
        """The segment that a shard reads next."""
        return self._feed.place_of(self._held[shard].state)

    def _stepped(self, shard: int, packets: list[Packet]) -> Step:
        held, settings = self._held[shard], self._settings(shard)
        done = step(held.state, packets, settings, self._layer_of)
        held.before = held.state if self._era.by_reach else None
        held.state = done.state
        if held.changed is not None:
            held.changed.add(done.deltas)
        for segment in asked_exports(packets):
            name = self._feed.stream.name
            save(export_path(self._home, name, segment, shard), done.state)
        return done

    def _packets(
        self, segments: Sequence[Segment], shards: Sequence[int]
    ) -> dict[int, list[Packet]]:
        """The packets of some shards: the log is decoded once, however many they are."""
        return shared_packets(
            self._decoding,
            self._peers,
            segments,
            shards,
            following=self._era.following,
        )

    def _store(self, shards: Sequence[int], number: int, needed: int | None) -> None:
        """Stores states in a thread, which takes seconds when they are large; the task goes on meanwhile."""
        if self._storing is not None:
            self._storing.join()
        kept = []
        for shard in shards:
            held = self._held[shard]
            state = retired(held.state, self._settings(shard), least=LEAST)
            # What forgot is stored whole.
            changed = held.changed if state is held.state else None
            held.state, held.changed = state, Changed.since(state)
            held.states.needed = needed
            kept.append((shard, held.states, state, changed))
        self._storing = threading.Thread(target=self._stored, args=(kept, number))
        self._storing.start()

    def _stored(self, kept: Sequence[tuple[Any, ...]], number: int) -> None:
        try:
            for shard, states, state, changed in kept:
                states.store(state, changed)
                place = {"shard": shard, "next": state.next_segment, "round": number}
                self._wire.send({"is": "stored", **place, "begins": states.begins()})
        except FairwayError as error:
            self._wire.send(failure(error))
        except OSError:
            return  # the driver is gone, and the task hears of it where it waits

    def _states(self, shard: int) -> States:
        return states_of(self._home, self._feed.stream.name, self._era, shard)

    def _settings(self, shard: int) -> Settings:
        settings = self._feed.settings(shard)
        return replace(settings, hosted=self._era.by_reach)
