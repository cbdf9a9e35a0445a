"""What windows hold: fixes that qualified, each with the value and the group that count (PLACE, SPEC P5)."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Fixes in windows, in the order in which they came.

    `target` and `object` say whose entry it is; `ts` is its event time, `position` its row of the log, `tick` the tick
    from which it counts. `group` is the number of the group's text among the partners, -1 without groups; `value` the
    aggregate's argument (for distinct ones the number of its text), NaN for null and 1 where every fix counts.
    """

    target: np.ndarray
    object: np.ndarray
    ts: np.ndarray
    position: np.ndarray
    tick: np.ndarray
    group: np.ndarray
    value: np.ndarray

    @staticmethod
    def empty() -> "Entries":
        """No entries."""
        ints = np.empty(0, np.int64)
        return Entries(
            target=ints,
            object=ints,
            ts=ints,
            position=ints,
            tick=ints,
            group=ints,
            value=np.empty(0),
        )

    def __len__(self) -> int:
        return len(self.target)

    def take(self, index: np.ndarray) -> "Entries":
        """Some of the entries, by place or by mask."""
        return Entries(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )

    def changed(self, *, removed: np.ndarray, added: "Entries") -> "Entries":
        """These entries without those at the places `removed`, and more at the end."""
        kept = self
        if len(removed):
            keep = np.ones(len(self), bool)
            keep[removed] = False
            kept = self.take(keep)
        if not len(added):
            return kept
        names = self.__dataclass_fields__
        return Entries(
            **{
                name: np.concatenate([getattr(kept, name), getattr(added, name)])
                for name in names
            }
        )
