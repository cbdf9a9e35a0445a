"""What metrics count in the tables of a stream, brought up to date by reading what is new since the last look."""

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.latency import Waits, waits_of
from st_common.config.home import Home
from st_common.engine.archive import READER
from st_common.engine.committing import APP
from st_common.history.purged import kept_snapshot
from st_common.history.snapshots import Snapshot, members_of

BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""The upper bounds of the histogram of latencies; beyond the last one it has another bucket."""

_RECENT = 1000


@dataclass
class Tallies:
    """What the tables of one stream hold, counted: all of it by the first look, what came since by each one after it.

    Attributes:
        changes: rows of `changes` by query.
        came: rows of these that say that something came in, by query.
        members: members of the answer of each query, the sum of the signs of its changes.
        rejects: rows of `rejects` by reason.
        latency: int64[bounds + 1], segments by bucket of how long they waited for the commit of their changes. The
            first look knows the commits that the table's log still has.
        latency_sum_s: the sum of these times.
        recent_s: the last 1,000 of those that a live feed brought.
    """

    changes: Counter[str] = field(default_factory=Counter)
    came: Counter[str] = field(default_factory=Counter)
    members: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    latency: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(BOUNDS_S) + 1, np.int64)
    )
    latency_sum_s: float = 0.0
    recent_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _position: int = -1
    _segment: int = -1

    @property
    def position(self) -> int:
        """The last place in the log whose changes are counted; -1: none."""
        return self._position

    def look(self, home: Home, stream: str) -> "Tallies":
        """The tallies as the tables are now; a stream that begins anew (it was reset) is counted anew.

        Args:
            home: the home folder.
            stream: the name of the stream.

        Raises:
            FairwayError: a table cannot be read.
            LogError: the log has a hole.
        """
        # Asked for before the position, so that it holds nothing behind that.
        snapshot = (
            kept_snapshot(home, stream, "changes") if self._position < 0 else None
        )
        position = tables.committed(home.table("changes", stream), APP)
        segment = tables.committed(home.table("rejects"), f"{READER}-{stream}")
        position, segment = _or_none(position), _or_none(segment)
        if position < self._position or segment < self._segment:
            return Tallies().look(home, stream)
        if position > self._position:
            waits = waits_of(home, stream, since=self._position, upto=position)
            self._count_changes(home, stream, position, snapshot)
            self._count_latency(waits)
        if segment > self._segment:
            self._count_rejects(home, stream, segment)
        return self

    def _count_changes(
        self, home: Home, stream: str, position: int, snapshot: Snapshot | None
    ) -> None:
        rows = tables.read(
            home.table("changes", stream),
            columns=["query", "sign", "position"],
            filters=[("position", ">", self._position), ("position", "<=", position)],
        )
        if snapshot is not None:
            rows = self._count_held(home, stream, snapshot, rows)
        came = pc.greater(rows["sign"], 0).cast(pa.int64())
        by_query = (
            rows.append_column("came", came)
            .group_by("query")
            .aggregate([("sign", "count"), ("sign", "sum"), ("came", "sum")])
        )
        for row in by_query.to_pylist():
            self.changes[row["query"]] += row["sign_count"]
            self.came[row["query"]] += row["came_sum"]
            self.members[row["query"]] += row["sign_sum"]
        self._position = position

    def _count_held(
        self, home: Home, stream: str, snapshot: Snapshot, rows: pa.Table
    ) -> pa.Table:
        """Takes the members of a snapshot, for changes before it may be purged; gives the rows behind it."""
        is_behind = pc.greater_equal(rows["position"], snapshot.position)
        before = rows.filter(pc.invert(is_behind))
        self.members.update(members_of(home, stream, snapshot)["query"].to_pylist())
        self.changes.update(before["query"].to_pylist())
        return rows.filter(is_behind)

    def _count_rejects(self, home: Home, stream: str, segment: int) -> None:
        rows = tables.read(
            home.table("rejects"),
            columns=["reason"],
            filters=[
                ("stream", "=", stream),
                ("segment", ">", self._segment),
                ("segment", "<=", segment),
            ],
        )
        counts = rows.group_by("reason").aggregate([("reason", "count")])
        for row in counts.to_pylist():
            self.rejects[row["reason"]] += row["reason_count"]
        self._segment = segment

    def _count_latency(self, waits: Waits) -> None:
        waited_s = waits.seconds
        bucket = np.searchsorted(BOUNDS_S, waited_s)
        self.latency += np.bincount(bucket, minlength=len(self.latency))
        self.latency_sum_s += float(waited_s.sum())
        self.recent_s.extend(waited_s[waits.is_live][-_RECENT:].tolist())


def _or_none(place: int | None) -> int:
    """A place in the log, -1 for none."""
    return -1 if place is None else place
