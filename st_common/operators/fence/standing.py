"""From visits to how machines stand before a run, and back from how they stand after it (SPEC X3, docs/adr/0024)."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from st_common.operators.arrays.keys import is_in
from st_common.operators.fence.machine import Standing
from st_common.operators.fence.visits import Visits
from st_common.operators.state.component import Change, joined
from st_common.operators.state.fixes import NEVER

V = TypeVar("V", bound=Visits)


def standing_of(visits: Visits, keys: np.ndarray) -> Standing:
    """How machines stand before the run; those without a row in the visits are out."""
    known = is_in(keys, visits.key)
    at = np.searchsorted(visits.key, keys[known])
    since, against, against_since = (
        np.full(len(keys), filler) for filler in (NEVER, 0, NEVER)
    )
    since[known] = visits.since[at]
    against[known] = visits.against[at]
    against_since[known] = visits.against_since[at]
    return Standing(since=since, against=against, against_since=against_since)


def visits_after(
    visits: V, keys: np.ndarray, after: Standing, dwelt: np.ndarray
) -> Change[V]:
    """What the run changes in the visits: those that it moved, and those that were told to dwell."""
    quiet = np.flatnonzero(is_in(visits.key, dwelt) & ~is_in(visits.key, keys))
    told = visits.take(quiet)
    kept = after.is_in | (after.against > 0)
    was = np.zeros(len(keys), np.int8)
    known = is_in(keys, visits.key)
    at = np.searchsorted(visits.key, keys[known])
    goes_on = visits.since[at] == after.since[known]
    was[known] = visits.dwelt[at] * goes_on
    moved = type(visits)(
        key=keys,
        since=after.since,
        dwelt=np.where(is_in(keys, dwelt) & after.is_in, 1, was).astype(np.int8),
        against=after.against,
        against_since=after.against_since,
    ).take(kept)
    still = replace(told, dwelt=np.ones(len(told), np.int8))
    gone = keys[~kept]
    return Change(removed=gone[is_in(gone, visits.key)], added=joined([moved, still]))
