"""How an engine tells changes: by its journal at once, and by the table each second, which is the one commit point."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.journal import Journal
from st_common.engine.log_identity import ENGINE, log_note
from st_common.engine.owner import Owner
from st_common.engine.tidy import tidy
from st_common.engine.totals import Totals
from st_common.errors import ConflictError
from st_common.log.log import Log
from st_common.operators.state.settings import Settings
from st_common.operators.turn.changes import settled
from st_common.position import segment_of

APP = ENGINE  # the app transaction under which an engine commits to `changes`: its version is a log position
COMMIT_S = 1.0


class Committing(ABC):
    """Tells the changes of a stream, each once (docs/adr/0014).

        changes -> journal              at each batch: readers see them at once
                -> table `changes`      every second, with the app transaction `engine`

    What it tells is made by whoever inherits it: `end` says how far that is.

    Attributes:
        committed: the last position that the table has, -1 for none.
        committed_event: the largest event time up to there, us UTC.
        settings: those of the step.
        totals: what the engine did since it started.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        owner: whose lease the engine works under; without one (in tests) no commit is fenced.
    """

    def __init__(
        self, home: Home, stream: StreamSettings, owner: Owner | None = None
    ) -> None:
        self._home, self._stream, self._owner = home, stream, owner
        self._table, self._contract = (
            home.table("changes", stream.name),
            load_contract("changes"),
        )
        self.log = Log(home.log(stream.name))
        self.committed = self._stands_at()
        self._pending: list[pa.Table] = []
        self._files: list[AddAction] = []
        self._commits = 0
        self._committed_s = time.monotonic()
        self.totals = Totals()

    def open(self) -> None:
        """Opens a journal of its own, empty: once all that an engine begins with is there."""
        epoch = self._owner.lease.epoch if self._owner else 0
        self._journal = Journal(self._home, self._stream.name, epoch=epoch)
        self._told = self._greatest_stored()

    committed_event: int
    settings: Settings

    @property
    @abstractmethod
    def end(self) -> int:
        """The last position of which all changes were made; -1 before the first segment."""

    @abstractmethod
    def batch(self) -> bool:
        """Goes on by a part of the log, and tells its changes; False when there is nothing new."""

    @abstractmethod
    def commit_if_due(self) -> None:
        """Commits once a second, and stores states from time to time."""

    @abstractmethod
    def keep_time(self) -> bool:
        """Writes a clock row when one is due; whether it did."""

    def counted_until(self, start: int) -> int | None:
        """Where a batch has to end: what the table has was counted before, what it lacks was not; None: nowhere."""
        done = segment_of(self.committed + 1)
        return done if start < done else None

    def tell(self, changes: Sequence[pa.Table]) -> None:
        """Tells the changes of a batch, those of all shards in their one order; what the table has already is left out.

        Args:
            changes: those of each shard.
        """
        told = self._new_in(changes)
        if len(told):
            self._journal.append(
                tables.with_date(told, self._contract), behind=self._told
            )
            self._told = int(pc.max(told["position"]).as_py())
            self._pending.append(told)
            self.totals.changes += len(told)

    def tell_by_files(
        self, files: Sequence[AddAction], changes: Sequence[pa.Table], *, rows: int
    ) -> None:
        """Tells changes of which most lie in files of the table already, by the next commit that names these.

        Until then nothing else may be told: `has_files` says so.

        Args:
            files: they have nothing that the table holds.
            changes: the others of each shard, as for `tell`.
            rows: how many rows the files have.
        """
        told = self._new_in(changes)
        self._files += files
        self._pending.append(told)
        self.totals.changes += rows + len(told)

    @property
    def has_files(self) -> bool:
        """Whether files wait for a commit."""
        return bool(self._files)

    def _new_in(self, changes: Sequence[pa.Table]) -> pa.Table:
        """The changes of all shards in their one order, without what the table has."""
        told = settled(list(changes))
        if self.committed >= 0 and len(told):
            told = self._behind_committed(told)
        return told

    def commit(self) -> None:
        """Brings everything up to `end` into the table, exactly once.

        The commit names the last position as the version of the app transaction `engine`, and expects the one before
        it. So a commit of an owner that was overtaken is refused, and rows that the table has already are left out.

            committed 40, pending rows at 38, 41, 45, end 50   ->   rows 41, 45 appended, committed 50

        Raises:
            FencedError: another process owns the stream by now.
            ConflictError: the table went back to an older version while the engine ran; the next start fills it.
        """
        end = self.end
        while end > self.committed:
            try:
                self._append(end)
            except ConflictError:  # an owner that was overtaken committed last; `_append` asks whether it is this one
                stands_at = self._stands_at()
                # The table went back: what is missing is in no journal of this engine. Or it went on, and of the files
                # nobody knows what it has: the next start makes what is missing.
                if stands_at < self.committed or self._files:
                    raise
                self.committed = stands_at
                self._pending = [
                    self._behind_committed(changes) for changes in self._pending
                ]
                continue
            if self._files:
                self._told = self._greatest_stored()
            self.committed, self._pending, self._files = end, [], []
            self._journal.clear()
            self._commits += 1
            tidy(
                self._home,
                self._stream.name,
                self._table,
                self._contract,
                self._commits,
            )
            self._has_committed()
        self._committed_s = time.monotonic()

    @abstractmethod
    def _has_committed(self) -> None:
        """What else is noted when everything up to `end` is in the table."""

    @property
    def is_due(self) -> bool:
        """Whether the last commit is a second ago."""
        return time.monotonic() - self._committed_s >= COMMIT_S

    def _stands_at(self) -> int:
        committed = tables.committed(self._table, APP)
        return -1 if committed is None else committed

    def _greatest_stored(self) -> int:
        """The position of the last change in the table, as far as its log notes it; -1 without any."""
        _, greatest = tables.ranges(self._table, "position").get("position", (-1, -1))
        return int(greatest)

    def _append(self, end: int) -> None:
        changes = pa.concat_tables(self._pending) if self._pending else settled([])
        tables.append(
            self._table,
            changes,
            self._contract,
            app=APP,
            version=end,
            after=self.committed,
            notes=log_note(self.log, APP, segment_of(end)),
            check=self._check,
            files=self._files,
        )

    def _check(self) -> None:
        """Raises when another process owns the stream by now."""
        if self._owner is not None:
            self._owner.check()

    def _behind_committed(self, changes: pa.Table) -> pa.Table:
        # A mask: an expression would start a query engine and its threads, 3 ms for a batch of some rows.
        return changes.filter(pc.greater(changes["position"], self.committed))
