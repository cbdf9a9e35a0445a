"""The local engine: folds the step over a log in this process. It defines the right answer, and it is quick."""

import time
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from st_common import tables
from st_common.capture.log import Log
from st_common.contracts import load_contract
from st_common.engine import base
from st_common.engine.feed import packets, step_settings
from st_common.engine.journal import Journal, journal_path
from st_common.engine.tidy import tidy
from st_common.home import Home
from st_common.layers.index import load_index
from st_common.operators.changes import settled
from st_common.operators.evaluate import Counters
from st_common.operators.match import LayerOf
from st_common.operators.packet import nulled_in
from st_common.operators.stages import step
from st_common.operators.state import State
from st_common.position import position_of
from st_common.settings import StreamSettings

APP = "engine"  # the app transaction under which an engine commits to `changes`: its version is a log position
BATCH_BYTES = 32 << 20
COMMIT_S = 1.0
BASE_S = 10.0


@dataclass
class Totals:
    """What an engine did since it started."""

    counters: Counters = field(default_factory=Counters)
    segments: int = 0
    rejects: int = 0
    changes: int = 0
    nulled: Counter[str] = field(default_factory=Counter)


def layers_of(home: Home, stream: StreamSettings) -> LayerOf:
    """Finds layers of a home folder for a stream, each version once per process."""
    return lambda layer, version: load_index(home, layer, version, geographic=stream.geographic)


def end_of(state: State) -> int:
    """The last position that a state has seen; -1 before the first segment."""
    return position_of(state.next_segment, 0) - 1


class LocalEngine:
    """Follows the log of one stream; changes are durable in a journal at once and in the table every second.

    The state on disk may be older than what the table holds: then the log is read again from there, and only changes
    after the committed position are given out. The step being deterministic, they are the same as they were.
    """

    def __init__(self, home: Home, stream: StreamSettings) -> None:
        self._home, self._stream = home, stream
        self._table, self._contract = home.table("changes", stream.name), load_contract("changes")
        self.settings, self._layer_of = step_settings(stream), layers_of(home, stream)
        self.log = Log(home.log(stream.name))
        self._base_path = base.base_path(home, stream.name)
        self.state = base.load(self._base_path)
        committed = tables.committed(self._table, APP)
        self.committed = -1 if committed is None else committed
        self._journal = Journal(journal_path(home, stream.name))
        self._pending: list[pa.Table] = []
        self._commits = 0
        self._committed_s = self._based_s = time.monotonic()
        self.totals = Totals()

    def batch(self) -> bool:
        """Takes what the log has, up to `BATCH_BYTES`; False when there is nothing new."""
        segments = self.log.segments(self.state.next_segment, max_bytes=BATCH_BYTES)
        if not segments:
            return False
        read = [packets(self.log, segment, self._stream, shards=1)[0] for segment in segments]
        done = step(self.state, read, self.settings, self._layer_of)
        self.state = done.state
        self._keep(settled([done.changes]))
        if end_of(self.state) > self.committed:  # else it was done, and counted, before a restart
            self.totals.counters += done.counters
            self.totals.segments += len(segments)
            self.totals.rejects += sum(packet.rejects for packet in read)
            self.totals.nulled.update(nulled_in(read))
        return True

    def _keep(self, changes: pa.Table) -> None:
        if self.committed >= 0 and len(changes):
            changes = changes.filter(pa.compute.field("position") > self.committed)
        if len(changes):
            self._journal.append(tables.with_date(changes, self._contract))
            self._pending.append(changes)
            self.totals.changes += len(changes)

    def commit_if_due(self) -> None:
        """Commits once a second, and stores the state every ten."""
        now_s = time.monotonic()
        if now_s - self._committed_s >= COMMIT_S:
            self.commit()
        if now_s - self._based_s >= BASE_S:
            self.store()

    def commit(self) -> None:
        """Brings everything up to the state's position into the table, exactly once."""
        end = end_of(self.state)
        if end > self.committed:
            changes = pa.concat_tables(self._pending) if self._pending else settled([])
            tables.append(self._table, changes, self._contract, app=APP, version=end)
            self.committed, self._pending = end, []
            self._journal.clear()
            self._commits += 1
            tidy(self._table, self._commits)
        self._committed_s = time.monotonic()

    def store(self) -> None:
        """Stores the state, and says that it needs no segments before it."""
        self.commit()
        base.save(self._base_path, self.state)
        self.log.publish(APP, self.state.next_segment)
        self._based_s = time.monotonic()

    def close(self) -> None:
        """Commits, stores and closes."""
        self.store()
        self.abandon()

    def abandon(self) -> None:
        """Closes without a commit: after an error, for the next start makes the same changes again."""
        self._journal.close()
