"""The values of aggregates, one per group, as they were told last (SPEC G9)."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Sorted `target` numbers (a query and the text of its group, as a partner) and their `value` (NaN for none)."""

    target: np.ndarray
    value: np.ndarray

    @staticmethod
    def empty() -> "Groups":
        """No groups."""
        return Groups(target=np.empty(0, np.int64), value=np.empty(0))

    def __len__(self) -> int:
        return len(self.target)

    def among(self, targets: np.ndarray) -> "Groups":
        """The groups of some targets."""
        mine = np.isin(self.target, targets)
        return Groups(target=self.target[mine], value=self.value[mine])

    def changed(self, *, removed: np.ndarray, added: "Groups") -> "Groups":
        """These groups without the targets `removed`, and with others."""
        if not len(removed) and not len(added):
            return self
        kept = ~np.isin(self.target, removed)
        target = np.concatenate([self.target[kept], added.target])
        order = np.argsort(target, kind="stable")
        return Groups(
            target=target[order],
            value=np.concatenate([self.value[kept], added.value])[order],
        )
