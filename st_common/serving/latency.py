"""How long a stream's segments waited from their arrival until their changes were committed to the Delta table."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from st_common.capture.log import Log
from st_common.home import Home
from st_common.position import position_of

Ints = npt.NDArray[np.int64]


def latency_s(home: Home, stream: str) -> npt.NDArray[np.float64]:
    """How long the data segments of a stream waited from their arrival until their changes were committed.

    Commits without a transaction of the engine (compactions, reloads) do not count, nor do segments whose commit has
    been removed from the table's history.

        arrivals at 0.0, 0.4 and 0.9 s; the first two committed at 0.5 s, the third at 1.5 s   ->   0.5, 0.1, 0.6

    Returns:
        float64, seconds, an entry for each data segment that is committed, in log order; empty when there are none.
    """
    positions, times_us = _commits(home.table("changes", stream))
    segments = [
        segment for segment in Log(home.log(stream)).segments(0) if not segment.control
    ]
    starts = np.array(
        [position_of(segment.number, 0) for segment in segments], np.int64
    )
    arrivals_us = np.array([segment.arrival_us for segment in segments], np.int64)
    # A commit names the last position that it brought, so a segment's is the first one past its beginning.
    commit = np.searchsorted(positions, starts, side="right")
    known = commit < len(positions)
    return (times_us[commit[known]] - arrivals_us[known]) / 1e6


def _commits(table: Path) -> tuple[Ints, Ints]:
    """The log positions up to which the engine has committed, rising, and when it did so (UTC microseconds)."""
    pairs: list[tuple[int, int]] = []
    for path in sorted((table / "_delta_log").glob("*.json")):
        actions = [
            json.loads(line)
            for line in path.read_text(encoding="utf-8").splitlines()
            if line
        ]
        position = [action["txn"]["version"] for action in actions if "txn" in action]
        stamp = [
            action["commitInfo"]["timestamp"]
            for action in actions
            if "commitInfo" in action
        ]
        if position and stamp:
            pairs.append((position[0], stamp[0] * 1000))
    commits = np.array(pairs, np.int64).reshape(-1, 2)
    return commits[:, 0], commits[:, 1]
