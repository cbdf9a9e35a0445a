"""Holes that lie outside of their area: no holes, and no areas either."""

import numpy as np
import numpy.typing as npt
import shapely

Geometries = npt.NDArray[np.object_]
Mask = npt.NDArray[np.bool_]
_POLYGONS = (3, 6)  # type ids: Polygon, MultiPolygon


def without_outer_holes(geometries: Geometries) -> tuple[Geometries, Mask]:
    """The geometries without each hole that has no point in common with its shell, and which had one.

        shell 0 0, 2 2; holes .5 .5, 1 1 and 5 5, 6 6   ->   the first hole alone

    What makes geometries valid would take such a hole for another area. Collections are left as they are.

    Args:
        geometries: object[n], Shapely geometries; None for none.
    """
    of_areas = np.flatnonzero(np.isin(shapely.get_type_id(geometries), _POLYGONS))
    parts, owner = shapely.get_parts(geometries[of_areas], return_index=True)
    many = np.flatnonzero(shapely.get_num_interior_rings(parts) > 0)
    had = np.zeros(len(geometries), bool)
    result = geometries.copy()
    for part in many:
        kept = _holes_within(parts[part])
        if kept is None:
            continue
        parts[part] = kept
        had[of_areas[owner[part]]] = True
    for row in np.flatnonzero(had[of_areas]):
        mine = parts[owner == row]
        one = shapely.get_type_id(geometries[of_areas[row]]) == _POLYGONS[0]
        result[of_areas[row]] = mine[0] if one else shapely.multipolygons(mine)
    return result, had


def _holes_within(polygon: shapely.Geometry) -> shapely.Geometry | None:
    """The polygon with those of its holes that touch its shell; None: all do."""
    shell = shapely.get_exterior_ring(polygon)
    rings, _ = shapely.get_rings(polygon, return_index=True)
    holes = rings[1:]
    area, inner = (
        shapely.make_valid(shapely.polygons(one), method="structure")
        for one in (shell, holes)
    )
    within = shapely.intersects(area, inner)
    return None if within.all() else shapely.polygons(shell, holes[within])
