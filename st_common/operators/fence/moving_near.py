"""Which objects are near to a region that goes with another: out of it, by no more than the hysteresis (SPEC X3).

+-----------+
|     f     |---- 30 m ----o        near with hysteresis = 30 m or more, whichever of the two has moved
+-----------+
"""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.skeleton.world import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Pairs of a focal object and another one: `x`, `y` are the places of those, `focal_x`, `focal_y` of these."""

    focal_x: np.ndarray
    focal_y: np.ndarray
    x: np.ndarray
    y: np.ndarray


def near_circles(
    table: Table, row: np.ndarray, apart: Apart, margin_m: np.ndarray, *, space: Space
) -> np.ndarray:
    """Whether each object is at most so far from the circle in that row of the table; bool[n]."""
    reach = table.radius[row] + margin_m
    return np.asarray(
        space.is_within(apart.focal_x, apart.focal_y, apart.x, apart.y, reach)
    )


def near_boxes(
    table: Table, row: np.ndarray, apart: Apart, margin_m: np.ndarray, *, space: Space
) -> np.ndarray:
    """Whether each object is at most so far from the rectangle in that row of the table; bool[n].

    What is measured is how far the object is from the place of the rectangle with the nearest longitude and latitude:
    exact on planes; on degrees more than the distance by at most 0.1 % up to 85 degrees and some kilometres.
    """
    wide, high = table.width[row] / 2, table.height[row] / 2
    across, along = space.scale(apart.focal_y)
    wide = np.where(table.metres[row], wide / across, wide)
    high = np.where(table.metres[row], high / along, high)
    aside = space.shortest(apart.x - apart.focal_x)
    nearest_x = apart.focal_x + np.clip(aside, -wide, wide)
    nearest_y = np.clip(apart.y, apart.focal_y - high, apart.focal_y + high)
    return np.asarray(space.is_within(nearest_x, nearest_y, apart.x, apart.y, margin_m))


NEAR = {"moving_circle": near_circles, "moving_box": near_boxes}
"""By kind of region."""
