"""Until when members stay members, from their velocities (time-parameterised queries, SPEC G8)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from st_common.geometry.until import Motion
from st_common.operators.state.fixes import ALIVE, NEVER
from st_common.operators.turn.exits import MovingKind, StillKind, exits_of
from st_common.operators.turn.turn import Turn


class Placed(Protocol):
    """The last fixes of objects, or of versions of objects: a row each, columns as in `LastFixes`."""

    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    status: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray

    def shapes_of(self, rows: np.ndarray) -> np.ndarray:
        """The geometries in some rows (int64[n]), where elements are shapes; object[n]."""

    def at_ticks(self, objects: np.ndarray, ticks: np.ndarray) -> np.ndarray:
        """The row of each object (int64[n]) at a tick (int64[n], its place); int64[n]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Members of queries that are asked about; n of them.

    Attributes:
        query: int64[n], numbers of queries.
        row: int64[n], the row of the member's fix.
        at: int64[n], the place of the tick.
        at_us: int64[n], the event time of the tick, in microseconds.
    """

    query: np.ndarray
    row: np.ndarray
    at: np.ndarray
    at_us: np.ndarray

    def take(self, rows: np.ndarray) -> "Asked":
        """Some of them; int64[k] places."""
        return Asked(
            query=self.query[rows],
            row=self.row[rows],
            at=self.at[rows],
            at_us=self.at_us[rows],
        )


def valid_until(turn: Turn, fixes: Placed, asked: Asked) -> np.ndarray:
    """Until when each member stays one, should it and the focal object go on as they do (SPEC G8).

    Both set off at `at_us` from where they reported last, with the velocity between their last two readings.

    Args:
        turn: the run.
        fixes: the last fixes, by row.
        asked: the members.

    Returns:
        float64[n], event times in seconds. NaN for members of queries that do not ask, and where the velocity of the
        member or of the focal object is not known; infinite where it stays for ever.
    """
    exits = exits_of(turn.queries, space=turn.settings.space)
    until_s = np.full(len(asked.query), np.nan)
    kind = exits.kind[asked.query]
    for number, of_kind in enumerate(exits.kinds):
        rows = np.flatnonzero(kind == number)
        if len(rows):
            mine = asked.take(rows)
            until_s[rows] = _until(turn, fixes, mine, of_kind, exits.place[mine.query])
    return until_s


def _until(
    turn: Turn,
    fixes: Placed,
    asked: Asked,
    kind: StillKind | MovingKind,
    which: np.ndarray,
) -> np.ndarray:
    """Until when members of regions of one kind stay; `which` is the place of each one's region."""
    members = motion_of(fixes, asked.row, turn)
    at_s = asked.at_us / 1e6
    if isinstance(kind, StillKind):
        return kind.exits.until(which, members, at_s)
    objects = turn.objects.places_of(kind.focals)[which]
    focal = motion_of(fixes, fixes.at_ticks(objects, asked.at), turn)
    return kind.exits.until(which, members, focal, at_s)


def valid_from(
    turn: Turn, fixes: Placed, query: np.ndarray, who: np.ndarray, at_us: int
) -> np.ndarray:
    """Until when members stay members by their last fixes, all asked at one time; see `valid_until`.

    Args:
        turn: the run.
        fixes: the last fixes at that time.
        query: int64[n], numbers of queries.
        who: int64[n], the members: objects.
        at_us: the event time, in microseconds.

    Returns:
        float64[n], event times in seconds.
    """
    nothing = np.zeros(len(who), np.int64)
    return valid_until(
        turn, fixes, Asked(query=query, row=who, at=nothing, at_us=nothing + at_us)
    )


def motion_of(fixes: Placed, objects: np.ndarray, turn: Turn) -> Motion:
    """Where objects are and how fast they go, by their last two readings; on degrees the shorter way around.

    Args:
        fixes: the last fixes, by row.
        objects: int64[n], rows.
        turn: the run, whose space says what coordinates mean.

    Returns:
        Positions, and velocities in coordinates per second; NaN with a single reading, with two of one time, and for an
        object that is not alive.
    """
    known = fixes.before_ts[objects] != NEVER
    # NEVER is the least int64: the difference to it would overflow.
    seconds = (fixes.ts[objects] - np.where(known, fixes.before_ts[objects], 0)) / 1e6
    seconds = np.where(
        known & (seconds > 0) & (fixes.status[objects] == ALIVE), seconds, np.nan
    )
    x, y = fixes.x[objects], fixes.y[objects]
    way = turn.settings.space.shortest(x - fixes.before_x[objects])
    return Motion(
        x=x, y=y, vx=way / seconds, vy=(y - fixes.before_y[objects]) / seconds
    )
