"""Empty parts of geometries, which say nothing, and which GEOS cannot find a point on."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

Geometries = npt.NDArray[np.object_]
Mask = npt.NDArray[np.bool_]
_FIRST_OF_MANY, _LAST_OF_MANY = 4, 7  # type ids: MultiPoint to GeometryCollection
_OF_PARTS: Mapping[int, Callable[..., Any]] = {
    4: shapely.multipoints,
    5: shapely.multilinestrings,
    6: shapely.multipolygons,
    7: shapely.geometrycollections,
}


def without_empty_parts(geometries: Geometries) -> tuple[Geometries, Mask]:
    """The geometries without their empty parts, and which had some; one of nothing else is empty.

        MULTIPOLYGON (EMPTY, ((0 0, 1 0, 1 1, 0 0)))   ->   MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))

    Args:
        geometries: object[n], Shapely geometries; None for none.
    """
    kinds = shapely.get_type_id(geometries)
    of_parts = np.flatnonzero((kinds >= _FIRST_OF_MANY) & (kinds <= _LAST_OF_MANY))
    parts, owner = shapely.get_parts(geometries[of_parts], return_index=True)
    nested = shapely.get_type_id(parts) >= _FIRST_OF_MANY
    odd = np.unique(owner[shapely.is_empty(parts) | nested])
    had, result = np.zeros(len(geometries), bool), geometries.copy()
    for row in of_parts[odd]:
        inner = np.asarray(shapely.get_parts(geometries[row]))
        inner, mended = without_empty_parts(inner)
        full = ~shapely.is_empty(inner)
        if full.all() and not mended.any():
            continue
        had[row] = True
        result[row] = _OF_PARTS[int(kinds[row])](inner[full])
    return result, had
