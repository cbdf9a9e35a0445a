"""Which areas contain which points: many polygons at once, each prepared once by its text."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.grid import BoxIndex

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints]

_MOST_KEPT = 1 << 16
_kept: dict[str, shapely.Geometry] = {}


class AreaIndex:
    """Finds the areas that contain points, borders included, exactly; immutable, built once for a set of areas.

    Boxes rule most pairs out; the rest is asked of prepared geometries (`shapely.intersects_xy`), area by area.

    Args:
        wkts: polygons or multipolygons as WKT, in the points' coordinates. The same text is prepared once only; an
            empty area contains nothing. 180 degrees of longitude is not crossed.
    """

    __slots__ = ("_areas", "_boxes", "size")

    def __init__(self, wkts: Sequence[str]) -> None:
        self.size = len(wkts)
        self._areas = prepared(wkts)
        self._boxes = BoxIndex(shapely.bounds(self._areas).reshape(-1, 4))

    def probe(self, x: Floats, y: Floats) -> Pairs:
        """All pairs of a point and an area that contains it.

        Args:
            x: float64[m], any values; NaN and infinity lie in no area.
            y: float64[m].

        Returns:
            `(point_idx, area_idx)`, int64, sorted by point, then area; each pair once.
        """
        point, area = self._boxes.probe(x, y)
        order = np.argsort(
            area, kind="stable"
        )  # one area after the other: its tree stays in the processor's cache
        inside = np.empty(len(order), np.bool_)
        inside[order] = shapely.intersects_xy(
            self._areas[area[order]], x[point[order]], y[point[order]]
        )
        return point[inside], area[inside]


def prepared(wkts: Sequence[str]) -> npt.NDArray[np.object_]:
    """The geometries of texts, prepared, in their order; object[n].

    The newest texts are kept, for ticks ask for the same ones again and again: parsing costs far more than a look-up.

    Args:
        wkts: WKT of any type, repeats allowed.
    """
    new = list(dict.fromkeys(wkt for wkt in wkts if wkt not in _kept))
    made = shapely.from_wkt(np.array(new, dtype=object))
    shapely.prepare(made)
    known = _kept | dict(zip(new, made, strict=True))
    _kept.update(dict(zip(new, made, strict=True)))
    for wkt in list(_kept)[: max(len(_kept) - _MOST_KEPT, 0)]:
        del _kept[wkt]
    geometries = np.empty(len(wkts), dtype=object)
    geometries[:] = [known[wkt] for wkt in wkts]
    return geometries
