"""Which fixes the oracle does not believe, or learns nothing from, beside the last that was accepted (SPEC X11)."""

import math

import numpy as np

from st_common.reference.position_filter import Limits, Moved, judged
from tests.kit.oracle_members import metric_of
from tests.kit.oracle_readings import Known, metres
from tests.kit.oracle_rows import Filter, Fix, Rules

Said = tuple[str, float]
"""Why a fix is filtered, and what was too much or too little."""


def filter_at(rules: Rules, position: int) -> Filter:
    """The filter that is in force at a row of the log; one that filters nothing before the first."""
    begun = [one for start, one in rules.filters if start <= position]
    return begun[-1] if begun else Filter()


def filtered(fix: Fix, known: Known, rules: Rules) -> Said | None:
    """Why a fix is filtered; None when it is accepted. What says that its object is gone always is."""
    by = filter_at(rules, fix.position)
    if fix.gone:
        return None
    last = known.alive[fix.object].fix if fix.object in known.alive else None
    said = judged(_limits(by), _moved(fix, last, by, rules), metric_of(rules))
    return (said.reason[0], float(said.value[0])) if said.reason[0] else None


def _limits(by: Filter) -> Limits:
    """Of one fix; what is off is inf, or 0."""
    after_us = by.accept_after_us
    return Limits(
        max_accuracy_m=_one(by.max_accuracy_m, math.inf),
        max_speed_mps=_one(by.max_speed_mps, math.inf),
        min_distance_m=_one(by.min_distance_m, 0.0),
        accept_after_s=_one(None if after_us is None else after_us / 1e6, math.inf),
        beyond_accuracy=np.array([by.beyond_accuracy]),
    )


def _moved(fix: Fix, last: Fix | None, by: Filter, rules: Rules) -> Moved:
    before = fix if last is None else last
    ends = (before.x, before.y), (fix.x, fix.y)
    return Moved(
        own_m=_one(_accuracy_m(fix, by), 0.0),
        has_before=np.array([last is not None]),
        metres=_one(metres(*ends, geographic=rules.geographic), 0.0),
        seconds=_one((fix.event_us - before.event_us) / 1e6, 0.0),
        before_m=_one(_accuracy_m(before, by), 0.0),
    )


def _one(value: float | None, off: float) -> np.ndarray:
    return np.array([off if value is None else value])


def _accuracy_m(fix: Fix, by: Filter) -> float:
    """How good a fix is; 0 where it does not say so, or says nonsense."""
    value = None if by.accuracy is None else fix.attributes.get(by.accuracy)
    return value if value is not None and value >= 0 else 0.0
