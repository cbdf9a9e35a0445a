"""Layers as a step sees them: one that cannot be read matches nothing, and that is noted (SPEC S3)."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from st_common.errors import LayerError
from st_common.geometry.borders import Segments
from st_common.geometry.enlarged import POINT, Growth
from st_common.operators.expressions.failures import each_alone, note
from st_common.operators.matching.layer import Layer, LayerOf, Tags

_Pairs = tuple[np.ndarray, np.ndarray]
_Rows = np.ndarray | slice
_ALL = slice(None)


def guarded(layer_of: LayerOf) -> LayerOf:
    """The same layers, of which one that cannot be read matches nothing (SPEC S3).

    What raises `LayerError` is noted (`failures.note`), so that the queries that join it are suspended; the other
    queries of the stream go on. Other errors go through.
    """

    def found(name: str, version: int) -> Layer:
        try:
            return _Guarded(layer_of(name, version), name, version)
        except LayerError as error:
            _note(name, version, error)
            return _Nothing()

    return found


def _note(name: str, version: int, error: LayerError) -> None:
    note(
        ("layer", name, str(version)),
        f"version {version} of layer {name} cannot be read: {error.message}",
        error,
    )


class _Guarded:
    """A layer whose parts are read when they are asked for: a point that needs an unreadable one meets nothing."""

    __slots__ = ("_layer", "_name", "_version", "fids")

    def __init__(self, layer: Layer, name: str, version: int) -> None:
        self._layer, self._name, self._version, self.fids = (
            layer,
            name,
            version,
            layer.fids,
        )

    def changed_since(self, version: int) -> Sequence[Layer] | None:
        return self._layer.changed_since(version)

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
    ) -> _Pairs:
        return self._asked(
            lambda rows: self._layer.match(
                x[rows],
                y[rows],
                distance_m=distance_m,
                kinds=kinds,
                tags=tags,
                within=within,
                growth=growth,
            ),
            len(x),
        )

    def keyed(
        self,
        values: pa.Array,
        column: str,
        *,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> _Pairs:
        return self._asked(
            lambda rows: self._layer.keyed(
                values if isinstance(rows, slice) else values.take(pa.array(rows)),
                column,
                kinds=kinds,
                tags=tags,
            ),
            len(values),
        )

    def crossed(
        self,
        ways: Segments,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> _Pairs:
        return self._asked(
            lambda rows: self._layer.crossed(
                ways.take(rows), distance_m=distance_m, kinds=kinds, tags=tags
            ),
            len(ways),
        )

    def k_nearest(
        self,
        x: np.ndarray,
        y: np.ndarray,
        k: int,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> _Pairs:
        return self._asked(
            lambda rows: self._layer.k_nearest(
                x[rows], y[rows], k, distance_m=distance_m, kinds=kinds, tags=tags
            ),
            len(x),
        )

    def distances(
        self,
        x: np.ndarray,
        y: np.ndarray,
        feature: np.ndarray,
        *,
        to_border: bool = False,
    ) -> np.ndarray:
        far = np.full(len(x), np.nan)
        try:
            far[:] = self._layer.distances(x, y, feature, to_border=to_border)
        except LayerError as error:
            _note(self._name, self._version, error)
        return far

    def nearest(self, x: np.ndarray, y: np.ndarray, feature: np.ndarray) -> np.ndarray:
        places = np.full((2, len(x)), np.nan)
        try:
            places[:] = self._layer.nearest(x, y, feature)
        except LayerError as error:
            _note(self._name, self._version, error)
        return places

    def values(self, column: str) -> pa.Array:
        try:
            return self._layer.values(column)
        except LayerError as error:
            _note(self._name, self._version, error)
            return pa.nulls(len(self.fids), pa.string())

    def rows(self, feature: np.ndarray) -> pa.Table | None:
        try:
            return self._layer.rows(feature)
        except LayerError as error:
            _note(self._name, self._version, error)
            return None

    def _asked(self, ask: Callable[[_Rows], _Pairs], total: int) -> _Pairs:
        """The pairs for all points at once; when that fails those of each point that can be asked about alone."""
        try:
            return ask(_ALL)
        except LayerError as error:
            _note(self._name, self._version, error)
        pairs: list[_Pairs] = [(np.empty(0, np.int64), np.empty(0, np.int64))]

        def kept(rows: np.ndarray) -> np.ndarray:
            point, feature = ask(rows)
            pairs.append((rows[point], feature))
            return np.ones(len(rows), bool)

        raised: list[Exception] = []
        # Points that need readable parts alone still have their pairs.
        each_alone(kept, total, raised)
        for each in raised:
            if not isinstance(each, LayerError):
                raise each
        point, feature = (np.concatenate([part[i] for part in pairs]) for i in range(2))
        order = np.lexsort((feature, point))
        return point[order], feature[order]


class _Nothing:
    """A layer without features."""

    fids = np.empty(0, object)

    def changed_since(self, _version: int) -> None:
        return None

    def match(self, *_asked: object, **_options: object) -> _Pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def keyed(self, *_asked: object, **_options: object) -> _Pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def crossed(self, *_asked: object, **_options: object) -> _Pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def k_nearest(self, *_asked: object, **_options: object) -> _Pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def distances(
        self, x: np.ndarray, *_of: np.ndarray, **_options: object
    ) -> np.ndarray:
        return np.full(len(x), np.nan)

    def nearest(
        self, x: np.ndarray, _y: np.ndarray, _feature: np.ndarray
    ) -> np.ndarray:
        return np.full((2, len(x)), np.nan)

    def values(self, _column: str) -> pa.Array:
        return pa.nulls(0, pa.string())

    def rows(self, _feature: np.ndarray) -> None:
        return None
