"""Sessions: what an object did since it paused, as rows of frames that end together (SPEC W3).

With `[SESSION 10 s]` over the fixes of one object:

    fix             a    b    c              d    e
    time, s         0    7    15             31   36
    tick                           26                       47
    in the session  a   a b  a b c  -        d   d e         -

A fix goes on with a session while that is open: not later than the pause after the fix before, and known at the first
tick after it at the latest. At that tick a session is over, and all of its rows leave.
"""

import numpy as np

from st_common.operators.events.timeline import LAST
from st_common.operators.travelled.clock import ages_of
from st_common.operators.travelled.rows import FrameRows
from st_common.operators.travelled.specs import FrameSpecs
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last


class Sessions:
    """The sessions of the frames of a run.

    Args:
        turn: the run.
        specs: the frames.
        rows: all rows that they remember, those of the run included.

    Attributes:
        over: int64[rows], the first tick after each row's session (microseconds), LAST in frames without sessions;
            empty where no frame has any.
    """

    def __init__(self, turn: Turn, specs: FrameSpecs, rows: FrameRows) -> None:
        self.over = _over(turn, specs, rows)
        # One row for each session is enough to say when it is over.
        row = np.flatnonzero(self.over < LAST)
        row = row[is_last(rows.key[row], self.over[row])]
        order = np.argsort(self.over[row], kind="stable")
        self._row = row[order]

    def ending(self, tick: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sessions that end up to the last of some ticks.

        Args:
            tick: int64[ticks], event times, ascending, at least one.

        Returns:
            The place of a row of each, and the place of the first tick that sees it over.
        """
        over = self.over[self._row]
        few = slice(0, int(np.searchsorted(over, tick[-1], side="right")))
        return self._row[few], np.searchsorted(tick, over[few])

    def forget(self, tick: int) -> None:
        """Sessions that are over at a tick are not named again."""
        over = self.over[self._row]
        self._row = self._row[int(np.searchsorted(over, tick, side="right")) :]

    @property
    def ends(self) -> np.ndarray:
        """The ticks at which sessions that are named still end; int64, ascending."""
        ends: np.ndarray = self.over[self._row]
        return ends


def _over(turn: Turn, specs: FrameSpecs, rows: FrameRows) -> np.ndarray:
    if not specs.session.any():
        return np.empty(0, np.int64)
    over = np.full(len(rows), LAST)
    pause = np.append(specs.session, 0)[specs.place[rows.query]]
    row = np.flatnonzero(pause)
    if not len(row):
        return over
    alone = ages_of(turn, rows, row, pause[row])
    goes_on = (
        (rows.key[row[1:]] == rows.key[row[:-1]])
        & (rows.ts[row[1:]] - rows.ts[row[:-1]] <= pause[row[:-1]])
        & (rows.tick[row[1:]] <= alone[:-1])
    )
    # All rows of a session are over when its last one would be.
    last = np.flatnonzero(np.append(~goes_on, True))
    over[row] = alone[last[np.searchsorted(last, np.arange(len(row)))]]
    return over
