"""Rows that count on for a while after they left: WINDOW above the rows of a query (SPEC P5, docs/adr/0041).

With WINDOW 10 and ticks of 5:

    tick               0     5     10    15    20    25
    told of a          +           -                          it left at 10, counts at 20 still, and goes at 25
    counts             x     x     x     x     x
    told of b          +           -     +     -              it is back before it is too old: nothing is told at 15
    counts             x     x     x     x     x     x
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.events.agenda import ticks_past
from st_common.operators.events.timeline import LAST
from st_common.operators.outer.among import ByTheClock, Told, told_among
from st_common.operators.outer.remembered import OuterRows
from st_common.operators.outer.signed import FIX
from st_common.operators.outer.specs import OuterSpecs
from st_common.operators.state.component import Keyed, Layout, Numbers
from st_common.operators.state.object_rows import no_numbers
from st_common.operators.turn.changes import CAUSE
from st_common.operators.turn.course import BEFORE
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, is_last

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lingering(Keyed):
    """Rows that have left and count on, sorted by key; n of them. They are among `OuterRows`.

    Attributes:
        target: int64[n], the key, as of `OuterRows`.
        left: int64[n], the tick at which they left, in microseconds.
        fix_ts: int64[n], the time of the fix that is told of when they go.
        x: float64[n], where that was, NaN in rows of states that were stored before it was kept; `y` likewise.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="lingering",
        numbers={"target": (Numbers.TARGETS,)},
        order=("target",),
        identity=("target",),
        later={"x": np.nan, "y": np.nan},
    )

    target: np.ndarray = field(default_factory=no_numbers)
    left: np.ndarray = field(default_factory=no_numbers)
    fix_ts: np.ndarray = field(default_factory=no_numbers)
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    y: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Queries that end, and when: what counts on of them goes with them.

    Attributes:
        ended: bool[queries].
        position: the row of the log of each of some queries (int64).
        tick: the event time.
    """

    ended: np.ndarray
    position: Callable[[np.ndarray], np.ndarray]
    tick: int


Positions = Callable[[np.ndarray], np.ndarray]
"""The rows of the log at which ticks (int64) are judged in a run, `LAST` for those that are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """When rows that have left go: where ticks are judged, and the queries that end; None in a run."""

    positions: Positions
    ending: Ending | None = None


def never(ticks: np.ndarray) -> np.ndarray:
    """No tick is judged where queries start and stop (`Positions`)."""
    return np.full(len(ticks), LAST)


def ages_at(turn: Turn, specs: OuterSpecs, rows: Lingering) -> np.ndarray:
    """The ticks at which rows that have left are too old; int64[n], in microseconds."""
    lasting = specs.window_us[turn.numbering.targets.query[rows.target]]
    return ticks_past(rows.left + lasting, turn.settings.tick_us)


