"""Where objects were, beside rows of changes: by the fix that each row shows, whatever the sign (docs/adr/0092).

fix of a            x      place of it     told at the row
12:00               3      3               + enter
12:05               9      9               - leave
12:07 gone          NaN    9               - gone: where it was before
"""

import numpy as np

from st_common.operators.expressions.readings import Readings
from st_common.operators.turn.course import Course, Now
from st_common.operators.turn.present import Present

Seen = Readings | Course | Now | Present
"""Fixes by row: where each was, and of one that ends a stay where the one before was."""


def places_of(seen: Seen, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Where objects were by some fixes, as `change_rows` takes it.

    Args:
        seen: fixes.
        rows: int64[n], the places of some of them.

    Returns:
        `x` and `y`, float64[n]; of an object that is gone or silent where it was last, NaN where no place is known.
    """
    x, y = seen.x[rows], seen.y[rows]
    nowhere = np.flatnonzero(np.isnan(x))
    if len(nowhere):
        x[nowhere] = seen.before_x[rows[nowhere]]
        y[nowhere] = seen.before_y[rows[nowhere]]
    return {"x": x, "y": y}


def nowhere(count: int) -> dict[str, np.ndarray]:
    """The places of what has none, as groups: `count` times NaN."""
    return {"x": np.full(count, np.nan), "y": np.full(count, np.nan)}
