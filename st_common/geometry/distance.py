"""Metres between points on WGS 84 and how far a distance reaches in degrees."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_EQUATOR_M = 6_378_137.0
_FLATTENING = 1 / 298.257223563
_ECCENTRICITY_2 = _FLATTENING * (2 - _FLATTENING)
_TIGHTEST_M = _EQUATOR_M * (1 - _ECCENTRICITY_2)  # the smallest radius of curvature: along the meridian at the equator
_OPPOSITE_M = 20_003_931.459  # between points that are opposite: half a meridian
_NOTHING = 1e-12  # the squared sine of an angle of some metres
_SLACK = 1.001  # boxes of candidates are a little too large rather than a rounding error too small


def metres_per_degree(latitude: Floats) -> tuple[Floats, Floats]:
    """How long one degree of longitude and one of latitude are at these latitudes (degrees), in metres.

    Good for small differences: over 1 km at 85 degrees, distances in the plane of these scales are right to 0.2 %.
    """
    angle = np.radians(latitude)
    shrink = 1 - _ECCENTRICITY_2 * np.sin(angle) ** 2
    across = _EQUATOR_M / np.sqrt(shrink)
    along = across * (1 - _ECCENTRICITY_2) / shrink
    return np.radians(across * np.cos(angle)), np.radians(along)


def metres_between(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    """The geodesic distance of points given as longitude and latitude in degrees, in metres.

    Right to 0.01 %, between points that are nearly opposite on the globe to 0.5 %. Source: Andoyer's and Lambert's
    formula, as in J. Meeus, Astronomical Algorithms, chapter 11.
    """
    middle, half = np.radians((y1 + y2) / 2), np.radians((y1 - y2) / 2)
    turn = np.radians((x1 - x2) / 2)
    sin_half, cos_half = np.sin(half) ** 2, np.cos(half) ** 2
    sin_middle, cos_middle = np.sin(middle) ** 2, np.cos(middle) ** 2
    sin_turn, cos_turn = np.sin(turn) ** 2, np.cos(turn) ** 2
    near = sin_half * cos_turn + cos_middle * sin_turn
    far = cos_half * cos_turn + sin_middle * sin_turn
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arctan(np.sqrt(near / far))
        ratio = np.sqrt(near * far) / angle
        flat = (3 * ratio - 1) / (2 * far) * sin_middle * cos_half
        flat -= (3 * ratio + 1) / (2 * near) * cos_middle * sin_half
        metres = 2 * angle * _EQUATOR_M * (1 + _FLATTENING * flat)
    return np.where(near == 0, 0.0, np.where(far < _NOTHING, _OPPOSITE_M, metres))


def reach_degrees(latitude: Floats, distance_m: Floats | float) -> tuple[Floats, Floats]:
    """How far points within a distance can lie apart in longitude and in latitude: never too little, in degrees.

    360 degrees of longitude where the distance reaches around a pole. The distance is one for all or one for each.
    """
    angle = distance_m / _TIGHTEST_M * _SLACK
    room = np.cos(np.radians(np.minimum(np.abs(latitude), 90.0)))
    share = np.sin(np.minimum(angle, np.pi / 2)) / np.maximum(room, 1e-12)
    across = np.where(share < 1, np.degrees(np.arcsin(np.minimum(share, 1.0))) * _SLACK, 360.0)
    return across, np.broadcast_to(np.degrees(angle), across.shape).copy()


def grown(boxes: Floats, distance_m: float, *, geographic: bool) -> Floats:
    """Boxes (float64[n, 4]) that hold every point within a distance of the given ones, and some more.

    `geographic` boxes are in degrees; others are in the unit of the distance.
    """
    if not geographic:
        return boxes + distance_m * np.array([-1.0, -1.0, 1.0, 1.0])
    across, along = reach_degrees(np.abs(boxes[:, 1::2]).max(axis=1, initial=0.0), distance_m)
    growth: Floats = np.stack([-across, -along, across, along], axis=1)
    return boxes + growth
