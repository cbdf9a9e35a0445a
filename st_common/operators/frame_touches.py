"""What several ticks of a run are about, in frames: the slots, found for all ticks at once, and whose stays ended."""

from collections.abc import Sequence

import numpy as np

from st_common.operators.course import Moment
from st_common.operators.frame_slots import Slots
from st_common.operators.timeline import FIX, Events


class ByTick:
    """Two columns by tick (its place): within one they are as they came."""

    def __init__(self, tick: np.ndarray, ticks: int, one: np.ndarray, other: np.ndarray) -> None:
        order = np.argsort(tick, kind="stable")
        self._one, self._other = one[order], other[order]
        self._ends = np.searchsorted(tick[order], np.arange(ticks + 1)).tolist()

    def at(self, tick: int) -> tuple[np.ndarray, np.ndarray]:
        """Both columns of one tick."""
        low, high = self._ends[tick], self._ends[tick + 1]
        return self._one[low:high], self._other[low:high]


def slots_of_last(moments: Sequence[Moment], events: Events, objects: Slots, among: Slots) -> ByTick:
    """The slots among objects that the last event of each object at a tick takes on, and that event's among events."""
    tick, event = _joined([moment.events for moment in moments])
    order = np.argsort(event)
    tick, event = tick[order], event[order]
    who = events.object[event]
    last = np.append((who[1:] != who[:-1]) | (tick[1:] != tick[:-1]), True)[: len(who)]
    slot, at = objects.all_of(who[last])
    after, _ = among.all_of(event[last])
    return ByTick(tick[last][at], len(moments), slot, after)


def slots_touched(moments: Sequence[Moment], objects: Slots) -> ByTick:
    """The slots of objects that something happened to at ticks, ascending, and whose each is."""
    tick, who = _joined([moment.objects for moment in moments])
    order = np.argsort(who, kind="stable")
    slot, at = objects.all_of(who[order])
    return ByTick(tick[order][at], len(moments), slot, who[order][at])


def first_ends(ends: np.ndarray, events: Events, which: np.ndarray) -> None:
    """Writes into `ends` (int8 per object) by which kind of event each object's stay ended, the first one counts."""
    over = which[events.kind[which] != FIX][::-1]  # the first is written last
    over = over[ends[events.object[over]] == 0]
    ends[events.object[over]] = events.kind[over]


def _joined(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The place of the tick of each number, and all numbers."""
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts]), np.concatenate(parts)
