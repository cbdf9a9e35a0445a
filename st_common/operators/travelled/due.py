"""What is due in frames at the ticks of a stretch, and what comes of looking there."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.travelled.spells import Lives, Moved
from st_common.operators.travelled.touches import Advances, Touches
from st_common.operators.travelled.visits import Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is due in frames at some ticks.

    Attributes:
        tick: int64[ticks], event times, ascending.
        touches: slots to whose objects something happens.
        advances: slots whose ways go on.
        others: pairs that the clock makes, and who begins or ceases to count.
        asked: bool[f, ticks], at which ticks the windows of a frame may move.
    """

    tick: np.ndarray
    touches: Touches
    advances: Advances
    others: list[Pairs]
    asked: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Every visit, those at which results are looked at, and the lives of their rows."""

    every: Moved
    look: Moved
    lives: Lives
