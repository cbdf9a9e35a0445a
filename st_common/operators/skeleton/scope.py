"""What of an answer a tick decides anew, and what holds instead."""

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, differences, packed


class Scope:
    """What of an answer a tick decides anew, and what holds instead.

        scope = Scope(answer, changed)
        scope.whole(targets)                  all members of these are decided anew
        scope.by_object(targets)              of these the changed objects are
        scope.found(target, objects)          what holds, of what is decided
        scope.differences(len(targets))       what left, what came

    Args:
        answer: int64, ascending, keys `target << 32 | object`.
        changed: bool[objects], who has another fix than at the tick before.

    Example:
        members: objects 1, 2 of target 0, object 2 of target 1; changed: 2 and 3; target 0 is decided as a whole and
            has
        now 1 and 3, target 1 by object and has none:  (0, 2) and (1, 2) left, (0, 3) came
    """

    def __init__(self, answer: np.ndarray, changed: np.ndarray) -> None:
        self.answer, self.changed = answer, changed
        self.target, self.object = answer >> SHIFT, answer & MASK
        self.keys: list[np.ndarray] = []
        self._whole: list[np.ndarray] = []
        self._by_object: list[np.ndarray] = []

    def whole(self, targets: np.ndarray) -> None:
        """Notes that all members of these targets (int64) are decided anew."""
        self._whole.append(targets)

    def by_object(self, targets: np.ndarray) -> None:
        """Notes that the changed objects among the members of these targets (int64) are decided anew."""
        self._by_object.append(targets)

    def found(self, target: np.ndarray, objects: np.ndarray) -> None:
        """Notes pairs that hold: int64[p] targets and objects, each pair once, only of what is decided anew."""
        self.keys.append(packed(target, objects))

    def differences(self, targets: int) -> tuple[np.ndarray, np.ndarray]:
        """The keys that left the answer and those that came; int64, ascending.

        Args:
            targets: how many targets there are.
        """
        old = self.answer[self._decided(targets)] if len(self.answer) else self.answer
        new = np.sort(np.concatenate([*self.keys, old[:0]]))
        return differences(old, new)

    def _decided(self, targets: int) -> np.ndarray:
        """Which keys of the answer are decided anew; bool."""
        decided = np.zeros(len(self.answer), bool)
        for parts, only_changed in ((self._whole, False), (self._by_object, True)):
            if parts:
                is_meant = np.zeros(targets, bool)
                is_meant[np.concatenate(parts)] = True
                meant = is_meant[self.target]
                decided |= (
                    (meant & self.changed[self.object]) if only_changed else meant
                )
        return decided
