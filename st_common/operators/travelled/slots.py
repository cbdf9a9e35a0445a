"""Which objects and events each frame looks at: all of them, or those of the one object that it is about (SPEC P8)."""

from functools import cached_property

import numpy as np

from st_common.runs import ranges


class Slots:
    """Numbered pairs of a frame and what it looks at: a range of numbers for each.

        three frames among objects 0 to 2: the first is about all, the second about 2 alone, the third about an unknown
        one

        slot      0   1   2   3
        frame     0   0   0   1
        number    0   1   2   2

    Args:
        low: int64[f], the first number that each frame looks at.
        high: int64[f], the number behind the last one.
    """

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
        """The slot of each pair, -1 where the frame does not look at it; int64[n].

        Args:
            frame: int64[n].
            number: int64[n], -1 for nobody.
        """
        inside = (number >= self._low[frame]) & (number < self._high[frame])
        return np.where(inside, self._start[frame] + number - self._low[frame], -1)

    def all_of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All slots of some numbers.

        Args:
            numbers: int64, ascending, each once.

        Returns:
            Two int64 arrays: the slots, ascending, and the place of each one's number. In the drawing numbers 0 and 2
            have slots 0, 2, 3 with places 0, 1, 1.
        """
        first = np.searchsorted(numbers, self._low)
        counts = np.searchsorted(numbers, self._high) - first
        at, frame = ranges(first, counts), np.repeat(np.arange(len(counts)), counts)
        return self._start[frame] + numbers[at] - self._low[frame], at


def slots_of_objects(about: np.ndarray, objects: int) -> Slots:
    """The slots of frames among objects.

    Args:
        about: int64[f], the one object that each frame is about, -1 for all, -2 for one that is not known.
        objects: how many objects there are.
    """
    low = np.where(about >= 0, about, 0)
    high = np.where(about >= 0, about + 1, np.where(about == -1, objects, 0))
    return Slots(low, high)


def slots_of_events(about: np.ndarray, object_of: np.ndarray) -> Slots:
    """The slots of frames among the events of a run.

    Args:
        about: int64[f], as `slots_of_objects` takes it.
        object_of: int64[n], ascending, the object of each event.
    """
    low, high = (
        np.searchsorted(object_of, about),
        np.searchsorted(object_of, about, side="right"),
    )
    return Slots(
        np.where(about >= 0, low, 0),
        np.where(about >= 0, high, np.where(about == -1, len(object_of), 0)),
    )
