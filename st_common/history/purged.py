"""Questions about a past that was purged: refused by name, never answered from what is left."""

from datetime import datetime

from st_common import tables
from st_common.config.home import Home
from st_common.errors import FairwayError
from st_common.history.snapshots import Snapshot, newest_snapshot, snapshots


def kept_snapshot(
    home: Home, stream: str, table: str, at: datetime | None = None
) -> Snapshot | None:
    """The snapshot that a question about a time starts from, all of whose later rows a table still has.

        changes purged before the snapshot of 1 May      a question about 30 April   ->   an error that names 1 May
                                                         a question about 2 May      ->   that snapshot, or a newer one

    Args:
        home: where the tables lie.
        stream: the stream.
        table: `changes` or `positions`: what is read after the snapshot.
        at: the time, with a time zone; None: now.

    Returns:
        None when there is none: the question is answered from the log's beginning, of which nothing was purged.

    Raises:
        FairwayError: rows that the answer follows from were purged.
    """
    snapshot = newest_snapshot(home, stream, at)
    purged = tables.purged_before(home.table(table, stream))
    if not purged or (snapshot is not None and snapshot.position >= purged):
        return snapshot
    raise FairwayError(
        f"{table} of stream {stream!r} {_until(home, stream, purged)} were purged",
        hint=f"ask about a later time; data_contracts/{table}.odcs.yaml says for how long they are kept",
    )


def require_kept(home: Home, stream: str, since: int) -> None:
    """Makes sure that the changes behind a place in the log are all still there.

    Args:
        home: where the tables lie.
        stream: the stream.
        since: the position behind which they are wanted; -1 asks for what is there.

    Raises:
        FairwayError: some of them were purged.
    """
    purged = tables.purged_before(home.table("changes", stream))
    if -1 < since < purged - 1:
        raise FairwayError(
            f"changes of stream {stream!r} before position {purged} were purged, and with them some behind {since}",
            hint=f"begin behind {purged - 1} or later, or without a place, with all that is kept",
        )


def require_all(home: Home, stream: str) -> None:
    """Makes sure that no fix of a stream was purged: for who has to begin with its first.

    Raises:
        FairwayError: some were.
    """
    purged = tables.purged_before(home.table("positions", stream))
    if purged:
        raise FairwayError(
            f"positions of stream {stream!r} {_until(home, stream, purged)} were purged, and no day border behind them "
            "is kept: what follows from them cannot be processed again",
            hint="a day that is processed each night keeps its border; data_contracts/positions.odcs.yaml says how "
            "long positions are kept",
        )


def _until(home: Home, stream: str, purged: int) -> str:
    """Until when they are gone, in words: the first time that a snapshot serves."""
    serving = [each for each in snapshots(home, stream) if each.position >= purged]
    if not serving:
        return f"before position {purged}"
    return f"before {serving[0].from_ts:%Y-%m-%dT%H:%M:%SZ}"
