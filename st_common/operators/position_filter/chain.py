"""Which fixes of a stay are accepted, when each is judged beside the last accepted one (SPEC X11).

    fixes in order of time     a    b    c    d    e         limits: at most 30 m/s, at least 10 m
    metres from the start      0  100  900  120  125         (a second apart)
    judged beside                   a    b    b    d
                              ok   ok fast   ok still

What `d` is judged beside depends on what was said of `c`: a chain. Most fixes pass beside their neighbour, which is
found for all at once; only behind a fix that does not is it searched for the next that passes, for all stays at once.
"""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.state.limits import (
    ACCEPTED,
    ACCURACY,
    DISTANCE,
    SPEED,
    WITHIN_ACCURACY,
    LimitColumns,
)
from st_common.runs import is_first

_CELLS, _WIDEST = 4096, 64  # fixes that are looked at in one go; of one stay


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Fixes sorted by stay and time; n of them.

    Attributes:
        stay: int64[n], rising, numbers of stays.
        ts: int64[n], event time in microseconds.
        x: float64[n]; `y` likewise.
        span: int64[n], the place of each fix's limits among `limits`.
        accuracy_m: float64[spans, n], how good each fix is by the attribute of each of the limits, NaN where that is
            not known.
        limits: by span.
        space: by which distances are measured.
        unit_m: how many metres one of its distances is.
    """

    stay: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    span: np.ndarray
    accuracy_m: np.ndarray
    limits: LimitColumns
    space: Space
    unit_m: float = 1.0

    def __len__(self) -> int:
        return len(self.stay)

    def metres(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The distances of fixes, float64[p], by their places (int64[p] each)."""
        x, y = self.x, self.y
        way = self.space.distance(x[one], y[one], x[other], y[other])
        metres: np.ndarray = way * self.unit_m
        return metres

    def accuracy(self, fix: np.ndarray, span: np.ndarray) -> np.ndarray:
        """How good fixes are by the attribute of a span; float64[p], metres, NaN where that is not known.

        Args:
            fix: int64[p], places of fixes.
            span: int64[p], places of limits.
        """
        metres: np.ndarray = self.accuracy_m[span, fix]
        return metres


def reasons(chain: Chain, before: np.ndarray, fix: np.ndarray) -> np.ndarray:
    """What is said of fixes, each beside an accepted one before it.

    Reasons in this order, the first that holds: nothing after `accept_after_us`; too fast; not far enough; not farther
    than both accuracies together, of which one that is not known counts as 0 m.

    Args:
        chain: the fixes and their limits.
        before: int64[p], places of accepted fixes.
        fix: int64[p], places of the fixes that are judged.

    Returns:
        int8[p], `ACCEPTED` or why not.
    """
    limits, span = chain.limits, chain.span[fix]
    metres, us = chain.metres(before, fix), chain.ts[fix] - chain.ts[before]
    both_m = np.nan_to_num(chain.accuracy(before, span))
    both_m = both_m + np.nan_to_num(chain.accuracy(fix, span))
    said = np.select(
        [
            us > limits.accept_after_us[span],
            metres > limits.max_speed_mps[span] * (us / 1e6),
            metres < limits.min_distance_m[span],
            limits.beyond_accuracy[span] & (metres < both_m),
        ],
        [ACCEPTED, SPEED, DISTANCE, WITHIN_ACCURACY],
        ACCEPTED,
    )
    return said.astype(np.int8)


def judged(chain: Chain, is_known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is said of each fix, and beside which one it was judged.

    The first fix of a stay that is not known badly begins the chain: it is judged by its accuracy alone.

    Args:
        chain: n fixes.
        is_known: bool[n], fixes that were accepted before; they stand first in their stays.

    Returns:
        int8[n], `ACCEPTED` or why not; and int64[n], the place of the fix that was beside one that is not accepted, -1
        for all others.
    """
    said, beside = np.zeros(len(chain), np.int8), np.full(len(chain), -1)
    numbers = np.arange(len(chain))
    accuracy_m = chain.accuracy(numbers, chain.span)
    worse = ~is_known & (accuracy_m > chain.limits.max_accuracy_m[chain.span])
    said[worse] = ACCURACY
    _Walk(chain, np.flatnonzero(~worse)).into(said, beside)
    return said, beside


class _Walk:
    """Goes along the stays of a chain over some of its fixes (`at`, their places, rising)."""

    def __init__(self, chain: Chain, at: np.ndarray) -> None:
        self._chain, self._at = chain, at
        stay = chain.stay[at]
        first = is_first(stay)
        follows = np.flatnonzero(~first)
        self._beside = np.zeros(len(at), np.int8)  # said beside the neighbour
        self._beside[follows] = reasons(chain, at[follows - 1], at[follows])
        self._starts = np.flatnonzero(first)
        self._ends = np.append(self._starts[1:], len(at))[: len(self._starts)]
        self._stop = self._stops(first)

    def _stops(self, first: np.ndarray) -> np.ndarray:
        """For each place the next, itself included, whose fix does not pass beside its neighbour, or begins a stay."""
        count = len(self._at)
        own = np.where(first | (self._beside != ACCEPTED), np.arange(count), count)
        return np.append(np.minimum.accumulate(own[::-1])[::-1], count)

    def into(self, said: np.ndarray, beside: np.ndarray) -> None:
        """Writes down what is said of fixes that are not accepted, and beside which.

        Of each stay that is not at its end yet `last` is the last accepted fix, `here` the next to be judged.
        """
        ends = self._ends
        # The first fix of a stay is accepted: the walk begins at the first stop behind it.
        here = np.minimum(self._stop[self._starts + 1], ends)
        last = here - 1
        while (is_open := here < ends).any():
            last, here, ends = last[is_open], here[is_open], ends[is_open]
            last, here = self._searched(last, here, ends, said, beside)

    def _searched(
        self,
        last: np.ndarray,
        here: np.ndarray,
        ends: np.ndarray,
        said: np.ndarray,
        beside: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Looks for the next fix of each stay that passes beside the last: a row per stay, a column per fix."""
        columns = np.arange(min(max(_CELLS // len(here), 1), _WIDEST))
        fix = here[:, None] + columns
        is_there = fix < ends[:, None]
        # Behind the end of a stay any of its fixes is read, and left out by `is_there`.
        fix = np.where(is_there, fix, here[:, None])
        before = np.broadcast_to(last[:, None], fix.shape)
        reason = reasons(self._chain, self._at[before], self._at[fix])
        passes = is_there & (reason == ACCEPTED)
        has_passed = passes.any(axis=1)
        passing = np.where(has_passed, passes.argmax(axis=1), len(columns))
        fails = is_there & (columns < passing[:, None])
        said[self._at[fix[fails]]] = reason[fails]
        beside[self._at[fix[fails]]] = self._at[before[fails]]
        return self._gone_on(last, here, ends, passing, has_passed)

    def _gone_on(
        self,
        last: np.ndarray,
        here: np.ndarray,
        ends: np.ndarray,
        passing: np.ndarray,
        has_passed: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Behind a fix that passed those are accepted that pass beside their neighbours."""
        behind = np.minimum(here + passing + has_passed, len(self._at))
        following = np.minimum(np.where(has_passed, self._stop[behind], behind), ends)
        return np.where(has_passed, following - 1, last), following
