"""What several ticks of a run are about, in frames: the slots, found for all ticks at once, and whose stays ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import packed
from st_common.operators.events.timeline import FIX, Events
from st_common.operators.state.state import Pending
from st_common.operators.travelled.slots import Slots
from st_common.operators.turn.course import Moment
from st_common.runs import is_last


@dataclass(frozen=True, slots=True, kw_only=True)
class Touches:
    """Pairs of a slot and a tick (its place) at which something happened to the slot's object.

    `end` int8: the kind of event by which the object's stay ended there, 0 for none.
    """

    slot: np.ndarray
    at: np.ndarray
    end: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Advances:
    """Pairs of a slot and a tick at which its way goes on; int64 each.

    Attributes:
        slot: the slot among objects.
        at: the place of the tick.
        after: the slot among events of the last event of the object there.
    """

    slot: np.ndarray
    at: np.ndarray
    after: np.ndarray

    def take(self, index: np.ndarray) -> "Advances":
        """Some of the pairs, by place (int64)."""
        return Advances(
            slot=self.slot[index], at=self.at[index], after=self.after[index]
        )


def advances_of(
    moments: Sequence[Moment], events: Events, objects: Slots, among: Slots
) -> Advances:
    """The ways that go on at ticks: what counts is the last event of each object there; sorted by slot and tick.

    Args:
        moments: the ticks.
        events: those of the run.
        objects: slots among objects.
        among: slots among events.
    """
    at, event = _joined([moment.events for moment in moments])
    order = np.argsort(event)
    at, event = at[order], event[order]
    who = events.object[event]
    # Events stand by object and effect: the last of an object at a tick ends a run of both.
    last = is_last(who, at)
    slot, place = objects.all_of(who[last])
    after, _ = among.all_of(event[last])
    return Advances(slot=slot, at=at[last][place], after=after)


def touches_of(
    moments: Sequence[Moment], events: Events, objects: Slots, pending: Pending
) -> Touches:
    """The slots of objects that something happened to at ticks.

    Args:
        moments: the ticks.
        events: those of the run.
        objects: slots among objects.
        pending: what happened in the first tick before the run.
    """
    at, who = _joined([moment.objects for moment in moments])
    end = _ends(moments, events, pending, packed(at, who))
    order = np.argsort(who, kind="stable")
    slot, place = objects.all_of(who[order])
    place = order[place]
    return Touches(slot=slot, at=at[place], end=end[place])


def _ends(
    moments: Sequence[Moment], events: Events, pending: Pending, touched: np.ndarray
) -> np.ndarray:
    """By which kind of event stays ended; what was pending came before all else of its tick."""
    ends = np.zeros(len(touched), np.int8)
    at, event = _joined([moment.events for moment in moments])
    over = np.flatnonzero(events.kind[event] != FIX)[::-1]  # the first is written last
    ends[np.searchsorted(touched, packed(at[over], events.object[event[over]]))] = (
        events.kind[event[over]]
    )
    at, who = _joined([moment.also for moment in moments])
    kind = pending.ended[np.searchsorted(pending.objects, who)]
    place = np.searchsorted(touched, packed(at, who))
    ends[place] = np.where(kind > 0, kind, ends[place])
    return ends


def first_ends(ends: np.ndarray, events: Events, which: np.ndarray) -> None:
    """Writes into `ends` by which kind of event each object's stay ended; the first end of a tick counts.

    Args:
        ends: int8[objects], 0 for none; those that are set stay.
        events: those of the run.
        which: int64, the places of events that are looked at, in their order.
    """
    over = which[events.kind[which] != FIX][::-1]  # the first is written last
    over = over[ends[events.object[over]] == 0]
    ends[events.object[over]] = events.kind[over]


def _joined(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The place of the tick of each number, and all numbers."""
    return np.repeat(
        np.arange(len(parts)), [len(part) for part in parts]
    ), np.concatenate(parts)
