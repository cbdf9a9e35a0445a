"""What of an answer a tick decides anew, and what holds instead."""

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, differences, packed


class Scope:
    """Which keys of the answer a tick decides anew, and what holds instead."""

    def __init__(self, answer: np.ndarray, changed: np.ndarray) -> None:
        self.answer, self.changed = answer, changed
        self.target, self.object = answer >> SHIFT, answer & MASK
        self.keys: list[np.ndarray] = []
        self._whole: list[np.ndarray] = []
        self._by_object: list[np.ndarray] = []

    def whole(self, targets: np.ndarray) -> None:
        """All members of these targets are decided anew."""
        self._whole.append(targets)

    def by_object(self, targets: np.ndarray) -> None:
        """The changed objects among the members of these targets are decided anew."""
        self._by_object.append(targets)

    def found(self, target: np.ndarray, objects: np.ndarray) -> None:
        """Pairs that hold."""
        self.keys.append(packed(target, objects))

    def differences(self, targets: int) -> tuple[np.ndarray, np.ndarray]:
        """The keys that left and those that came."""
        old = self.answer[self._decided(targets)] if len(self.answer) else self.answer
        new = np.sort(np.concatenate([*self.keys, old[:0]]))
        return differences(old, new)

    def _decided(self, targets: int) -> np.ndarray:
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
