"""The skeleton of GPAC over arrays: which objects enter and leave which answers (paper GPAC, Figure 1; SPEC G2).

Every event of an object (a fix, its disappearance, its expiry) is a slot; before an object's first event stands one
more, that of its answer so far. A pair (slot, target) says that the object satisfies the target there. For two slots
in a row of one object:

    Case I    in both                  it stays: nothing is sent (sign 0 on request)
    Case II   in the first only        it leaves: -
    Case III  in the second only       it is a newcomer: +
    Case IV   in neither               an outsider: nothing
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.state.state import OBJECT_SHIFT, TARGET_MASK
from st_common.runs import is_first, ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """What became of pairs of an object and a target at the events of a run.

    Attributes:
        stays: Case I: places of events and targets, int64 each. `leaves` (Case II) and `enters` (Case III) likewise.
        answer: int64, ascending, keys `object << 32 | target` after the events, of exactly the objects with events.
    """

    stays: tuple[np.ndarray, np.ndarray]
    leaves: tuple[np.ndarray, np.ndarray]
    enters: tuple[np.ndarray, np.ndarray]
    answer: np.ndarray


def judge(
    objects: np.ndarray,
    hit_event: np.ndarray,
    hit_target: np.ndarray,
    answer: np.ndarray,
) -> Cases:
    """The four cases for events sorted by object and order of effect.

    Each object has a slot for what it satisfied before, then one for each of its events. What is in a slot and not in
    the one before it comes there; what is not in the slot after it goes there:

        object           7                    9
        slot             0      1      2      3      4
        event            .      0      1      .      2
        satisfied       A      A B     B     C      C D
        comes                   B                     D       enters
        goes                    A                             leaves, at the event of the next slot

    Args:
        objects: the object of each event, int64, sorted.
        hit_event: with `hit_target`, the pairs that are satisfied; int64, in any order, each once.
        hit_target: see `hit_event`.
        answer: the sorted keys `object << 32 | target` of all answers before the events.
    """
    slots = _slots_of(objects)
    before_slot, before_target = _answers_of(slots, answer)
    # Slot and target as one number: the same target one slot later is the number plus the width.
    width = 1 + int(max(hit_target.max(initial=0), before_target.max(initial=0)))
    before = before_slot * width + before_target
    after = slots.of_event[hit_event] * width + hit_target
    return _cases(slots, objects, np.sort(np.concatenate([before, after])), width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slots:
    """The slots of events: `of_event` int64[events]; the `event` of each slot, -1 before an object's first one.

    `before` is the first slot of each of the `touched` objects. One slot follows all others.
    """

    touched: np.ndarray
    before: np.ndarray
    of_event: np.ndarray
    event: np.ndarray


def _slots_of(objects: np.ndarray) -> _Slots:
    """A slot for each event, and one in front of each object's first, given the object of each event."""
    begins = is_first(objects)
    first = np.flatnonzero(begins)
    places = np.arange(len(objects))
    of_event = places + np.cumsum(begins)
    event = np.full(len(objects) + len(first) + 1, -1, np.int64)
    event[of_event] = places
    return _Slots(
        touched=objects[first],
        before=first + np.arange(len(first)),
        of_event=of_event,
        event=event,
    )


def _answers_of(slots: _Slots, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The targets of the touched objects' answers, each with the slot before its object's first event."""
    start = np.searchsorted(answer, slots.touched << OBJECT_SHIFT)
    end = np.searchsorted(answer, (slots.touched + 1) << OBJECT_SHIFT)
    count = end - start
    return np.repeat(slots.before, count), answer[ranges(start, count)] & TARGET_MASK


def _cases(slots: _Slots, objects: np.ndarray, key: np.ndarray, width: int) -> Cases:
    """The cases of sorted keys `slot * width + target`, given the object of each event."""
    slot, target = np.divmod(key, width)
    comes, goes = _alone(key, width)
    event, next_event = slots.event[slot], slots.event[slot + 1]
    is_event = event >= 0
    is_after_all = next_event < 0  # the next slot is another object's, or there is none
    leaves = goes & ~is_after_all
    enters, stays = is_event & comes, is_event & ~comes
    who = objects[event[is_after_all]]
    return Cases(
        stays=(event[stays], target[stays]),
        leaves=(next_event[leaves], target[leaves]),
        enters=(event[enters], target[enters]),
        answer=(who << OBJECT_SHIFT) | target[is_after_all],
    )


def _alone(key: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """For sorted keys: whether the same target is absent one slot before, and one slot after."""
    if not len(key):
        return np.empty(0, bool), np.empty(0, bool)
    after = np.minimum(np.searchsorted(key, key + width), len(key) - 1)
    goes_on = key[after] == key + width
    comes = np.ones(len(key), bool)
    comes[after[goes_on]] = False
    return comes, ~goes_on
