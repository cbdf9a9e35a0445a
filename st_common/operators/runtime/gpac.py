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
from st_common.runs import firsts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Pairs of an event (its place among the events) and a target, per case; and the answer after the events.

    `answer` holds the sorted keys of exactly the `touched` objects.
    """

    stays: tuple[np.ndarray, np.ndarray]
    leaves: tuple[np.ndarray, np.ndarray]
    enters: tuple[np.ndarray, np.ndarray]
    touched: np.ndarray
    last_event: np.ndarray
    answer: np.ndarray


def judge(
    objects: np.ndarray,
    hit_event: np.ndarray,
    hit_target: np.ndarray,
    answer: np.ndarray,
) -> Cases:
    """The four cases for events sorted by object and order of effect.

    Args:
        objects: the object of each event, int64, sorted.
        hit_event: with `hit_target`, the pairs that are satisfied; int64, in any order, each once.
        hit_target: see `hit_event`.
        answer: the sorted keys `object << 32 | target` of all answers before the events.
    """
    first = firsts(objects)
    touched = objects[first]
    group = np.zeros(len(objects), np.int64)
    group[first[1:]] = 1
    group = np.cumsum(group)
    slot_of_event = np.arange(len(objects)) + group + 1
    before_slot, before_target = _answers_of(
        touched, first + np.arange(len(first)), answer
    )
    slots = len(objects) + len(touched)
    event_of_slot = np.full(slots + 1, -1, np.int64)
    event_of_slot[slot_of_event] = np.arange(len(objects))
    width = 1 + int(max(hit_target.max(initial=0), before_target.max(initial=0)))
    key = np.concatenate(
        [
            before_slot * width + before_target,
            slot_of_event[hit_event] * width + hit_target,
        ]
    )
    key.sort()
    slot, target = np.divmod(key, width)
    comes, goes = _alone(key, width)
    return _cases(
        slot,
        target,
        comes,
        goes,
        event_of_slot,
        touched,
        np.r_[first, len(objects)][1:] - 1,
    )


def _answers_of(
    touched: np.ndarray, slot: np.ndarray, answer: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The targets of the touched objects' answers, each with the slot before its object's first event."""
    start = np.searchsorted(answer, touched << OBJECT_SHIFT)
    count = np.searchsorted(answer, (touched + 1) << OBJECT_SHIFT) - start
    if not count.any():
        return slot[:0], slot[:0]
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(slot, count), answer[
        np.repeat(start, count) + offset
    ] & TARGET_MASK


def _alone(key: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """For sorted keys: whether the same target is absent one slot before, and one slot after."""
    if not len(key):
        return np.empty(0, bool), np.empty(0, bool)
    at = np.minimum(np.searchsorted(key, key + width), len(key) - 1)
    found = key[at] == key + width
    comes = np.ones(len(key), bool)
    comes[at[found]] = False
    return comes, ~found


def _cases(  # noqa: PLR0917 - arrays of one table, used here alone
    slot: np.ndarray,
    target: np.ndarray,
    comes: np.ndarray,
    goes: np.ndarray,
    event_of_slot: np.ndarray,
    touched: np.ndarray,
    last_event: np.ndarray,
) -> Cases:
    event = event_of_slot[slot]
    is_event = event >= 0
    is_last = (
        event_of_slot[slot + 1] < 0
    )  # the next slot is another object's, or there is none
    leaves = goes & ~is_last
    enters, stays = is_event & comes, is_event & ~comes
    group = np.searchsorted(last_event, event[is_last])
    return Cases(
        stays=(event[stays], target[stays]),
        leaves=(event_of_slot[slot[leaves] + 1], target[leaves]),
        enters=(event[enters], target[enters]),
        touched=touched,
        last_event=last_event,
        answer=(touched[group] << OBJECT_SHIFT) | target[is_last],
    )
