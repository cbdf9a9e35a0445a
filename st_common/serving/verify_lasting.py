"""WINDOW and FOR above the rows of a query: at which ticks rows were chosen that count, and which these are."""

from typing import Any

import numpy as np

from st_common.query.plan import Outer
from st_common.serving.verify_events import LATER, NEVER
from st_common.serving.verify_history import History
from st_common.serving.verify_outer import answer_above

_MOST = 300
"""How many ticks are looked at: each costs as much as the answer of now."""

Rows = dict[tuple[Any, ...], dict[str, Any]]


def moments_of(since: int, outer: Outer, history: History) -> list[History] | None:
    """What had happened when rows were chosen that may count still, in order, without now; None for too many moments.

    A row that was chosen at a tick leaves at the next one, and is gone once the clock has passed the first tick after
    the window from then on. Before the first tick rows are those of when the query was registered.

    Args:
        since: the position at which that was.
        outer: what is asked of the rows.
        history: all that happened.
    """
    events, tick_us = history.events, history.times.tick_us
    judged = events[(events["due"] != LATER) & (events["due"] > since)]
    ticks = np.unique(judged["tick"].to_numpy(np.int64))
    seconds = outer.window.seconds if outer.window is not None else None
    if seconds is None or not len(ticks):
        return []
    gone = (ticks + round(seconds * 1e6)) // tick_us * tick_us + tick_us
    counts = gone > history.last_tick
    before = ticks[:-1][counts[1:]].tolist()
    if len(before) > _MOST:
        return None
    first = [history.before(since + 1, NEVER)] if counts[0] else []
    return [*first, *(history.before(0, tick + 1) for tick in before)]


def moments_since(
    since: int, lasting_s: float, history: History
) -> list[History] | None:
    """What had happened at the ticks at which a row must have been chosen to count now, in order, without now.

    Args:
        since: the position at which the query was registered.
        lasting_s: for how long rows are chosen before they count.
        history: all that happened.

    Returns:
        None for too many moments, and where what was chosen at the registration may count already.
    """
    events, tick_us = history.events, history.times.tick_us
    judged = events[(events["due"] != LATER) & (events["due"] > since)]
    ticks = np.unique(judged["tick"].to_numpy(np.int64))
    counts = -(-(ticks + round(lasting_s * 1e6)) // tick_us) * tick_us
    passed = np.flatnonzero(counts <= history.last_tick)
    needed = ticks[passed.max() :].tolist() if len(passed) else []
    if not needed or len(needed) > _MOST:
        return None
    return [history.before(0, tick + 1) for tick in needed[:-1]]


def chosen_of(outer: Outer, rows: Rows) -> list[tuple[Any, ...]]:
    """The names of the rows that satisfy the condition."""
    chosen = answer_above(Outer(where=outer.where), list(rows.values())).chosen
    names = list(rows)
    return [names[place] for place in chosen]
