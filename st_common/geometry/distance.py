"""Metres between points on WGS 84 and how far a distance reaches in degrees."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from st_common.geometry.longitudes import POLE, TURN

if TYPE_CHECKING:
    from pyproj import Geod

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_EQUATOR_M = 6_378_137.0
_FLATTENING = 1 / 298.257223563
_ECCENTRICITY_2 = _FLATTENING * (2 - _FLATTENING)
_TIGHTEST_M = _EQUATOR_M * (
    1 - _ECCENTRICITY_2
)  # the smallest radius of curvature: along the meridian at the equator
_OPPOSITE_M = 20_003_931.459  # between points that are opposite: half a meridian
_FAR_M, _DOUBT, _DOUBT_OPPOSITE = (
    15_000_000.0,
    3e-5,
    0.01,
)  # how wrong `metres_about` can be, and then some
# and by so much it is rounded, as at a pole, which has every longitude
_ROUNDED_M = 1e-8
_NOTHING = 1e-12  # the squared sine of an angle of some metres
_SAME = np.finfo(
    np.float64
).tiny  # less than an atom apart: what divides by it overflows
_SLACK = 1.001  # boxes of candidates are a little too large rather than a rounding error too small


def metres_per_degree(latitude: Floats) -> tuple[Floats, Floats]:
    """How long one degree of longitude and one of latitude are, in metres; float64[n] each (WGS 84).

    Good for small differences: over 1 km at 85 degrees, distances in the plane of these scales are right to 0.2 %.

    Args:
        latitude: float64[n], degrees.

    Example:
        latitude      0         60         85
        longitude   111,319    55,800     9,735
        latitude    110,574   111,412   111,685
    """
    angle = np.radians(latitude)
    shrink = 1 - _ECCENTRICITY_2 * np.sin(angle) ** 2
    across = _EQUATOR_M / np.sqrt(shrink)
    along = across * (1 - _ECCENTRICITY_2) / shrink
    return np.radians(across * np.cos(angle)), np.radians(along)


def metres_between(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    """The geodesic distance of points on WGS 84, in metres: right to a micrometre. NaN where a coordinate is.

    About 0.8 us for each pair: where only a limit matters `within_metres` is quicker.

    Args:
        x1: float64[n], longitude in degrees; `y1` is the latitude.
        y1: see `x1`.
        x2: float64[n], of the other point; `y2` likewise.
        y2: see `x2`.

    Example:
        Helsinki (24.9384, 60.1699) to Tallinn (24.7536, 59.4370):  82,307.766 m
    """
    return _geodesics(x1, y1, x2, y2)[_DISTANCE_M]


def degrees_between(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    """The direction in which the geodesic on WGS 84 from the first point to the second begins.

    Args:
        x1: float64[n], longitude in degrees; `y1` is the latitude.
        y1: see `x1`.
        x2: float64[n], of the other point; `y2` likewise.
        y2: see `x2`.

    Returns:
        Degrees from north to the east, from -180 to 180; any where both are one place, NaN where a coordinate is.

    Example:
        Helsinki (24.9384, 60.1699) to Tallinn (24.7536, 59.4370):  -172.68
    """
    return _geodesics(x1, y1, x2, y2)[_DEGREES]


def _geodesics(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> list[Floats]:
    """Of the geodesics between points: float64 arrays, at `_DEGREES` where each begins, at `_DISTANCE_M` its length."""
    x1, y1, x2, y2 = np.broadcast_arrays(x1, y1, x2, y2)
    told = _geod().inv(x1, y1, x2, y2, return_back_azimuth=False)
    return [np.asarray(one, np.float64) for one in told]


_DEGREES, _DISTANCE_M = 0, 2


def within_metres(
    x1: Floats, y1: Floats, x2: Floats, y2: Floats, limit_m: Floats | float
) -> Bools:
    """Whether the points of each pair are at most so far apart: as `metres_between` says, but quicker; bool[n].

    What a formula clearly decides is not measured. NaN is near to nothing.

    Args:
        x1: float64[n], longitude in degrees; `y1` is the latitude.
        y1: see `x1`.
        x2: float64[n], of the other point; `y2` likewise.
        y2: see `x2`.
        limit_m: metres, one for all or float64[n]; closed.
    """
    limit = np.broadcast_to(limit_m, np.shape(x1))
    about = metres_about(x1, y1, x2, y2)
    with np.errstate(invalid="ignore"):
        is_within: Bools = about <= limit
        share = np.where(about < _FAR_M, _DOUBT, _DOUBT_OPPOSITE)
        doubt = np.abs(about - limit) <= about * share + _ROUNDED_M
    left = np.flatnonzero(doubt)
    is_within[left] = (
        metres_between(x1[left], y1[left], x2[left], y2[left]) <= limit[left]
    )
    return is_within


@cache
def _geod() -> "Geod":
    from pyproj import Geod  # slow to import, and not needed in the plane

    return Geod(ellps="WGS84")


def metres_about(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    """The geodesic distance right to 0.0013 %, beyond 15,000 km to 0.5 %; a fifth of the time of `metres_between`.

    Source: Andoyer's and Lambert's formula, as in J. Meeus, Astronomical Algorithms, chapter 11.

    Args:
        x1: float64[n], longitude in degrees; `y1` is the latitude.
        y1: see `x1`.
        x2: float64[n], of the other point; `y2` likewise.
        y2: see `x2`.

    Example:
        Helsinki to Tallinn:  82,308.140 m, 37 cm more than there are
    """
    middle, half = np.radians((y1 + y2) / 2), np.radians((y1 - y2) / 2)
    turn = np.radians((x1 - x2) / 2)
    sin_half, cos_half = np.sin(half) ** 2, np.cos(half) ** 2
    sin_middle, cos_middle = np.sin(middle) ** 2, np.cos(middle) ** 2
    sin_turn, cos_turn = np.sin(turn) ** 2, np.cos(turn) ** 2
    near = sin_half * cos_turn + cos_middle * sin_turn
    far = cos_half * cos_turn + sin_middle * sin_turn
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        angle = np.arctan(np.sqrt(near / far))
        ratio = np.sqrt(near * far) / angle
        flat = (3 * ratio - 1) / (2 * far) * sin_middle * cos_half
        flat -= (3 * ratio + 1) / (2 * near) * cos_middle * sin_half
        metres = 2 * angle * _EQUATOR_M * (1 + _FLATTENING * flat)
    return np.where(near < _SAME, 0.0, np.where(far < _NOTHING, _OPPOSITE_M, metres))


def reach_degrees(
    latitude: Floats, distance_m: Floats | float
) -> tuple[Floats, Floats]:
    """How far points within a distance can lie apart in longitude and in latitude: never too little, in degrees.

    Args:
        latitude: float64[n], degrees.
        distance_m: metres, one for all or float64[n].

    Returns:
        Two arrays of float64[n]: longitude (360 where the distance reaches around a pole), and latitude.

    Example:
        1 km at latitude 0, 60, 89.999:  0.0091, 0.0181, 360 of longitude; 0.0091 of latitude
    """
    angle = distance_m / _TIGHTEST_M * _SLACK
    room = np.cos(np.radians(np.minimum(np.abs(latitude), POLE)))
    share = np.sin(np.minimum(angle, np.pi / 2)) / np.maximum(room, 1e-12)
    short_of_pole = np.abs(latitude) + np.degrees(angle) < POLE
    across = np.where(
        (share < 1) & short_of_pole,
        np.degrees(np.arcsin(np.minimum(share, 1.0))) * _SLACK,
        TURN,
    )
    return across, np.broadcast_to(np.degrees(angle), across.shape).copy()