def lingered(
    turn: Turn, told: Told, rows: OuterRows, before: Lingering, leaving: Leaving
) -> tuple[Told, Lingering]:
    """What is told where rows count on after they left, and which have left and count on afterwards.

    Args:
        turn: the run.
        told: as if all went at once.
        rows: those that count before the run.
        before: which of these have left.
        leaving: when they go.
    """
    lasting, ending = turn.known.of(OuterSpecs).window_us, leaving.ending
    if ending is not None:
        lasting = np.where(ending.ended, _NONE, lasting)
    if (lasting < 0).all() and not len(before):
        return told, before
    steps = _steps(turn, told, rows, before, lasting)
    gone, after = _aged(turn, steps, lasting, leaving.positions)
    comes = steps.source[steps.comes & (steps.source != _NONE)]
    at_once = np.flatnonzero(lasting[told.signed.query] < 0)
    if ending is not None:
        over = _ended(turn, before, ending)
        gone = gone.followed_by(over)
        # What has left goes as it was then, whatever is below it now.
        at_once = at_once[~np.isin(told.signed.target[at_once], over.target)]
    kept = np.union1d(comes, at_once)
    aged = CAUSE["aged"]
    return told_among(turn, told, kept, gone, weight=-1, cause=aged), after


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Keys that begin to count and that leave, by key and time; n of them, each other than the one before it.

    Attributes:
        key: int64[n].
        at: int64[n], the place of the instant; `BEFORE` for what was so before the run.
        comes: bool[n], it begins to count, or counts as something else; else it leaves.
        tick: int64[n], when.
        fix_ts: int64[n], as of `Lingering`; `x` and `y` likewise.
        x: see `fix_ts`.
        y: see `fix_ts`.
        source: int64[n], the place of the row with a sign, `NONE` of what was so before.
    """

    key: np.ndarray
    at: np.ndarray
    comes: np.ndarray
    tick: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    source: np.ndarray

    def take(self, index: np.ndarray) -> "_Steps":
        columns = {name: getattr(self, name)[index] for name in self.__slots__}
        return _Steps(**columns)

    def fixes(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in FIX}


def _steps(
    turn: Turn, told: Told, rows: OuterRows, before: Lingering, lasting: np.ndarray
) -> _Steps:
    """What comes and leaves of queries with a window."""
    signed, of_target = told.signed, turn.numbering.targets.query
    counts = np.zeros(len(signed.query), bool)
    counts[told.asked.place] = True
    source = np.flatnonzero(lasting[signed.query] >= 0)
    held = rows.target[lasting[of_target[rows.target]] >= 0]
    place = np.searchsorted(before.target, held)
    has_left = np.append(before.target, _NONE)[place] == held
    steps = _Steps(
        key=np.concatenate([held, signed.target[source]]),
        at=np.concatenate([np.full(len(held), BEFORE), signed.at[source]]),
        comes=np.concatenate([~has_left, counts[source]]),
        tick=np.concatenate(
            [np.append(before.left, 0)[place], signed.tick[signed.at[source]]]
        ),
        **{
            name: np.concatenate(
                [
                    np.append(getattr(before, name), 0)[place],
                    getattr(signed, name)[source],
                ]
            )
            for name in FIX
        },
        source=np.concatenate([np.full(len(held), _NONE), source]),
    )
    steps = steps.take(np.lexsort((steps.at, steps.key)))
    # Who leaves counted before: others were never there, or have left already.
    counted = np.append(False, steps.comes[:-1]) & ~is_first(steps.key)
    return steps.take(steps.comes | counted | (steps.at == BEFORE))


def _aged(
    turn: Turn, steps: _Steps, lasting: np.ndarray, positions: Positions
) -> tuple[ByTheClock, Lingering]:
    """Rows that are too old, and those that have left and are not."""
    leaves = np.flatnonzero(~steps.comes)
    lasts = lasting[turn.numbering.targets.query[steps.key[leaves]]]
    ages = ticks_past(steps.tick[leaves] + lasts, turn.settings.tick_us)
    # Whoever counts anew before, or at that very tick, has not gone.
    following = np.append(steps.tick, 0)[leaves + 1]
    is_back = ~is_last(steps.key)[leaves] & (following <= ages)
    left, ages = steps.take(leaves[~is_back]), ages[~is_back]
    position = positions(ages)
    is_due = position != LAST
    gone = ByTheClock(
        target=left.key[is_due],
        **left.take(is_due).fixes(),
        position=position[is_due],
        tick=ages[is_due],
    )
    stays = left.take(~is_due)
    after = Lingering(target=stays.key, left=stays.tick, **stays.fixes())
    return gone, after


def _ended(turn: Turn, before: Lingering, ending: Ending) -> ByTheClock:
    """Rows that have left and whose queries end; groups go as they were told last."""
    query = turn.numbering.targets.query[before.target]
    grouped = turn.known.of(OuterSpecs).grouped
    over = before.take(ending.ended[query] & ~grouped[query])
    return ByTheClock(
        target=over.target,
        fix_ts=over.fix_ts,
        x=over.x,
        y=over.y,
        position=ending.position(turn.numbering.targets.query[over.target]),
        tick=np.full(len(over), ending.tick),
    )
