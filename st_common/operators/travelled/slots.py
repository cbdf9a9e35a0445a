"""Which objects and events each frame looks at: all of them, or those of the one object that it is about (SPEC P8)."""

from functools import cached_property

import numpy as np

from st_common.runs import ranges


class Slots:
    """Numbered pairs of a frame and what it looks at: the numbers from `low` to before `high` (int64[f])."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self._low, self._high = low, high
        self._count = high - low
        self._start = np.cumsum(self._count) - self._count
        self.total = int(self._count.sum())

    @cached_property
    def frame(self) -> np.ndarray:
        """The frame of each slot; int64[slots]."""
        return np.repeat(np.arange(len(self._count)), self._count)

    @cached_property
    def number(self) -> np.ndarray:
        """What each slot's frame looks at there; int64[slots]."""
        return ranges(self._low, self._count)

    def of(self, frame: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The slot of each pair, -1 where the frame does not look at it; int64[n]."""
        inside = (number >= self._low[frame]) & (number < self._high[frame])
        return np.where(inside, self._start[frame] + number - self._low[frame], -1)

    def all_of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All slots of some numbers (ascending, each once) by frame, and the place of each one's number."""
        first = np.searchsorted(numbers, self._low)
        counts = np.searchsorted(numbers, self._high) - first
        at, frame = ranges(first, counts), np.repeat(np.arange(len(counts)), counts)
        return self._start[frame] + numbers[at] - self._low[frame], at


def slots_of_objects(about: np.ndarray, objects: int) -> Slots:
    """The slots of frames among so many objects: `about` is the one object of each, -1 for all, -2 for an unknown."""
    low = np.where(about >= 0, about, 0)
    high = np.where(about >= 0, about + 1, np.where(about == -1, objects, 0))
    return Slots(low, high)


def slots_of_events(about: np.ndarray, object_of: np.ndarray) -> Slots:
    """The same among events, given the object of each, ascending."""
    low, high = (
        np.searchsorted(object_of, about),
        np.searchsorted(object_of, about, side="right"),
    )
    return Slots(
        np.where(about >= 0, low, 0),
        np.where(about >= 0, high, np.where(about == -1, len(object_of), 0)),
    )
