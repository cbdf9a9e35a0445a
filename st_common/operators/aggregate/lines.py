"""Changes before they become rows: those of many ticks become rows at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

_NOTHING = {"other": -1, "nth": 0, "far": np.nan}
"""What stands in columns that nothing is shown of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Changes before they become rows: those of many ticks become rows at once. Columns as `change_rows` takes them.

    Attributes:
        objects: int64[n], partners where the changes are of groups.
        place: int64[n], where the fix stands whose columns are shown, of groups the number of the text that they show;
            -1 where none are.
        other: int64[n], likewise that of the other object of a pair, -1 where no column is about it.
        nth: int64[n], which of the nearest each is, 0 where no column is about that.
        far: float64[n], how far that is from the place of KNN, NaN where no column is about that.
    """

    position: np.ndarray
    event_ts: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    rank: np.ndarray
    objects: np.ndarray
    target: np.ndarray
    sign: np.ndarray
    cause: np.ndarray
    value: np.ndarray
    place: np.ndarray
    other: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    nth: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    far: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name, nothing in _NOTHING.items():
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(len(self.sign), nothing))

    def __len__(self) -> int:
        return len(self.sign)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """What `change_rows` takes, by name: all but the fixes whose columns are shown."""
        shown = {"place", *_NOTHING}
        names = (name for name in self.__dataclass_fields__ if name not in shown)
        return {name: getattr(self, name) for name in names}

    def take(self, index: np.ndarray) -> "Lines":
        """Some of the changes, by place."""
        return Lines(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )


def joined_lines(parts: Sequence[Lines]) -> Lines:
    """The changes of some ticks together; of one at least."""
    if len(parts) == 1:
        return parts[0]
    return Lines(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in Lines.__dataclass_fields__
        }
    )
