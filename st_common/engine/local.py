"""The local engine: folds the step over a log in this process. It defines the right answer, and it is quick."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive_queue import ArchiveQueue, decided_by
from st_common.engine.committing import APP, Committing
from st_common.engine.damage import tell_damage
from st_common.engine.owner import Owner
from st_common.engine.pace import Pace
from st_common.engine.packets import packets_in, step_settings
from st_common.engine.predicate_order import orders_of, write_orders
from st_common.engine.states import States, end_of
from st_common.engine.suspension import tell_failures
from st_common.engine.timekeeper import Timekeeper, heard
from st_common.layers.stored import load_index
from st_common.operations.awaited import write_awaited
from st_common.operators.events.packet import Packet, filtered_out_of, nulled_in
from st_common.operators.matching.layer import LayerOf
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import Step, step
from st_common.operators.runtime.wanted import wanted_us
from st_common.operators.skeleton.cache_counts import summed
from st_common.operators.state.difference import Changed
from st_common.operators.state.state import State
from st_common.position import position_of

if TYPE_CHECKING:
    from st_common.log.reader import Piece

BATCH_BYTES = 32 << 20
BASE_S = 10.0


def layers_of(home: Home, stream: StreamSettings) -> LayerOf:
    """A function that gives the layers of a home folder, in the space of a stream.

    Args:
        home: where the tables of layers lie.
        stream: its `space` says whether the shapes are on the plane or on the globe.

    Returns:
        `layer_of(layer, version)`, as `step` takes it. Each version is loaded once per process and kept.
    """
    return lambda layer, version: load_index(home, layer, version, space=stream.space)


class LocalEngine(Committing):
    """Follows the log of one stream; changes are told by a journal at once and by the table every second.

        log -> step -> changes -> journal              at each batch: readers see them at once
                       changes -> table `changes`      every second, with the app transaction `engine`
                       state   -> state objects        every 10 seconds; a cache

    The table is the one commit point (docs/adr/0014). The state that the engine starts from has seen nothing that the
    table or the archive lacks; the log is read again from there, and only changes after the committed position are
    given out. The step being deterministic, they are the same as they were: so a table that was restored from a copy is
    filled again.

    Args:
        home: the home folder.
        stream: the settings, as `topology.begin` gave them: with the key of ids of this stream.
        owner: whose lease the engine works under; without one (in tests) no commit is fenced.
        now_us: the wall clock, us UTC, by which a live stream goes on while it is quiet; the system's when None.
        sink: given what is decoded and filtered, for the archive beside the engine, which was made before it.
    """

    def __init__(
        self,
        home: Home,
        stream: StreamSettings,
        owner: Owner | None = None,
        *,
        now_us: Callable[[], int] | None = None,
        sink: ArchiveQueue | None = None,
    ) -> None:
        super().__init__(home, stream, owner)
        self.settings, self._layer_of = step_settings(stream), layers_of(home, stream)
        self.states = States.of(home, stream.name)
        self._sink = sink
        self.state = self._first()
        self.committed_event = (
            self.state.max_event
        )  # the largest event time up to where the table stands
        self._timekeeper = Timekeeper(
            self.log,
            stream,
            start=self.state.next_segment,
            now_us=now_us,
            folder=home.stream(stream.name),
        )
        self._changed = Changed.since(self.state)
        self._storing: Thread | None = None
        self._failure: Exception | None = None
        self._pace = Pace()
        if sink is not None:
            sink.begin(self.state.next_segment)
        self._based_s = time.monotonic()
        self._asked_s = -math.inf
        self._orders: dict[str, Any] = {}
        self.open()

    def _first(self) -> State:
        """The state to begin with. One that is ahead of a table would never make what the table lacks.

        Where there is none from before the archive's end, the archive reads what lies between by itself.
        """
        if self._sink is not None:
            self.states.needed = archived = self._sink.archived
            upto = min(self.committed, position_of(archived, 0) - 1)
            if self.log.purged_before() <= self.states.begins() <= archived:
                state = self.states.newest(upto=upto)
                if state.next_segment or upto == self.committed:
                    return state
        return self.states.newest(upto=self.committed)

    @property
    def end(self) -> int:
        """The last position that the state has seen."""
        return end_of(self.state)

    def batch(self) -> bool:
        """Reads the next batch of the log, runs the step on it, and tells the changes by the journal.

        A batch takes as many segments as `Pace` allows, 32 MiB at most. Nothing is committed here: see `commit_if_due`.

        Returns:
            False when the log has nothing new.

        Raises:
            LogError: a segment is missing or damaged, or says what this version does not know.
        """
        begun_s, start = time.monotonic(), self.state.next_segment
        segments = self.log.segments(
            start,
            max_bytes=BATCH_BYTES,
            max_segments=self._pace.segments,
            end=self.counted_until(start),
        )
        if not segments:
            return False
        decoded: list[Piece] = []
        read = packets_in(
            self.log,
            segments,
            self._stream,
            partial(tell_damage, self._home, self._stream.name),
            decoded.append,
        )
        done = step(self.state, read, self.settings, self._layer_of)
        if done.failures:
            tell_failures(self._home, done.failures)
        self.state = done.state
        self._changed.add(done.deltas)
        # Segments are visible before they are durable. A change that a reader has seen must not outlive its cause.
        self.log.sync(segments)  # what is told follows from rows that are durable
        self._timekeeper.saw(segments[: done.state.next_segment - start], heard(read))
        if self._sink is not None:
            self._sink.put(decoded, done.filtered, done.late, decided_by(done.state))
        self.tell([done.changes])
        # Else it was done, and counted, before a restart.
        if end_of(self.state) > self.committed:
            self._count(done, read, segments=done.state.next_segment - start)
        self._pace = self._pace.after(
            done.state.next_segment - start, time.monotonic() - begun_s
        )
        return True

    def _count(self, done: Step, read: Sequence[Packet], *, segments: int) -> None:
        """Adds what a batch did to the totals."""
        totals = self.totals
        totals.counters += done.counters
        totals.caches = summed((totals.caches, done.caches))
        totals.segments += segments
        totals.rejects += sum(packet.rejects for packet in read)
        totals.nulled.update(nulled_in(read))
        totals.filtered_out.update(filtered_out_of(read))

    def keep_time(self) -> bool:
        """Writes a clock row when the feed is live and quiet and something waits for a time that has come.

        Only the owner of the stream may ask, once it has read all of the log: a row that was written while fixes still
        wait in the log would make them late.

        Returns:
            True when a row was written, which the next `batch` reads.

        Raises:
            FencedError: another process owns the stream by now.
        """
        if self._stream.joins:
            self._ask_for_time()
            return False
        return self._timekeeper.write_if_due(
            lambda: wanted_us(self.state, self.settings),
            self._check,
            max_event=self.state.max_event,
        )

    def _ask_for_time(self) -> None:
        """Asks the streams that this one joins, once a second, to come past the next time at which something happens.

        They have the time of their feeds; who joins them passes it on.
        """
        if time.monotonic() - self._asked_s < 1.0:
            return
        self._asked_s = time.monotonic()
        wanted = wanted_us(self.state, self.settings)
        if wanted is None:
            return
        for name in self._stream.joined:
            folder = self._home.stream(name)
            write_awaited(folder, f"{self._stream.name}.engine", wanted + 1)

    def commit_if_due(self) -> None:
        """Commits once a second, and stores the state every ten."""
        if self.is_due:
            self.commit()
        if time.monotonic() - self._based_s >= BASE_S and not (
            self._storing and self._storing.is_alive()
        ):
            self.store()

    def _has_committed(self) -> None:
        self.committed_event = self.state.max_event
        self._tell_orders()

    def _tell_orders(self) -> None:
        orders = orders_of(self.state, self.settings)
        if orders != self._orders:
            write_orders(self._home.stream(self._stream.name), orders)
            self._orders = orders

    def store(self) -> None:
        """Commits, and starts a thread that stores the state, which takes seconds when it is large.

        The engine goes on meanwhile: a state is a value and never changed. What nothing names any more (see `retired`)
        is forgotten first; the state is stored whole then, else as what changed since the last time.

        Raises:
            FencedError: as `commit`.
            ConflictError: as `commit`.
            Exception: whatever stopped the thread of the last time.
        """
        self._wait()
        self.commit()
        kept = retired(self.state, self.settings, least=LEAST)
        changed = (
            self._changed if kept is self.state else None
        )  # what forgot is stored whole
        self.state, self._changed = kept, Changed.since(kept)
        self._storing = Thread(target=self._store, args=(kept, changed), name="state")
        self._storing.start()
        self._based_s = time.monotonic()

    def _store(self, state: State, changed: Changed | None) -> None:
        try:
            if self._sink is not None:
                self.states.needed = self._sink.archived
            self.states.store(state, changed)
            begins = (
                self.states.begins() if self._sink is not None else state.next_segment
            )
            self.log.publish(APP, begins)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that runs the stream
            self._failure = error

    def _wait(self) -> None:
        if self._storing is not None:
            self._storing.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Commits, waits until the state is stored, and closes the journal.

        Raises:
            Exception: as `store`.
        """
        self.store()
        self._wait()
        self.abandon()

    def abandon(self) -> None:
        """Closes without a commit: after an error, for the next start makes the same changes again."""
        if self._storing is not None:
            self._storing.join()
        self._journal.close()
