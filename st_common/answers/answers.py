"""Who is in the answer of a query, now or at a time: from the newest snapshot that serves, and the changes after it."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.history.corrected import corrected
from st_common.history.fold import MEMBERS, fold
from st_common.history.purged import kept_snapshot
from st_common.history.snapshots import Snapshot, members_of
from st_common.query.lookup import find, history

__all__ = ["ANSWER", "Answered", "Reads", "answer", "answered", "fold"]

ANSWER = pa.schema(
    [
        ("object", pa.string()),
        ("partner", pa.string()),
        ("since_ts", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
        ("fields", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What was read of one stream to answer a question.

    Attributes:
        stream: the name of the stream.
        snapshot: what the reading started from; None: from the log's beginning.
        snapshot_rows: rows of the snapshot.
        after_rows: rows after it: changes for an answer, fixes for objects.
        again: whether the day was processed again, and its visits said who was in.
    """

    stream: str
    snapshot: Snapshot | None
    snapshot_rows: int
    after_rows: int
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer, and what was read for it.

    Attributes:
        rows: rows of `ANSWER`, by object and partner.
        reads: what was read, stream by stream.
    """

    rows: pa.Table
    reads: tuple[Reads, ...]


def answer(home: Home, query: str, at: datetime | None = None) -> pa.Table:
    """The answer of a query, now or at a time.

    On a day that was processed again `visits` says who was in, late fixes too; else changes are folded: it is what was
    told.

    Args:
        home: where the tables lie.
        query: the query's name; it may be dropped since.
        at: what happened up to then counts, with a time zone; None: all.

    Returns:
        Rows of `ANSWER`, by object and partner. `partner` is null without a join, `since_ts` the event time of the
        change that brought the pair into the answer, `value` an aggregate's value or what else the query gives with a
        member, `fields` the columns that it selects, as JSON; null where it has none. A member whose stay was corrected
        by late fixes has the last ones of its day (see `corrected`). The answer of a dropped query is empty now, and
        was not before its drop.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    return answered(home, query, at).rows


def answered(home: Home, query: str, at: datetime | None = None) -> Answered:
    """The answer of a query, as `answer` gives it, with what was read for it, stream by stream.

    Raises:
        QueryError: no query was ever registered by that name.
        FairwayError: changes that the answer at that time follows from were purged.
    """
    query = find(home, query).name
    streams = sorted(
        {row.stream for row in history(home, query)}
    )  # dropped here, registered there: one at a time
    answers = [_of_stream(home, stream, query, at) for stream in streams]
    rows = pa.concat_tables(
        [members.select(ANSWER.names) for members, _ in answers]
    ).cast(ANSWER)
    order = [("object", "ascending"), ("partner", "ascending")]
    return Answered(
        rows=rows.sort_by(order), reads=tuple(reads for _, reads in answers)
    )


def _of_stream(
    home: Home, stream: str, query: str, at: datetime | None
) -> tuple[pa.Table, Reads]:
    snapshot = kept_snapshot(home, stream, "changes", at)
    before = (
        MEMBERS.empty_table()
        if snapshot is None
        else members_of(home, stream, snapshot, query)
    )
    since = None if snapshot is None else snapshot.position - 1
    after = stream_changes(home, stream, query, since=since, until=at)
    told = fold(after, before)
    again = None if at is None else corrected(home, stream, query, at, told)
    reads = Reads(
        stream=stream,
        snapshot=snapshot,
        snapshot_rows=len(before),
        after_rows=len(after),
        again=again is not None,
    )
    return told if again is None else again, reads
