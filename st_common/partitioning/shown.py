"""Regions as pictures draw them: by their first two dimensions."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.partitioning.regions import Regions, rectangles

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangles:
    """The rectangles in which regions lie, each once.

    Attributes:
        names: of each the regions in it, with commas between them.
        bounds: float64[n, 4] of minx, miny, maxx, maxy.
        rows: int64[n], what these regions held together when they were made.
    """

    names: list[str]
    bounds: Floats
    rows: Ints


def rectangles_of(regions: Regions, rows: Ints) -> Rectangles:
    """Regions by their first two dimensions, in the order of the first region of each rectangle.

    In one and two dimensions each region is a rectangle. In three and four, regions that differ in the others alone
    are one, and rectangles may overlap.

        x < 3, z < 5 (7 rows)    x < 3, z >= 5 (2 rows)    x >= 3 (4 rows)    ->    x < 3 (9 rows)    x >= 3 (4 rows)

    Args:
        regions: m regions.
        rows: int64[m], what each held.
    """
    bounds, first, number = np.unique(
        rectangles(regions), axis=0, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    rank = np.argsort(order)[number.ravel()]
    names: list[list[str]] = [[] for _ in order]
    for name, place in zip(regions.region_id, rank.tolist(), strict=True):
        names[place].append(name)
    return Rectangles(
        names=[", ".join(one) for one in names],
        bounds=bounds[order],
        rows=np.bincount(rank, weights=rows, minlength=len(order)).astype(np.int64),
    )
