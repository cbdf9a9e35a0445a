"""In which direction one place lies from another: degrees from north to the east, from 0 to before 360.

       0
       |
270 ---+--- 90          NaN where both are one place, or one of them is nowhere
       |
      180
"""

import numpy as np

from st_common.geometry.distance import Bools, Floats, degrees_between, metres_between


def bearing_on_plane(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    """The direction of the second place of each pair in a plane whose y points north; float64[n]."""
    angle = np.degrees(np.arctan2(x2 - x1, y2 - y1))
    return _turned_once(angle, is_one_place=(x1 == x2) & (y1 == y2))


def bearing_on_globe(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    """The direction in which the geodesic on WGS 84 begins; x is longitude, y latitude in degrees. float64[n]."""
    angle = degrees_between(x1, y1, x2, y2)
    return _turned_once(angle, is_one_place=metres_between(x1, y1, x2, y2) == 0)


def _turned_once(angle: Floats, *, is_one_place: Bools) -> Floats:
    turned = np.mod(angle, 360.0)
    # What is less than 0 by next to nothing is rounded up to a whole turn.
    return np.where(is_one_place, np.nan, np.where(turned >= 360.0, 0.0, turned))
