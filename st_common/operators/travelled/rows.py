"""What frames remember: fixes in windows, and how far each object has come since a query looks at it (SPEC W3-W5)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import (
    Keyed,
    Layout,
    Listed,
    Numbers,
    taken_values,
)


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


def _floats() -> np.ndarray:
    return np.empty(0)


def _bounds() -> np.ndarray:
    return np.empty((0, 0), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRows(Listed):
    """Fixes that a frame may hold, sorted by query and object, those of one object as they came; n rows.

    Attributes:
        key: int64[n], `query << 32 | object`.
        ts: int64[n], event time in microseconds.
        x: float64[n], where the fix was, NaN in rows of states that were stored before it was kept; `y` likewise.
        tick: int64[n], the tick from which the row is known, in microseconds.
        n: int64[n], the number of the fix among those of its object's stay.
        way: int64[n], how far the object had come, in micrometres.
        group: int64[n], as in the entries of windows, as are `text` and `value`.
        held: int8[n], 1 where the result has it.
        begins: int8[n], 1 where no way leads to it from the fix before.
        fields: string[n], the selected columns as JSON.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="frames",
        numbers={
            "key": (Numbers.QUERIES, Numbers.OBJECTS),
            "group": (Numbers.PARTNERS,),
            "text": (Numbers.PARTNERS,),
        },
        order=("key",),
        identity=("key", "n", "ts"),
        bit="held",
        later={"x": np.nan, "y": np.nan},
    )

    key: np.ndarray = field(default_factory=_ints)
    ts: np.ndarray = field(default_factory=_ints)
    x: np.ndarray = field(default_factory=_floats)
    y: np.ndarray = field(default_factory=_floats)
    tick: np.ndarray = field(default_factory=_ints)
    n: np.ndarray = field(default_factory=_ints)
    way: np.ndarray = field(default_factory=_ints)
    group: np.ndarray = field(default_factory=_ints)
    text: np.ndarray = field(default_factory=_ints)
    value: np.ndarray = field(default_factory=_floats)
    held: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    begins: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    fields: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

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

    def with_later(self, more: "FrameRows") -> tuple["FrameRows", np.ndarray]:
        """These rows and later ones, sorted as well; behind those of the same key.

        Args:
            more: sorted by key.

        Returns:
            All rows, and int64: the place that each had among these, -1 for the later ones.
        """
        place = np.arange(len(self))
        if not len(more):
            return self, place
        # Where later rows come to stand: behind those of the same object, and each one farther for those before it.
        at = np.searchsorted(self.key, more.key, side="right") + np.arange(len(more))
        is_old = np.ones(len(self) + len(more), bool)
        is_old[at] = False

        def merged(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            both = np.empty(len(is_old), old.dtype)
            both[is_old], both[at] = old, new
            return both

        order = merged(place, len(self) + np.arange(len(more)))
        columns = {
            name: merged(getattr(self, name), getattr(more, name))
            for name in self.columns()
            if name != "fields"
        }
        fields = pa.concat_arrays([self.fields, more.fields])
        return FrameRows(**columns, fields=taken_values(fields, order)), np.where(
            is_old, order, -1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks(Keyed):
    """An object's way since a query looks at it: one row per key, sorted; k rows.

    Attributes:
        key: int64[k], `query << 32 | object`.
        since: int64[k], the event time of its first fix, in microseconds.
        n: int64[k], how many fixes it had.
        way: int64[k], how far it came, in micrometres.
        x: float64[k], the last fix that counted; NaN where the object ended and its rows outlive it. `y` likewise.
        high: int64[k, W], the bounds of windows; `low`, `last`, `seen` likewise, see `Bounds`. A window holds measures
            from `low` to `last` of fixes up to the number `seen`; `high` is the multiple of the slide at which it moved
            last.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="tracks",
        numbers={"key": (Numbers.QUERIES, Numbers.OBJECTS)},
        order=("key",),
        identity=("key",),
        wide=("high", "low", "last", "seen"),
    )

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
