"""What a fix says of its object beside the fixes before it in the same stay: how fast it went, and where to.

fix         (0, 0) at 0 s     (3, 4) at 1 s              (3, 16) at 3 s
says        nothing           5 m/s, 36.9 deg            6 m/s, 0 deg, 0.5 m/s more in a second
"""

from dataclasses import dataclass

import numpy as np
from pyproj import Geod

from st_common.reference.metric import Floats, Ints, Metric

_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Columns of one length, NaN where no fix is before, or not two; a heading is from north to the east."""

    elapsed_s: Floats
    speed_mps: Floats
    heading_deg: Floats
    acceleration_mps2: Floats


def motion_of(x: Floats, y: Floats, event_us: Ints, before: Ints, by: Metric) -> Motion:
    """The motion of fixes; `before` is the place of the one before in the same stay, -1 without one."""
    own = np.flatnonzero(before >= 0)
    was = before[own]
    elapsed_s, speed, heading, change = np.full((4, len(before)), np.nan)
    elapsed_s[own] = (event_us[own] - event_us[was]) / 1e6
    far, heading[own] = between(x[was], y[was], x[own], y[own], by)
    speed[own] = far / elapsed_s[own]
    change[own] = (speed[own] - speed[was]) / elapsed_s[own]
    return Motion(
        elapsed_s=elapsed_s,
        speed_mps=speed,
        heading_deg=heading,
        acceleration_mps2=change,
    )


def between(
    x: Floats, y: Floats, to_x: Floats, to_y: Floats, by: Metric
) -> tuple[Floats, Floats]:
    """How far other places are and in which direction, NaN where that is the same place."""
    if by.is_flat:
        far = by.distance(x, y, to_x, to_y)
        angle = 90.0 - np.degrees(np.arctan2(to_y - y, to_x - x))
    else:
        angle, _, far = _GEOD.inv(x, y, to_x, to_y)
    return np.asarray(far), np.where(far == 0, np.nan, np.mod(angle, 360.0))
