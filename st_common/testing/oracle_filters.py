"""Which fixes the oracle does not believe, or learns nothing from, beside the last that was accepted (SPEC X11)."""

from st_common.testing.oracle_readings import Known, metres
from st_common.testing.oracle_rows import Filter, Fix, Rules

Said = tuple[str, float]
"""Why a fix is filtered, and what was too much or too little."""


def filter_at(rules: Rules, position: int) -> Filter:
    """The filter that is in force at a row of the log; one that filters nothing before the first."""
    found = [one for start, one in rules.filters if start <= position]
    return found[-1] if found else Filter()


def filtered(fix: Fix, known: Known, rules: Rules) -> Said | None:
    """Why a fix is filtered; None when it is accepted. What says that its object is gone always is."""
    by = filter_at(rules, fix.position)
    if fix.gone:
        return None
    own_m = _accuracy_m(fix, by)
    if by.max_accuracy_m is not None and own_m > by.max_accuracy_m:
        return "accuracy", own_m
    if fix.object not in known.alive:
        return None
    last = known.alive[fix.object].fix
    us = fix.event_us - last.event_us
    if by.accept_after_us is not None and us > by.accept_after_us:
        return None
    moved_m = metres((last.x, last.y), (fix.x, fix.y), geographic=rules.geographic)
    if by.max_speed_mps is not None and moved_m > by.max_speed_mps * (us / 1e6):
        return "speed", moved_m / (us / 1e6)
    if by.min_distance_m is not None and moved_m < by.min_distance_m:
        return "distance", moved_m
    if by.beyond_accuracy and moved_m < _accuracy_m(last, by) + own_m:
        return "within_accuracy", moved_m
    return None


def _accuracy_m(fix: Fix, by: Filter) -> float:
    """How good a fix is; 0 where it does not say so, or says nonsense."""
    value = None if by.accuracy is None else fix.attributes.get(by.accuracy)
    return value if value is not None and value >= 0 else 0.0
