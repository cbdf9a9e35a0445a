"""The filters `geojson`, `geojson_near`, `geojson_strict`: a geometry or a property, and how near in joins (B12)."""

from functools import lru_cache

import numpy as np
import shapely

from st_common.operators.expressions.filters.property import PropertyFilter
from st_common.operators.expressions.filters.protocol import Bools, Features, Fixes
from st_common.operators.expressions.filters.wkt import meeting
from st_common.query.filters import is_geojson

_property = PropertyFilter()


class GeojsonFilter:
    """Passes all without a value; with `{..}` what really meets that geometry or feature; else as `property`."""

    def filter_fixes(self, fixes: Fixes, value: str | None) -> Bools:
        """Which fixes meet the geometry, or have the property; bool[n].

        Args:
            fixes: n fixes.
            value: None: all pass; GeoJSON, or `name:value` for a property.
        """
        if value is None:
            return np.ones(len(fixes), np.bool_)
        if is_geojson(value):
            return meeting(_read(value), fixes)
        return _property.filter_fixes(fixes, value)

    def filter_pairs(
        self, fixes: Fixes, features: Features, value: str | None
    ) -> Bools:
        """Which fixes meet the geometry, or which pairs have the property on at least one side; bool[n].

        Args:
            fixes: n fixes.
            features: the feature that each is joined with; asked for a property alone.
            value: as `filter_fixes` takes it.
        """
        if value is None or is_geojson(value):
            return self.filter_fixes(fixes, value)
        return _property.filter_pairs(fixes, features, value)


class NearFilter(GeojsonFilter):
    """The same, and of a join only fixes within a distance of their feature, whatever their boxes meet."""

    def filter_pairs(
        self, fixes: Fixes, features: Features, value: str | None
    ) -> Bools:
        """Which pairs `geojson` lets through, whose fix is at most `features.within` away; bool[n]."""
        x, y = fixes.readings.x, fixes.readings.y
        far = features.layer.distances(x, y, features.feature)
        near: Bools = far <= features.within
        return near & super().filter_pairs(fixes, features, value)


class StrictFilter(GeojsonFilter):
    """The same, and of a join only fixes that lie on their feature, whatever their boxes meet."""

    def filter_pairs(
        self, fixes: Fixes, features: Features, value: str | None
    ) -> Bools:
        """Which pairs `geojson` lets through, whose fix has a point in common with the feature; bool[n]."""
        assert features.rows is not None  # noqa: S101 - it is one of `filters.WHOLE`
        shapes = shapely.from_wkb(features.rows["geometry"].to_numpy())
        meets = shapely.intersects_xy(shapes, fixes.readings.x, fixes.readings.y)
        return np.asarray(meets) & super().filter_pairs(fixes, features, value)


@lru_cache(maxsize=1 << 10)
def _read(value: str) -> shapely.Geometry:
    shape = shapely.from_geojson(value)
    shapely.prepare(shape)
    return shape
