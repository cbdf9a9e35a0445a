"""How far each object has come at each of its fixes, and its average speed (CQL-S section 3, SPEC W4, W8).

        a --- 8 km --- b - 5 km - c       way: 0, 8, 13 km; numbers 1, 2, 3

With a least step of 6 km the leg to c adds nothing, and the next leg is measured from b.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from st_common.query.frame import Extent, Frame
from st_common.reference.metric import Bools, Floats, Ints, Metric, Objects

OfWays = Mapping[str, Mapping[str, float | None]]
"""By function of ways what it says of each object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Fixes as columns of one length, those of an object together and in the order in which they count.

    Attributes:
        ids: object[n].
        event_us: i64[n], when the fix was.
        tick: i64[n], the tick of event time from which on it counts.
        begins: bool[n], no way leads to it from the fix before.
        number: i64[n], from 1 for each object.
        way_um: i64[n], how far its object had come, in whole micrometres.
    """

    ids: Objects
    event_us: Ints
    tick: Ints
    begins: Bools
    number: Ints
    way_um: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, by: str) -> Ints:
        """What windows of `space`, `rows` or `time` measure fixes by."""
        return {"space": self.way_um, "rows": self.number, "time": self.event_us}[by]

    def take(self, which: Ints) -> "Ways":
        """Some of the fixes, by their places in the columns; their numbers and ways stay."""
        return Ways(
            ids=self.ids[which],
            event_us=self.event_us[which],
            tick=self.tick[which],
            begins=self.begins[which],
            number=self.number[which],
            way_um=self.way_um[which],
        )


def units(extent: Extent) -> int:
    """An extent in micrometres, microseconds or fixes."""
    return round(extent.amount * (1 if extent.by == "rows" else 1e6))


def outlives(frame: Frame) -> bool:
    """Whether fixes stay in a frame when their object is gone or silent: no window is one of space (ADR 12)."""
    of_space = any(window.range.by == "space" for window in frame.sliding)
    return not frame.regions and not of_space


def owners(ids: Objects) -> Ints:
    """The number of the object of each fix, from 0. i64[n]."""
    owner = np.zeros(len(ids), np.int64)
    owner[1:] = np.cumsum(ids[1:] != ids[:-1])
    return owner


def numbers(ids: Objects) -> Ints:
    """Which fix of its object each is, from 1. i64[n]."""
    owner, row = owners(ids), np.arange(len(ids))
    first = np.full(len(ids), len(ids))
    np.minimum.at(first, owner, row)
    return np.asarray(row - first[owner] + 1)


def ways_um(
    ids: Objects, x: Floats, y: Floats, begins: Bools, *, min_step_m: float, by: Metric
) -> Ints:
    """How far each object had come at each fix, the legs rounded to whole micrometres (ADR 12). i64[n].

    A leg shorter than `min_step_m` adds nothing.
    """
    is_first = begins | (numbers(ids) == 1)
    if min_step_m > 0:
        start = _last_that_counted(ids, x, y, is_first, round(1e6 * min_step_m), by)
    else:
        start = np.maximum(np.arange(len(ids)) - 1, 0)
    leg = np.where(is_first, 0, _legs_um(x, y, start, np.arange(len(ids)), by))
    leg[leg < round(1e6 * min_step_m)] = 0
    total = np.cumsum(leg)
    before = (total - leg)[numbers(ids) == 1]
    return np.asarray(total - before[owners(ids)], np.int64)


def _last_that_counted(
    ids: Objects, x: Floats, y: Floats, is_first: Bools, least_um: int, by: Metric
) -> Ints:
    """The fix before each from which its leg is measured; the n-th fixes of all objects are looked at together."""
    owner, start = owners(ids), np.arange(len(ids))
    counted = np.zeros(len(ids), np.int64)  # by object
    for row in _by_number(ids):
        start[row] = counted[owner[row]]
        is_far = _legs_um(x, y, start[row], row, by) >= least_um
        counts = row[is_first[row] | is_far]
        counted[owner[counts]] = counts
    return start


def _by_number(ids: Objects) -> Iterator[Ints]:
    """The first fixes of all objects, then the second, and so on."""
    number = numbers(ids)
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number)[1:])
    yield from np.split(order, ends[:-1]) if len(ids) else ()


def _legs_um(x: Floats, y: Floats, start: Ints, stop: Ints, by: Metric) -> Ints:
    if by.is_flat:
        metres = np.hypot(x[stop] - x[start], y[stop] - y[start])
    else:
        metres = by.distance(x[start], y[start], x[stop], y[stop])
    return np.rint(1e6 * metres).astype(np.int64)


def speeds(frame: Frame, ways: Ways) -> dict[str, float | None]:
    """The average speed of every object that has a fix in a result, in metres per second (AVGSPD).

    That is the way over the legs whose two ends are both in it, by the time that they took; by the range of the first
    window of time where there is one. None where no two fixes follow each other, or no time passed.
    """
    owner = owners(ways.ids)
    follows = (np.diff(owner) == 0) & (np.diff(ways.number) == 1) & ~ways.begins[1:]
    legs = np.flatnonzero(follows)
    way_m = _sums(owner, legs, ways.way_um) / 1e6
    seconds = _sums(owner, legs, ways.event_us) / 1e6
    ranges = [window.range for window in frame.sliding if window.range.by == "time"]
    if ranges:
        seconds = np.where(seconds > 0, ranges[0].amount, 0.0)
    return {
        name: float(way_m[n] / seconds[n]) if seconds[n] > 0 else None
        for n, name in enumerate(dict.fromkeys(ways.ids.tolist()))
    }


def of_ways(frame: Frame, ways: Ways) -> OfWays:
    """By function what it says of the way of every object in a result: `avgspd`, `travelled`, `odometer`."""
    owner = owners(ways.ids)
    follows = (np.diff(owner) == 0) & (np.diff(ways.number) == 1) & ~ways.begins[1:]
    way_m = _sums(owner, np.flatnonzero(follows), ways.way_um) / 1e6
    names = dict.fromkeys(ways.ids.tolist())
    travelled = {name: float(way_m[n]) for n, name in enumerate(names)}
    newest = {
        name: float(way / 1e6)
        for name, way in zip(ways.ids.tolist(), ways.way_um.tolist(), strict=True)
    }
    return {
        "avgspd": speeds(frame, ways),
        "travelled": travelled,
        "odometer": newest,
    }


def _sums(owner: Ints, legs: Ints, measure: Ints) -> Ints:
    """By object the sum of what its legs add to a measure."""
    total = np.zeros(len(owner), np.int64)
    np.add.at(total, owner[legs], measure[legs + 1] - measure[legs])
    return total
