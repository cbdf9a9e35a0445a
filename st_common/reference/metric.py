"""How far places are from each other: in a plane, or on WGS 84 by PROJ's geodesics; and what that leaves in doubt."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyproj import Geod

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
"""Texts and other values; None is null."""
Point = tuple[float, float]

MEASURED = 1e-9
"""The share by which two ways to measure a geodesic may differ."""
SCALED = 2e-4
"""The share by which metres may differ that are found by the length of a degree, or summed along a way."""
_NEAR_M, _FAR = 1_000.0, 5e-3
"""From which distance on a plane that touches the globe may be wrong by more than SCALED, and by which share then."""
_ROUNDED_M, _CLEAR_M = 1e-6, 0.01
_GEOD = Geod(ellps="WGS84")
_A_M, _E2 = 6378137.0, 0.00669437999014  # of WGS 84: half the larger axis, eccentricity


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Two masks: who surely is one, and who is one or may be, for a distance is too near to a limit to tell.

    Where there is no doubt they are equal.
    """

    sure: Bools
    maybe: Bools

    def __and__(self, other: "Members") -> "Members":
        return Members(sure=self.sure & other.sure, maybe=self.maybe & other.maybe)

    def take(self, which: Ints) -> "Members":
        """Those of some rows."""
        return Members(sure=self.sure[which], maybe=self.maybe[which])

    def __invert__(self) -> "Members":
        return Members(sure=~self.maybe, maybe=~self.sure)


def certain(mask: Bools) -> Members:
    """What leaves no doubt."""
    return Members(sure=mask, maybe=mask)


def everyone(count: int) -> Members:
    """All of so many."""
    return certain(np.ones(count, np.bool_))


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A plane (`is_flat`) in whatever unit, or degrees on WGS 84 with distances in metres.

    With `doubts` what is nearer to a limit than two ways to measure may differ is in doubt; in a plane nothing is.
    """

    is_flat: bool
    doubts: bool = False

    def distance(
        self, x: Floats, y: Floats, to_x: Floats | float, to_y: Floats | float
    ) -> Floats:
        """How far pairs of places are from each other, f64[n]; NumPy broadcasts."""
        if self.is_flat:
            return np.sqrt(self.rank(x, y, to_x, to_y))
        ends = [np.array(one) for one in np.broadcast_arrays(x, y, to_x, to_y)]
        _, _, metres = _GEOD.inv(ends[0], ends[1], ends[2], ends[3])
        return np.asarray(metres)

    def rank(
        self, x: Floats, y: Floats, to_x: Floats | float, to_y: Floats | float
    ) -> Floats:
        """What distances are compared by: squares in the plane, whole millimetres on degrees; equal ones are ties."""
        if self.is_flat:
            dx, dy = x - to_x, y - to_y
            return np.asarray(dx * dx + dy * dy)
        return np.round(self.distance(x, y, to_x, to_y), 3)

    def is_within(
        self,
        x: Floats,
        y: Floats,
        to_x: Floats | float,
        to_y: Floats | float,
        limit: float,
    ) -> Members:
        """Which pairs of places are at most `limit` from each other."""
        if self.is_flat:
            return certain(self.rank(x, y, to_x, to_y) <= limit * limit)
        return self.at_most(self.distance(x, y, to_x, to_y), limit)

    def at_most(self, metres: Floats, limit: float, share: float = MEASURED) -> Members:
        """Which distances are at most `limit`; who is at the place itself surely is.

        Others may have measured so that a distance differs by a `share`.
        """
        if not self.doubts:
            return certain(metres <= limit)
        slack = limit * share + _ROUNDED_M
        sure = (metres <= limit - slack) | (metres == 0)
        return Members(sure=sure, maybe=metres <= limit + slack)

    def at_most_from_shape(self, metres: Floats, limit: float) -> Members:
        """Which distances from shapes are at most `limit`: engines find them in a plane that is good to some km."""
        return self.at_most(metres, limit, SCALED if limit <= _NEAR_M else _FAR)

    def doubt_of_shape(self, metres: Floats) -> Floats:
        """By how much distances from shapes may be found larger or smaller in another way, f64[n]."""
        if not self.doubts:
            return np.zeros(len(metres))
        return metres * np.where(metres <= _NEAR_M, SCALED, _FAR) + _ROUNDED_M

    def slack(self, rank: Floats | float) -> Floats:
        """How far from such a rank others may lie that another way to measure takes for equal, or for the other."""
        if not self.doubts:
            return np.zeros(np.shape(rank))
        return np.asarray(rank * MEASURED + _CLEAR_M)

    def shortest(self, way: Floats) -> Floats:
        """Differences of x; on degrees the short way around."""
        if self.is_flat:
            return way
        return np.where(np.abs(way) > 180, way - np.copysign(360.0, way), way)

    @property
    def turns(self) -> tuple[float, ...]:
        """What may be added to x so that it still is the same place."""
        return (0.0,) if self.is_flat else (0.0, -360.0, 360.0)

    @property
    def scale_doubt(self) -> float:
        """The share by which lengths may be wrong that `scale` has turned into coordinates."""
        return SCALED if self.doubts else 0.0

    def scale(self, y: Floats) -> tuple[Floats, Floats]:
        """How long a unit of x and one of y are there: on degrees metres, by the radii of curvature of WGS 84."""
        y = np.asarray(y, np.float64)
        if self.is_flat:
            return np.ones(y.shape), np.ones(y.shape)
        flattened = 1 - _E2 * np.sin(np.radians(y)) ** 2
        across = _A_M / np.sqrt(flattened) * np.cos(np.radians(y))
        along = _A_M * (1 - _E2) / flattened**1.5
        return np.radians(across), np.radians(along)
