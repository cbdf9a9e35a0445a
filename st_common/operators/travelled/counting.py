"""Which objects count in frames at several ticks of a run, by the answers of the queries below (SPEC W2)."""

import numpy as np

from st_common.operators.arrays.keys import packed
from st_common.operators.arrays.turns import Turns
from st_common.runs import is_first, is_last, shifted, starts_of


class Counting:
    """The objects that count, by slot: it begins and ceases with the members of the query below.

    Args:
        members: int64[slots], how many members of the query below each slot's object is; taken on to after the ticks.
        free: bool[slots], where objects count whatever the answers are.
        slot: int64[n], the slot of each of the `turns`, -1 where it is of none.
        turns: what comes and goes in answers.
    """

    def __init__(
        self, members: np.ndarray, free: np.ndarray, slot: np.ndarray, turns: Turns
    ) -> None:
        mine = np.flatnonzero(slot >= 0)
        order = np.lexsort((turns.tick[mine], slot[mine]))
        slot, at = slot[mine][order], turns.tick[mine][order]
        more = np.cumsum(np.where(turns.comes[mine][order], 1, -1))
        last = is_last(slot, at)
        self._slot, self._at, more = slot[last], at[last], more[last]
        first = is_first(self._slot)
        of_others = shifted(more, 0)[starts_of(first)]
        # The running sum went over all slots: what the slots before left in it is taken off.
        members_now = more - of_others + members[self._slot]
        self._counts = members_now > 0
        self._before, self._free = members > 0, free
        members[self._slot] = members_now  # the last of a slot is written last
        counted = shifted(self._counts, first=False)
        before = np.where(first, self._before[self._slot], counted)
        turned = np.flatnonzero((before != self._counts) & ~free[self._slot])
        self.slot, self.at = self._slot[turned], self._at[turned]

    slot: np.ndarray
    """With `at`: the pairs of a slot and a tick at which its object begins or ceases to count."""
    at: np.ndarray

    def counts(self, slot: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Whether the objects of slots count at ticks; bool[n].

        Args:
            slot: int64[n].
            at: int64[n], places of ticks.
        """
        place = (
            np.searchsorted(
                packed(self._slot, self._at), packed(slot, at), side="right"
            )
            - 1
        )
        is_known = np.append(self._slot, -1)[place] == slot
        counts = np.where(
            is_known, np.append(self._counts, False)[place], self._before[slot]
        )
        counting: np.ndarray = counts | self._free[slot]
        return counting
