"""Longitudes in degrees: a turn has 360 of them, and what lies beyond 180 is what lies behind -180.

```
         170        180 = -180       -170
    ------|------------|--------------|------>  east
          x                  reach of x, also written -190 .. -170 : a turn less
```
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TURN = 360.0
HALF_TURN = 180.0
POLE = 90.0


def shortest(way: Floats) -> Floats:
    """Differences of longitudes the short way around, -180 to 180; float64[n], NaN stays.

    Those of at most half a turn are given back as they are, bit for bit.

    Example:
        350, -190, 10, 180, -180:  -10, 170, 10, 180, -180
    """
    beyond = np.abs(way) > HALF_TURN
    if not beyond.any():  # as nearly everywhere on Earth
        return way
    return np.where(beyond, way - np.copysign(TURN, way), way)


def turned(x: Floats) -> Floats:
    """The other number of each longitude, a turn away; float64[n].

    Example:
        175, -170, 0:  -185, 190, -360
    """
    return np.asarray(x - np.copysign(TURN, x))


def reaching_across(x: Floats, reach: Floats | float) -> Ints:
    """The places of those longitudes from which a reach goes beyond 180 degrees, on either side; int64, ascending.

    Args:
        x: float64[n], -180 to 180; NaN goes nowhere.
        reach: degrees, one for all or float64[n].

    Example:
        longitudes 179.5, 100, -179 with a reach of 1 degree:  place 0; -179 ends at -180, which is not beyond
    """
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(np.abs(x) + reach > HALF_TURN)


def is_between(x: Floats, west: Floats, east: Floats) -> Bools:
    """Whether longitudes lie from `west` eastwards to `east`, ends included; bool[n].

    Args:
        x: float64[n], -180 to 180.
        west: float64[n], not more than `east`. Both may be beyond 180 degrees, as of a box around an object.
        east: float64[n].

    Example:
        from 170 to 190:  179 and -179 do, 0 does not
    """
    keep: Bools = (x >= west) & (x <= east)
    keep |= x >= west + TURN
    keep |= x <= east - TURN
    keep |= east - west >= TURN
    return keep


def has_two_readings(side: Floats) -> Bools:
    """Whether sides, as differences of longitudes, may have been meant the other way around.

    They span more than half a turn. One of a whole turn has one reading: along the border of the map, as at the poles.
    """
    span = np.abs(side)
    return np.asarray((span > HALF_TURN) & (span < TURN))


def across_180(boxes: Floats) -> tuple[Floats, Ints]:
    """Boxes in degrees, with a second one a whole turn away for each that reaches 180 degrees.

    Also where it only touches it: a place at 180 may be written as one at -180. One that goes all around has every
    longitude. No point is in two boxes of one.

    Args:
        boxes: float64[n, 4] of minx, miny, maxx, maxy, not wrapped.

    Returns:
        float64[b, 4], the n boxes first; and int64[b], whose each is.

    Example:
        170 .. 190      170 .. 190 and -190 .. -170
        10 .. 20        10 .. 20
        -180 .. 180     all
    """
    boxes, owner = boxes.copy(), np.arange(len(boxes))
    with np.errstate(invalid="ignore"):
        whole = boxes[:, 2] - boxes[:, 0] >= TURN
    boxes[whole, 0::2] = [-np.inf, np.inf]
    west = np.flatnonzero(~whole & (boxes[:, 0] <= -HALF_TURN))
    east = np.flatnonzero(~whole & (boxes[:, 2] >= HALF_TURN))
    parts = [
        boxes,
        boxes[west] + [TURN, 0, TURN, 0],
        boxes[east] - [TURN, 0, TURN, 0],
    ]
    return np.concatenate(parts), np.concatenate([owner, west, east])
