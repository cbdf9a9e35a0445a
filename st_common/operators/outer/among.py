"""Rows that come or go by the clock, among those that were told: what is told at some instants, put together anew."""

from dataclasses import dataclass, replace

import numpy as np

from st_common.operators.outer.asking import Asked
from st_common.operators.outer.remembered import OuterRows, behind
from st_common.operators.outer.signed import FIX, Instants, Signed, instants_of
from st_common.operators.turn.changes import TICK_RANK
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is told of rows at some instants, and what counts of it; see `signed` and `asked`."""

    signed: Signed
    asked: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTheClock:
    """Rows that come or go at ticks at which nothing else is told of them; n of each.

    Attributes:
        target: int64[n], the key of each.
        fix_ts: int64[n], the time of the fix that it is told with, and `x` and `y` (float64[n]) where that was.
        x: see `fix_ts`.
        y: see `fix_ts`.
        position: int64[n], the row of the log, and `tick` the event time at which.
        tick: see `position`.
    """

    target: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    position: np.ndarray
    tick: np.ndarray

    def followed_by(self, other: "ByTheClock") -> "ByTheClock":
        """These, then the others."""
        columns = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in self.__slots__
        }
        return ByTheClock(**columns)


def told_among(
    turn: Turn,
    told: Told,
    kept: np.ndarray,
    clocked: ByTheClock,
    *,
    weight: int,
    cause: int,
    counts: OuterRows | None = None,
) -> Told:
    """Some of the rows with signs, and behind them those by the clock.

    Args:
        turn: the run.
        told: what was told.
        kept: int64, ascending, the places of the rows that stay.
        clocked: those that come or go by themselves.
        weight: the sign of these, and `cause` why, a place in `CAUSES`.
        cause: see `weight`.
        counts: what they count as from then on; None: they go.
    """
    signed, asked = told.signed, told.asked
    position = np.concatenate([signed.position[signed.at[kept]], clocked.position])
    tick = np.concatenate([signed.tick[signed.at[kept]], clocked.tick])
    others = Instants(
        position=signed.position[signed.others], tick=signed.tick[signed.others]
    )
    instants = instants_of(Instants(position=position, tick=tick), others)
    columns = _columns(turn, signed, kept, clocked, weight, cause)
    at = instants.at
    return Told(
        signed=replace(
            signed,
            **columns,
            rows=signed.rows.slice(0, 0),
            at=at[: len(position)],
            position=instants.position,
            tick=instants.tick,
            others=at[len(position) :],
        ),
        asked=_asked_among(asked, kept, len(signed.query), counts),
    )


def _columns(
    turn: Turn,
    signed: Signed,
    kept: np.ndarray,
    clocked: ByTheClock,
    weight: int,
    cause: int,
) -> dict[str, np.ndarray]:
    """The columns of rows with signs but for their instants: of those that stay, and of those by the clock."""
    count = len(clocked.target)
    more = {
        "query": turn.numbering.targets.query[clocked.target],
        "target": clocked.target,
        "weight": np.full(count, weight),
        "cause": np.full(count, cause),
        **{name: getattr(clocked, name) for name in FIX},
        "rank": np.full(count, TICK_RANK),
    }
    return {
        name: np.concatenate([getattr(signed, name)[kept], values])
        for name, values in more.items()
    }


def _asked_among(
    asked: Asked, kept: np.ndarray, told: int, counts: OuterRows | None
) -> Asked:
    """What counts among the rows that stay, of so many that were told, and behind these what counts by the clock."""
    is_kept = np.zeros(told, bool)
    is_kept[kept] = True
    known = np.flatnonzero(is_kept[asked.place])
    place = (np.cumsum(is_kept) - 1)[asked.place[known]]
    rows = asked.rows.take(known)
    if counts is None:
        return Asked(place=place, rows=rows)
    more = len(kept) + np.arange(len(counts))
    return Asked(place=np.append(place, more), rows=behind([rows, counts]))
