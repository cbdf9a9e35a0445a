"""What a filter is, and what it sees of fixes and features (BBoxDB section 3.6.1, SPEC B11)."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.expressions.readings import Readings

Bools = npt.NDArray[np.bool_]


class Tagged(Protocol):
    """A layer, as far as filters need it."""

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, as text; null for none."""

    def distances(
        self, x: np.ndarray, y: np.ndarray, feature: np.ndarray
    ) -> np.ndarray:
        """How far points are from features, pair by pair; see `operators.matching.layer.Layer`."""

    def rows(self, feature: np.ndarray) -> pa.Table | None:
        """Whole features; see `operators.matching.layer.Layer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """Fixes that a filter is asked about: all that got so far, in no order; n of them.

    Attributes:
        readings: the fixes.
        ids: string, the ids of all objects.
        space: what coordinates mean.
        half_x: float64[n], half of the width of each fix's box, in coordinates; 0 of a point. `half_y` likewise.
    """

    readings: Readings
    ids: pa.Array
    space: Space
    half_x: np.ndarray
    half_y: np.ndarray

    def __len__(self) -> int:
        return len(self.readings)

    def objects(self) -> pa.Array:
        """The id of each fix's object."""
        return self.ids.take(pa.array(self.readings.object))

    def table(self) -> pa.Table:
        """A row per fix with what expressions may use: the stream's attributes, `object`, `event_ts`, `x`, `y`, ..

        On a plane `speed_mps` is in its unit per second.
        """
        return self.readings.table(self.ids, space=self.space)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features that fixes were joined with: the n-th with the n-th of `Fixes`.

    Attributes:
        layer: the features of which they are, called `name`.
        feature: int64[n], their places there.
        rows: fid, kind, tags and geometry of each, for filters that look at whole features; None: they were not read.
        within: how far from its feature a fix may be, for filters that take a distance.
    """

    layer: Tagged
    name: str
    feature: np.ndarray
    rows: pa.Table | None = None
    within: float = 0.0

    def take(self, which: np.ndarray) -> "Features":
        """Some of them, by place (int64)."""
        rows = None if self.rows is None else self.rows.take(pa.array(which))
        return replace(self, feature=self.feature[which], rows=rows)

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag of each feature as text; string[n], null for none."""
        return self.layer.values(column).take(pa.array(self.feature))


class Filter(Protocol):
    """Lets fixes through, and pairs of a fix and a feature; vectorised, without a memory, the same at every call."""

    def filter_fixes(self, fixes: Fixes, value: str | None) -> Bools:
        """Which of n fixes pass; bool[n]. `value` is the custom value that the query gives, None without."""

    def filter_pairs(
        self, fixes: Fixes, features: Features, value: str | None
    ) -> Bools:
        """Which pairs of a join pass; bool[n], of the n-th fix with the n-th feature."""
