"""Position filters: which fixes are not believed, or say nothing new, beside the last accepted one (SPEC X11).

accepted          accepted         filtered (distance)       filtered (speed)
   a ----- 40 m ----- b -- 3 m -- c                                  d, 9 km from b after 1 s
                      |_____________ c and d are held against b ____|
"""

from dataclasses import dataclass

import numpy as np

from st_common.reference.columns import objects
from st_common.reference.metric import MEASURED, Bools, Floats, Metric, Objects

_FASTEST_MPS = 1e290  # off; times no seconds it is still a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds for each fix, f64[n] and bool[n]; a limit that is off is inf, the least distance then 0."""

    max_accuracy_m: Floats
    max_speed_mps: Floats
    min_distance_m: Floats
    accept_after_s: Floats
    beyond_accuracy: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Of each fix its accuracy, and how it lies beside the last accepted one of its stay: metres, seconds, accuracy.

    Without such a fix `has_before` is false, and these say nothing.
    """

    own_m: Floats
    has_before: Bools
    metres: Floats
    seconds: Floats
    before_m: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Why each fix is filtered ("": it is accepted), what was too much or too little, and whether that is in doubt."""

    reason: Objects
    value: Floats
    is_doubtful: Bools


def judged(limits: Limits, moved: Moved, metric: Metric) -> Judged:
    """What the limits say of each fix: the first reason that holds. All arrays have the same length.

    After `accept_after_s` the fix before is no measure. In doubt is what is so near to a limit that another way to
    measure a distance may say otherwise.
    """
    is_held = moved.has_before & (moved.seconds <= limits.accept_after_s)
    reach_m = np.minimum(limits.max_speed_mps, _FASTEST_MPS) * moved.seconds
    both_m = np.where(limits.beyond_accuracy, moved.before_m + moved.own_m, 0.0)
    seconds = np.where(moved.seconds > 0, moved.seconds, np.nan)
    rules = (
        ("accuracy", moved.own_m > limits.max_accuracy_m, moved.own_m),
        ("speed", is_held & (moved.metres > reach_m), moved.metres / seconds),
        ("distance", is_held & (moved.metres < limits.min_distance_m), moved.metres),
        ("within_accuracy", is_held & (moved.metres < both_m), moved.metres),
    )
    holds = [mask for _, mask, _ in rules]
    edges = np.stack([reach_m, limits.min_distance_m, both_m])
    near = np.abs(moved.metres - edges) <= MEASURED * edges
    return Judged(
        reason=objects(np.select(holds, [name for name, *_ in rules], "").tolist()),
        value=np.select(holds, [value for *_, value in rules], np.nan),
        is_doubtful=near.any(axis=0) & moved.has_before & metric.doubts,
    )
