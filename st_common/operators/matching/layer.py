"""What matching asks of one version of a layer."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import POINT, Growth

Tags = tuple[tuple[str, str], ...]


class Layer(Protocol):
    """One version of a layer, as far as matching needs it."""

    fids: np.ndarray

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
        """Pairs of a point, or of the box around it, and a feature, each once, sorted."""

    def keyed(
        self,
        values: pa.Array,
        column: str,
        *,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a value (its place, nulls match nothing) and a feature whose `column` has it as text."""

    def crossed(
        self,
        ways: Segments,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a straight way and a feature that meet, or come so near to each other, each once, sorted."""

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, as text; null for none."""


LayerOf = Callable[[str, int], Layer]
"""Gives a version of a layer by its name."""
