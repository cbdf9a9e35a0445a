"""Pairs of a fix and a feature of a layer as expressions see them: the columns of the fix, tags, and the distance."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.expressions.readings import Readings
from st_common.query.grammar.words import always_quoted
from st_common.query.pair_columns import (
    BORDER,
    DISTANCE,
    is_of_pair,
    own_name,
    speed_tag,
)
from st_common.query.tag_speeds import speed_of


class Features(Protocol):
    """What is asked of a layer; see `operators.matching.layer.Layer`."""

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, as text; null for none."""

    def distances(
        self,
        x: np.ndarray,
        y: np.ndarray,
        feature: np.ndarray,
        *,
        to_border: bool = False,
    ) -> np.ndarray:
        """How far points are from features, or their outlines, pair by pair; float64[n], NaN for nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureReadings:
    """n pairs: see `Points`; names are those of `pair_columns`.

    Attributes:
        one: the fix of each pair.
        feature: int64[n], the place of its feature in the layer.
        of: the layer.
        names: the columns of pairs that conditions name.
    """

    one: Readings
    feature: np.ndarray
    of: Features
    names: frozenset[str]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.one)

    def take(self, index: np.ndarray) -> "FeatureReadings":
        """Some of the pairs: by place (int64) or by mask (bool[n])."""
        return replace(self, one=self.one.take(index), feature=self.feature[index])

    def column(self, name: str, ids: pa.Array, *, space: Space) -> pa.Array | None:
        """See `Readings.column`."""
        if name in self.names:
            return self._of_both([name])[name]
        return None if is_of_pair(name) else self.one.column(name, ids, space=space)

    def table(
        self, ids: pa.Array, *, space: Space, texts: Sequence[str] | None = None
    ) -> pa.Table:
        """See `Readings.table`."""
        one = self.one.table(ids, space=space, texts=texts)
        said = None if texts is None else " ".join(texts)
        wanted = [
            name for name in self.names if said is None or always_quoted(name) in said
        ]
        own = dict(zip(one.column_names, one.columns, strict=True))
        return pa.table({**_unhidden(own), **self._of_both(wanted)})

    def columns(
        self, names: Sequence[str], ids: pa.Array, *, space: Space
    ) -> dict[str, pa.Array]:
        """See `Readings.columns`."""
        first = [name for name in names if not is_of_pair(name)]
        of_one = self.one.columns(first, ids, space=space)
        return {
            **_unhidden(of_one),
            **self._of_both(name for name in names if name in self.names),
        }

    def _of_both(self, names: Iterable[str]) -> dict[str, pa.Array]:
        places = pa.array(self.feature)
        return {
            name: self._distance(to_border=name == BORDER)
            if name in (DISTANCE, BORDER)
            else tag_values(self.of.values, name, places)
            for name in names
        }

    def _distance(self, *, to_border: bool) -> pa.Array:
        one = self.one
        far = self.of.distances(one.x, one.y, self.feature, to_border=to_border)
        return pa.array(far, from_pandas=True)


def tag_values(
    values: Callable[[str], pa.Array], name: str, places: pa.Array
) -> pa.Array:
    """A tag of some features, as a text or as the speed that it says; null where a place is.

    Args:
        values: gives fid, kind or a tag (by name) of all features of a layer as texts.
        name: what `pair_columns` calls it.
        places: int64[n], the features.
    """
    as_speed = speed_tag(name)
    if as_speed is None:
        return values(own_name(name) or "").cast(pa.string()).take(places)
    tag, unit = as_speed
    texts = values(tag).cast(pa.string()).take(places).dictionary_encode()
    # Each different text is read once.
    speeds = [speed_of(text, unit) for text in texts.dictionary.to_pylist()]
    return pa.array(speeds, pa.float64()).take(texts.indices)


def _unhidden(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    return {name: one for name, one in columns.items() if not is_of_pair(name)}
