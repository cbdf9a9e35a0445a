"""What matching asks of one version of a layer."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import POINT, Growth

Tags = tuple[tuple[str, str], ...]


class Layer(Protocol):
    """One version of a layer, as far as matching needs it.

    Attributes:
        fids: object[features], the ids of features, ascending; pairs name features by their places here.
    """

    @property
    def fids(self) -> np.ndarray:
        """The ids, read only: what is patched puts them together when they are asked for."""

    def changed_since(self, version: int) -> Sequence["Layer"] | None:
        """What differs from an older version, as small layers: features as they were, and features as they are now.

        A point that meets nothing in any of these meets the same features, with the same tags, in both versions.

        Args:
            version: of the same layer.

        Returns:
            None where that is not known: then anything may differ.
        """

    def match(
        self,
        x: np.ndarray,
        y: np.ndarray,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
        within: bool = False,
        growth: Growth = POINT,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point, or of the box around it, and a feature.

        Args:
            x: float64[n]; `y` likewise, in the coordinates of the stream.
            y: see `x`.
            distance_m: how far a feature may be, in metres; None: they must meet.
            kinds: only features of these kinds; empty: of all.
            tags: only features with these tags.
            within: the point must lie inside a surface, not on its border.
            growth: how the box around a point is made of it.

        Returns:
            Two int64 arrays, places of points and of features; each pair once, sorted.

        Raises:
            LayerError: a part of the layer that is needed cannot be read.
        """

    def keyed(
        self,
        values: pa.Array,
        column: str,
        *,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a value and a feature that has it.

        Args:
            values: string[n]; nulls match nothing.
            column: `fid`, `kind`, or the name of a tag.
            kinds: only features of these kinds; empty: of all.
            tags: only features with these tags.

        Returns:
            Two int64 arrays, places of values and of features.
        """

    def crossed(
        self,
        ways: Segments,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a straight way and a feature that meet, or come near to each other.

        Args:
            ways: n segments, from fix to fix.
            distance_m: how near they must come, in metres; None: they must meet.
            kinds: only features of these kinds; empty: of all.
            tags: only features with these tags.

        Returns:
            Two int64 arrays, places of ways and of features; each pair once, sorted.
        """

    def k_nearest(
        self,
        x: np.ndarray,
        y: np.ndarray,
        k: int,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of each point and the k features nearest to it, by `distances`; of equally far ones the first by fid.

        Args:
            x: float64[n]; `y` likewise, in the coordinates of the stream; NaN is near to nothing.
            y: see `x`.
            k: how many, at least 1.
            distance_m: how far they may be; None: any distance.
            kinds: only features of these kinds; empty: of all.
            tags: only features with these tags.

        Returns:
            Two int64 arrays, places of points and of features; each pair once, sorted.

        Raises:
            LayerError: a part of the layer that is needed cannot be read.
        """

    def distances(
        self,
        x: np.ndarray,
        y: np.ndarray,
        feature: np.ndarray,
        *,
        to_border: bool = False,
    ) -> np.ndarray:
        """How far points are from features, pair by pair: metres, or the unit of planar coordinates; 0 inside an area.

        Args:
            x: float64[n]; `y` likewise, in the coordinates of the stream.
            y: see `x`.
            feature: int64[n], places of features.
            to_border: how far from their outlines, from inside of areas too.

        Returns:
            float64[n], NaN where the point is nowhere or the feature has no shape.

        Raises:
            LayerError: a part of the layer that is needed cannot be read.
        """

    def nearest(self, x: np.ndarray, y: np.ndarray, feature: np.ndarray) -> np.ndarray:
        """The place of each feature that is nearest to the point beside it: the point itself inside an area.

        Args:
            x: as for `distances`; so are all others.
            y: float64[n].
            feature: int64[n].

        Returns:
            float64[2, n]: x and y, NaN where the distance is.

        Raises:
            LayerError: a part of the layer that is needed cannot be read.
        """

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, as text; null for none."""

    def rows(self, feature: np.ndarray) -> pa.Table | None:
        """Whole features of some places (int64[n]): fid, kind, tags (a map) and geometry (WKB), a row each.

        None where they cannot be read, which was noted then.
        """


LayerOf = Callable[[str, int], Layer]
"""Gives a version of a layer by its name."""
