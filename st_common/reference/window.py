"""WINDOW: which of the fixes that qualified still count (PLACE, SPEC P5).

WINDOW 10 s, judged at 12:    1   2   8   11        WINDOW 2 TUPLES:    1   2   8   11
                                  [----------]                                  [----]
"""

import numpy as np

from st_common.query.plan import Window
from st_common.reference.metric import Bools, Ints, Objects


def counting(
    window: Window,
    at_us: int,
    *,
    event_us: Ints,
    effect: Ints,
    ids: Objects,
    partners: Objects,
) -> Bools:
    """Which entries count at a time, bool[n]: those of the last seconds, or the newest ones.

    Newest is by event time, then by the row of the log at which they took `effect`, object and partner (none first).
    """
    if window.seconds is not None:
        return np.asarray(event_us >= at_us - round(window.seconds * 1e6), np.bool_)
    keys = zip(event_us.tolist(), effect.tolist(), ids, partners, strict=True)
    newness = [(*key[:3], key[3] or "") for key in keys]
    order = sorted(range(len(newness)), key=newness.__getitem__)
    kept = np.zeros(len(newness), np.bool_)
    kept[order[max(0, len(order) - (window.tuples or 0)) :]] = True
    return kept
