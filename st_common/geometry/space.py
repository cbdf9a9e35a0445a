"""The two spaces in which objects move: a plane, and the globe; and all that differs between them.

Whoever asks how far, how near, how wide asks the space that he was given: `PLANE` or `GLOBE`. Nobody else knows
whether coordinates are degrees.

    | of two places     | on the plane             | on the globe                                   |
    |-------------------|--------------------------|------------------------------------------------|
    | `distance`        | in the plane's unit      | metres of the geodesic                         |
    | `rank`            | dx * dx + dy * dy        | the same metres to the millimetre              |
    | `rank_about`      | the rank                 | a formula, a fifth of the time; see `surely`   |
    | `measure(rank)`   | its root                 | the rank                                       |

Ranks order pairs of places as distances do, and equal ranks are ties: in the plane no root is taken, so that nothing is
rounded; on the globe what is less than a millimetre apart is the same.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from st_common.geometry import longitudes
from st_common.geometry.distance import (
    degrees_between,
    metres_about,
    metres_between,
    metres_per_degree,
    reach_degrees,
    within_metres,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64 | np.int64 | np.bool_]  # as texts were read
Axes = tuple[Floats, Floats]  # along x, along y

_GROWTH, _SMALLEST = 1 + 1e-12, 1e-150  # of squares and roots; less has no square
_ROUNDED_M = 0.001
_FAR_M, _SURELY, _SURELY_FAR = (
    14_000_000.0,
    1 + 1e-4,
    1.03,
)  # more than `metres_about` can be wrong, twice
_FLATTEST_M = 6_399_594.0 * 1.0005  # no radian of the globe is longer
_LOST_CHORD_2 = 1e-14  # more than rounding can take from 2 - 2 * cosine
_NEXT_TO_POLE_M = (
    1e-3  # of a degree of longitude: a fraction of a millimetre from the pole
)


class Space(ABC):
    """What coordinates mean. x and y are arrays of one shape, or of shapes that NumPy broadcasts; NaN is nowhere.

    Attributes:
        is_flat: whether distances are those of the plane, and every number is a coordinate.
        about_is_exact: whether `rank_about` is the rank itself, so that nothing need be measured after it.
        farthest: the largest x and y of a place, either way.
        decimals: how many of a sum of distances count; beyond them sums are equal.
        growth: by what factor rounding can make a distance, or a sum of some, longer than it is from the other end.
        rounding: more than what rounding to `decimals` can add.
    """

    is_flat: ClassVar[bool]
    about_is_exact: ClassVar[bool]
    farthest: ClassVar[tuple[float, float]]
    decimals: ClassVar[int]
    growth: ClassVar[float]
    rounding: ClassVar[float]
    _name: ClassVar[str]

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name  # there is one of each, in every process

    # --- how far two places are from each other

    @abstractmethod
    def distance(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """The distances of pairs of places: in metres, or in the unit of the plane; NaN where a coordinate is.

        Example:
            (0, 0) and (3, 4) on the plane: 5; a degree of latitude from the equator on: 110,574.389 m
        """

    @abstractmethod
    def bearing(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """In which direction the second place of each pair lies from the first (see `bearings`)."""

    @abstractmethod
    def unrounded(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """Ranks before they are rounded, of which sums are made: 110574.3885578 where the rank is 110574.389."""

    @abstractmethod
    def rounded(self, rank: Floats) -> Floats:
        """What ranks are when those that count as equal are."""

    def rank(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """What the distances of pairs of places are compared by; NaN where a coordinate is.

        Example:
            (0, 0) and (3, 4) on the plane: 25; a degree of latitude from the equator on: 110574.389
        """
        return self.rounded(self.unrounded(x1, y1, x2, y2))

    @abstractmethod
    def measure(self, rank: Floats) -> Floats:
        """Ranks as distances."""

    @abstractmethod
    def radius_of(self, rank: Floats) -> Floats:
        """Radii that surely hold every place of at most these ranks: never too small, larger by a rounding error."""

    @abstractmethod
    def is_within(
        self,
        x1: Floats,
        y1: Floats,
        x2: Floats,
        y2: Floats,
        radius: Floats | float,
    ) -> Bools:
        """Whether the places of each pair are at most so far apart, exactly; NaN is near to nothing.

        Args:
            x1: of one place; `y1` likewise.
            y1: see `x1`.
            x2: of the other; `y2` likewise.
            y2: see `x2`.
            radius: metres or the unit of the plane, one for all or one for each; closed.
        """

    # --- the same with little work, where only a limit matters

    @abstractmethod
    def rank_about(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        """Ranks as a cheap formula finds them; `surely` says how wrong they may be.

        Example:
            a degree of latitude from the equator on:  110573.138, where the rank is 110574.389
        """

    @abstractmethod
    def surely(self, limit: Floats) -> Floats:
        """What `rank_about` does not exceed for a pair whose rank, measured or about, is at most the limit."""

    @abstractmethod
    def vectors(self, x: Floats, y: Floats) -> Floats:
        """Places as vectors for trees, float64[.., d]: whose vector is nearer is nearer, but for small errors.

        On the plane they are (x, y), on the globe unit vectors: 90 degrees east on the equator is (0, 1, 0).
        """

    @abstractmethod
    def rank_of_chord(self, chord: Floats) -> Floats:
        """Ranks that places do not exceed whose vectors are so far from each other."""

    @abstractmethod
    def squared_chords(self, x: Floats, y: Floats) -> Floats:
        """How far the vectors of n places are from each other, squared, all with all, and never too little.

        From float64[t, n] at t moments float64[t, n, n]; where a coordinate is NaN, anything.
        """

    # --- how wide what is around a place

    @abstractmethod
    def reach(self, y: Floats, distance: Floats | float) -> Axes:
        """How far, along x and along y, places can lie within a distance of one at y: in coordinates, never too little.

        A whole turn of longitude where the distance reaches around a pole. It is one for all, or one for each.
        """

    @abstractmethod
    def scale(self, y: Floats) -> Axes:
        """Units of distance per unit of x and of y at these y, for small differences: metres per degree.

        Never nothing: at a pole every longitude is near.

        Example:
            at 60 degrees:  55,800 and 111,412; on the plane 1 and 1
        """

    # --- which numbers are places

    @abstractmethod
    def contains(self, x: Numbers, y: Numbers) -> Bools:
        """Whether numbers are coordinates of a place: finite, and within `farthest`."""

    @abstractmethod
    def wrap(self, boxes: Floats) -> tuple[Floats, Ints]:
        """Boxes (float64[n, 4]) as places see them, and whose each is: what reaches over an edge goes on behind it.

        No place is in two boxes of one.
        """

    @abstractmethod
    def reaching_across(self, x: Floats, reach: Floats | float) -> Ints:
        """The places of those x that are near to what has another number there, a turn away; int64, none on the plane.

        Args:
            x: longitudes.
            reach: how near, in the same unit, one for all or one for each.
        """

    @abstractmethod
    def shortest(self, way: Floats) -> Floats:
        """Differences along x the short way around; NaN stays."""

    @abstractmethod
    def is_between(self, x: Floats, west: Floats, east: Floats) -> Bools:
        """Whether x lies from `west` to `east`, ends included, also where these lie over the edge."""


class _Plane(Space):
    """Coordinates in one unit of length, whatever it is."""

    is_flat = True
    about_is_exact = True
    farthest = (np.inf, np.inf)
    decimals = 9
    growth = 1 + 1e-9
    rounding = 1e-8
    _name = "PLANE"

    def distance(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return np.asarray(np.hypot(x2 - x1, y2 - y1))

    def bearing(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return bearing_on_plane(x1, y1, x2, y2)

    def unrounded(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            dx, dy = x1 - x2, y1 - y2
            return np.asarray(dx * dx + dy * dy)

    def rounded(self, rank: Floats) -> Floats:
        return rank

    def measure(self, rank: Floats) -> Floats:
        return np.sqrt(rank)

    def radius_of(self, rank: Floats) -> Floats:
        return np.sqrt(rank) * _GROWTH + _SMALLEST

    def is_within(
        self,
        x1: Floats,
        y1: Floats,
        x2: Floats,
        y2: Floats,
        radius: Floats | float,
    ) -> Bools:
        with np.errstate(over="ignore", invalid="ignore"):
            dx, dy = x1 - x2, y1 - y2
            return np.asarray(dx * dx + dy * dy <= radius * radius)

    def rank_about(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return self.unrounded(x1, y1, x2, y2)

    def surely(self, limit: Floats) -> Floats:
        return limit

    def vectors(self, x: Floats, y: Floats) -> Floats:
        return np.stack([x, y], axis=-1)

    def rank_of_chord(self, chord: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return chord * chord * _GROWTH

    def squared_chords(self, x: Floats, y: Floats) -> Floats:
        return self.unrounded(x[:, :, None], y[:, :, None], x[:, None], y[:, None])

    def reach(self, y: Floats, distance: Floats | float) -> Axes:
        far = np.broadcast_to(
            distance, np.broadcast_shapes(y.shape, np.shape(distance))
        )
        return far, far

    def scale(self, y: Floats) -> Axes:
        ones = np.ones(y.shape)
        return ones, ones

    def contains(self, x: Numbers, y: Numbers) -> Bools:
        return np.asarray(np.isfinite(x) & np.isfinite(y))

    def wrap(self, boxes: Floats) -> tuple[Floats, Ints]:
        return boxes, np.arange(len(boxes))

    def reaching_across(
        self,
        x: Floats,  # noqa: ARG002 - nothing is over an edge
        reach: Floats | float,  # noqa: ARG002
    ) -> Ints:
        return np.empty(0, np.int64)

    def shortest(self, way: Floats) -> Floats:
        return way

    def is_between(self, x: Floats, west: Floats, east: Floats) -> Bools:
        return np.asarray((x >= west) & (x <= east))


class _Globe(Space):
    """Longitude and latitude in degrees on WGS 84, distances in metres."""

    is_flat = False
    about_is_exact = False
    farthest = (longitudes.HALF_TURN, longitudes.POLE)
    decimals = 3
    growth = 1 + 1e-6
    rounding = 0.01
    _name = "GLOBE"

    def distance(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return metres_between(x1, y1, x2, y2)

    def bearing(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return bearing_on_globe(x1, y1, x2, y2)

    def unrounded(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return metres_between(x1, y1, x2, y2)

    def rounded(self, rank: Floats) -> Floats:
        return np.round(rank, self.decimals)

    def measure(self, rank: Floats) -> Floats:
        return rank

    def radius_of(self, rank: Floats) -> Floats:
        return rank + _ROUNDED_M

    def is_within(
        self,
        x1: Floats,
        y1: Floats,
        x2: Floats,
        y2: Floats,
        radius: Floats | float,
    ) -> Bools:
        return within_metres(x1, y1, x2, y2, radius)

    def rank_about(self, x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
        return metres_about(x1, y1, x2, y2)

    def surely(self, limit: Floats) -> Floats:
        return limit * np.where(limit < _FAR_M, _SURELY, _SURELY_FAR) + _ROUNDED_M

    def vectors(self, x: Floats, y: Floats) -> Floats:
        lon, lat = np.radians(x), np.radians(y)
        across = np.cos(lat)
        return np.stack(
            [across * np.cos(lon), across * np.sin(lon), np.sin(lat)], axis=-1
        )

    def rank_of_chord(self, chord: Floats) -> Floats:
        angle = 2 * np.arcsin(np.minimum(chord / 2, 1.0))
        return angle * _FLATTEST_M + _ROUNDED_M

    def squared_chords(self, x: Floats, y: Floats) -> Floats:
        units = self.vectors(x, y)
        units[np.isnan(x)] = 0.0
        chords = np.asarray(units @ units.transpose(0, 2, 1))  # cosines, first
        chords *= -2
        chords += 2 + _LOST_CHORD_2
        return chords

    def reach(self, y: Floats, distance: Floats | float) -> Axes:
        return reach_degrees(y, distance)

    def scale(self, y: Floats) -> Axes:
        across, along = metres_per_degree(y)
        return np.maximum(across, _NEXT_TO_POLE_M), along

    def contains(self, x: Numbers, y: Numbers) -> Bools:
        most_x, most_y = self.farthest
        with np.errstate(invalid="ignore"):
            return np.asarray((np.abs(x) <= most_x) & (np.abs(y) <= most_y))

    def wrap(self, boxes: Floats) -> tuple[Floats, Ints]:
        return longitudes.across_180(boxes)

    def reaching_across(self, x: Floats, reach: Floats | float) -> Ints:
        return longitudes.reaching_across(x, reach)

    def shortest(self, way: Floats) -> Floats:
        return longitudes.shortest(way)

    def is_between(self, x: Floats, west: Floats, east: Floats) -> Bools:
        return longitudes.is_between(x, west, east)


PLANE: Space = _Plane()
"""Planar coordinates; distances are in their unit."""
GLOBE: Space = _Globe()
"""Longitude and latitude in degrees on WGS 84; distances are metres."""


# In which direction one place lies from another: degrees from north to the east, from 0 to before 360.
#
#        0
#        |
# 270 ---+--- 90          NaN where both are one place, or one of them is nowhere
#        |
#       180


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
