"""What frames remember: fixes in windows, and how far each object has come since a query looks at it (SPEC W3-W5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.fixes import NEVER
from st_common.operators.keys import MASK, SHIFT


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


def _floats() -> np.ndarray:
    return np.empty(0)


def _bounds() -> np.ndarray:
    return np.empty((0, 0), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRows:
    """Fixes that a frame may hold, sorted by query and object, those of one object as they came.

    `key` is `query << 32 | object`. `n` counts the object's fixes, `way` is how far it had come (micrometres), `tick`
    the tick from which the row is known. `held` says that it is in the result, `begins` (0 or 1) that no way leads to
    it from the fix before. `group` and `value` are as in windows' entries; `fields` are the selected columns.
    """

    key: np.ndarray = field(default_factory=_ints)
    ts: np.ndarray = field(default_factory=_ints)
    tick: np.ndarray = field(default_factory=_ints)
    n: np.ndarray = field(default_factory=_ints)
    way: np.ndarray = field(default_factory=_ints)
    group: np.ndarray = field(default_factory=_ints)
    value: np.ndarray = field(default_factory=_floats)
    held: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    begins: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    fields: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def __len__(self) -> int:
        return len(self.key)

    @property
    def query(self) -> np.ndarray:
        """The number of the query of each row."""
        return self.key >> SHIFT

    @property
    def object(self) -> np.ndarray:
        """The number of the object of each row."""
        return self.key & MASK

    def queries(self, index: np.ndarray) -> np.ndarray:
        """The numbers of the queries of some rows."""
        numbers: np.ndarray = self.key[index] >> SHIFT
        return numbers

    def objects(self, index: np.ndarray) -> np.ndarray:
        """The numbers of the objects of some rows."""
        numbers: np.ndarray = self.key[index] & MASK
        return numbers

    def take(self, index: np.ndarray) -> "FrameRows":
        """Some of the rows, by place."""
        columns = {name: getattr(self, name)[index] for name in _ROW_ARRAYS}
        return FrameRows(**columns, fields=_taken(self.fields, index))

    def joined(self, more: "FrameRows") -> tuple["FrameRows", np.ndarray]:
        """These rows and later ones, sorted as well; with the place that each had among these, -1 for the others."""
        place = np.arange(len(self))
        if not len(more):
            return self, place
        at = np.searchsorted(self.key, more.key, side="right") + np.arange(len(more))
        is_old = np.ones(len(self) + len(more), bool)
        is_old[at] = False

        def merged(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            both = np.empty(len(is_old), old.dtype)
            both[is_old], both[at] = old, new
            return both

        columns = {
            name: merged(getattr(self, name), getattr(more, name))
            for name in _ROW_ARRAYS
        }
        order = merged(place, len(self) + np.arange(len(more)))
        fields = _taken(pa.concat_arrays([self.fields, more.fields]), order)
        return FrameRows(**columns, fields=fields), np.where(is_old, order, -1)

    def changed(
        self, *, removed: np.ndarray, flipped: np.ndarray, added: "FrameRows"
    ) -> "FrameRows":
        """These rows with others: `removed` and `flipped` (whose `held` is the opposite now) are places."""
        if not len(removed) and not len(flipped) and not len(added):
            return self
        held = self.held.copy()
        held[flipped] ^= 1
        keep = np.ones(len(self), bool)
        keep[removed] = False
        columns = {name: getattr(self, name) for name in _ROW_ARRAYS} | {"held": held}
        whole = FrameRows(**columns, fields=self.fields)
        return (whole.take(np.flatnonzero(keep)) if len(removed) else whole).joined(
            added
        )[0]


def _taken(fields: pa.Array, index: np.ndarray) -> pa.Array:
    """Some of the texts; where nobody selects columns there are none, and nothing to copy."""
    return (
        pa.nulls(len(index), pa.string())
        if fields.null_count == len(fields)
        else fields.take(pa.array(index))
    )


_ROW_ARRAYS = ("key", "ts", "tick", "n", "way", "group", "value", "held", "begins")
_BOUNDS = ("high", "low", "last", "seen")
_WAY = ("since", "n", "way", "x", "y")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    """An object's way since a query looks at it: one row per `key` (`query << 32 | object`, sorted).

    `since` is the event time of its first fix, `n` how many it had, `way` how far it came (micrometres), `x` and `y`
    the last fix that counted; NaN where the object ended and its rows outlive it. Arrays [k, W] are the windows'
    bounds: a window holds measures from `low` to `last` of fixes up to the number `seen`; `high` is the multiple of the
    slide at which it moved last.
    """

    key: np.ndarray = field(default_factory=_ints)
    since: np.ndarray = field(default_factory=_ints)
    n: np.ndarray = field(default_factory=_ints)
    way: np.ndarray = field(default_factory=_ints)
    x: np.ndarray = field(default_factory=_floats)
    y: np.ndarray = field(default_factory=_floats)
    high: np.ndarray = field(default_factory=_bounds)
    low: np.ndarray = field(default_factory=_bounds)
    last: np.ndarray = field(default_factory=_bounds)
    seen: np.ndarray = field(default_factory=_bounds)

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: np.ndarray) -> "Tracks":
        """Some of the tracks, by place or by mask."""
        return Tracks(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )

    def widened(self, width: int) -> "Tracks":
        """These tracks with room for so many windows, at least for those that they have."""
        more = width - self.high.shape[1]
        if more <= 0:
            return self
        none = np.full((len(self), more), NEVER)
        plain = {name: getattr(self, name) for name in ("key", *_WAY)}
        return Tracks(
            **plain,
            **{
                name: np.concatenate([getattr(self, name), none], axis=1)
                for name in _BOUNDS
            },
        )

    def changed(self, *, removed: np.ndarray, added: "Tracks") -> "Tracks":
        """These tracks without the keys `removed`, and with others, which replace those of the same key."""
        if not len(removed) and not len(added):
            return self
        width = max(self.high.shape[1], added.high.shape[1])
        kept = self.take(
            ~np.isin(self.key, np.concatenate([removed, added.key]))
        ).widened(width)
        added = added.widened(width)
        names = self.__dataclass_fields__
        both = Tracks(
            **{
                name: np.concatenate([getattr(kept, name), getattr(added, name)])
                for name in names
            }
        )
        return both.take(np.argsort(both.key, kind="stable"))

    def to_arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """As flat arrays for a blob."""
        return {
            f"{prefix}/{name}": np.ravel(getattr(self, name))
            for name in self.__dataclass_fields__
        }

    @staticmethod
    def from_arrays(prefix: str, arrays: Mapping[str, Any]) -> "Tracks":
        """What `to_arrays` gave."""
        columns = {
            name: arrays[f"{prefix}/{name}"] for name in Tracks.__dataclass_fields__
        }
        count = len(columns["key"])
        shape = (count, len(columns["high"]) // count if count else 0)
        return Tracks(
            **{
                name: c.reshape(shape) if name in _BOUNDS else c
                for name, c in columns.items()
            }
        )
