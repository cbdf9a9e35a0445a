"""VALID UNTIL: whether members were told the right time last (SPEC G8).

    told + at 10: until 14      reports at 12: until 14      reports at 13: until 15, and is told so
                                the same, so nothing is told

So what was told last is right if it is the time that follows from the last report of the member, and of the object
that the region goes with, or from when it came in, if that was later. When it came in is taken from what was told.
Reports of the tick that was open when the query was registered are not told of, for some came before it: members that
reported last then are passed over.
"""

from typing import Any

import numpy as np
import pandas as pd

from st_common.query.plan import Plan
from st_common.reference.metric import SCALED, Metric, Point
from st_common.reference.staying import stays_for
from st_common.regions.region import AroundObject
from st_common.serving.verify_events import LATER

_SAME_S = (
    0.002  # a member is told anew where it is another time by more than half of it
)
_SHARE = 1e-6  # of the time that is left


def wrongly_told(
    plan: Plan,
    members: pd.DataFrame,
    told: pd.DataFrame,
    alive: pd.DataFrame,
    of: Metric,
    *,
    since: int,
    first_tick: int,
) -> int:
    """How many members were told another time than they should; those in doubt are passed over.

    `members` and `alive` are last events with what was before them, `told` what was told of each pair last, and when.
    The query was registered at the row `since` of the log, when `first_tick` was open.
    """
    focal = _focal(plan, alive)
    sure = members[members["sure"].astype(bool)]
    both = sure.assign(partner=sure["partner"].fillna("")).merge(
        told, on=["object", "partner"]
    )
    values = both["value"].astype(float).tolist()
    rows: list[Any] = list(both.itertuples())
    wrong = 0
    for row, told_s in zip(rows, values, strict=True):
        reports = [one for one in (row, focal) if one is not None]
        if any(one.effect > since and one.tick <= first_tick for one in reports):
            continue
        ticks = [one.tick for one in reports if _is_told(one, first_tick)]
        at_us = max([int(row.told_us), *ticks])
        should_s, left_s = _until(plan, row, focal, at_us, of)
        share = _SHARE if of.is_flat else 2 * SCALED
        wrong += not _is_same(told_s, should_s, _SAME_S + share * left_s)
    return wrong


def _is_told(report: Any, first_tick: int) -> bool:
    """Whether a report was judged at a tick at which it is told anew of."""
    return bool(report.due != LATER and report.tick > first_tick)


def _focal(plan: Plan, alive: pd.DataFrame) -> Any:
    """The last event of the object that the region goes with; None of a region that stands still."""
    if not isinstance(plan.inside, AroundObject):
        return None
    rows = alive[alive["object"] == plan.inside.focal]
    return next(rows.itertuples(), None)


def _until(
    plan: Plan, row: Any, focal: Any, at_us: int, of: Metric
) -> tuple[float, float]:
    """The second until which a member stays, NaN where none can be said; and how many seconds that is from then."""
    velocity, other = _velocity(row, of), None
    if focal is not None:
        other = _velocity(focal, of)
    if velocity is None or plan.inside is None or (focal is not None and not other):
        return np.nan, 0.0
    pair = None if other is None else ((focal.x, focal.y), other)
    left_s = stays_for(plan.inside, (row.x, row.y), velocity, pair, of)
    return at_us / 1e6 + left_s, left_s if np.isfinite(left_s) else 0.0


def _velocity(row: Any, of: Metric) -> Point | None:
    """Coordinates per second since the fix before in the same stay."""
    if not row.elapsed_s > 0:
        return None
    way = float(of.shortest(np.array(row.x - row.before_x)))
    return way / row.elapsed_s, (row.y - row.before_y) / row.elapsed_s


def _is_same(told_s: float, should_s: float, within_s: float) -> bool:
    if np.isfinite(told_s) and np.isfinite(should_s):
        return abs(told_s - should_s) <= within_s
    return told_s == should_s or bool(np.isnan(told_s) and np.isnan(should_s))
