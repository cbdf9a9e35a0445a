"""How long a stream's segments waited from their arrival until their changes were committed to the Delta table."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from st_common.answers.commits import engine_commits, has_first
from st_common.config.home import Home
from st_common.log.log import Log
from st_common.position import position_of, segment_of

Ints = npt.NDArray[np.int64]


def latency_s(home: Home, stream: str) -> npt.NDArray[np.float64]:
    """How long the data segments of a stream waited from their arrival until their changes were committed.

    Commits without a transaction of the engine (compactions, reloads) do not count, nor do segments whose commit has
    been removed from the table's history.

        arrivals at 0.0, 0.4 and 0.9 s; the first two committed at 0.5 s, the third at 1.5 s   ->   0.5, 0.1, 0.6

    Returns:
        float64, seconds, an entry for each data segment that is committed, in log order; empty when there are none.
    """
    return waits_of(home, stream).seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waits:
    """How long data segments waited; in log order.

    Attributes:
        seconds: float64[n], from the arrival of each until its changes were committed.
        is_live: bool[n], whether a feed brought it as it happened; what a replay puts there at once has to wait.
    """

    seconds: npt.NDArray[np.float64]
    is_live: npt.NDArray[np.bool_]


def waits_of(
    home: Home, stream: str, *, since: int = -1, upto: int | None = None
) -> Waits:
    """The waits of the segments that commits behind one position, up to another, have brought; see `latency_s`.

    Args:
        home: the home folder.
        stream: the name of the stream.
        since: the position of a commit, whose segments are left out; -1 for none.
        upto: the position of the last commit that counts; None for the newest.
    """
    table = home.table("changes", stream)
    positions, times_us = _commits(table)
    if len(positions) and not has_first(table):
        since = max(since, int(positions[0]))  # what it brought besides is not known
    if upto is not None:
        known = positions <= upto
        positions, times_us = positions[known], times_us[known]
    log = Log(home.log(stream))
    first = max(segment_of(since + 1), log.first())
    segments = [one for one in log.segments(first) if not one.control]
    starts = np.array(
        [position_of(segment.number, 0) for segment in segments], np.int64
    )
    arrivals_us = np.array([segment.arrival_us for segment in segments], np.int64)
    # A commit names the last position that it brought, so a segment's is the first one past its beginning.
    commit = np.searchsorted(positions, starts, side="right")
    known = commit < len(positions)
    return Waits(
        seconds=(times_us[commit[known]] - arrivals_us[known]) / 1e6,
        is_live=np.array([segment.live for segment in segments], bool)[known],
    )


def _commits(table: Path) -> tuple[Ints, Ints]:
    """The log positions up to which the engine has committed, rising, and when it did so (UTC microseconds)."""
    pairs = [
        (commit.position, commit.stamp_ms * 1000)
        for commit in engine_commits(table)
        if commit.stamp_ms is not None
    ]
    commits = np.array(pairs, np.int64).reshape(-1, 2)
    return commits[:, 0], commits[:, 1]
