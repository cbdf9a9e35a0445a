"""Places on the globe whose distances clearly differ, so that two geodesics that differ a little judge them alike.

Engine and oracle may differ by 0.01 % in a distance. So no radius lies near a distance of two places, and no two places
are about equally far from a third one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from random import Random

from pyproj import Geod

from st_common.reference.metric import Point
from tests.kit.oracle_rows import metres

CENTRES: tuple[Point, ...] = (
    (180.0, 0.0),
    (179.999, 60.0),
    (-179.99, -33.9),
    (30.0, 89.95),
    (-100.0, -89.999),
    (24.94, 60.17),
    (151.2, -33.87),
    (0.0, 0.0),
    (-77.03, 84.9),
    (10.4, 45.1),
)
"""Where places are: at the antimeridian, at the poles, at the equator and between."""
REACHES_M = (300.0, 4_000.0, 60_000.0)
CLEARLY = 1.001
_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Places within `reach_m` of a centre, and radii in metres between their distances."""

    reach_m: float
    places: tuple[Point, ...]
    radii: tuple[float, ...]


def neighbourhood(rng: Random, count: int = 8) -> Neighbourhood:
    """So many places around one of the centres."""
    centre, reach_m = rng.choice(CENTRES), rng.choice(REACHES_M)
    places: list[Point] = []
    while len(places) < count:
        place = at(centre, rng.uniform(-180, 180), reach_m * rng.uniform(0.01, 1.0))
        if _is_clear([*places, place]):
            places.append(place)
    return Neighbourhood(
        reach_m=reach_m, places=tuple(places), radii=radii_between(places)
    )


def at(start: Point, azimuth: float, distance_m: float) -> Point:
    """The place so far from another one, in degrees from -180 to 180; azimuths are degrees from north to the east."""
    x, y, _ = _GEOD.fwd(*start, azimuth, distance_m)
    return float(x), float(y)


def distances(places: Sequence[Point]) -> list[float]:
    """The distances of all pairs of places in metres, ascending."""
    return sorted(metres(a, b, geographic=True) for a, b in combinations(places, 2))


def radii_between(places: Sequence[Point]) -> tuple[float, ...]:
    """Lengths that lie clearly between two distances of places that follow each other."""
    lengths = distances(places)
    return tuple((a + b) / 2 for a, b in pairwise(lengths) if b > a * CLEARLY * CLEARLY)


def _is_clear(places: Sequence[Point]) -> bool:
    """Whether from no place two others are about equally far."""
    far = {(a, b): metres(a, b, geographic=True) for a, b in permutations(places, 2)}
    return all(
        max(far[a, b], far[a, c]) > min(far[a, b], far[a, c]) * CLEARLY
        for a in places
        for b, c in combinations([place for place in places if place != a], 2)
    )


TRACKS = ("line", "triangle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Places whose distances are whole multiples of `unit_m`: on one geodesic, or at the corners of a triangle."""

    unit_m: float
    places: tuple[Point, ...]


def track(rng: Random) -> Track:
    """Places on a geodesic through one of the centres, or a triangle of equal sides beside it."""
    centre, unit_m, azimuth = (
        rng.choice(CENTRES),
        rng.choice((50.0, 700.0, 9_000.0)),
        rng.uniform(-180, 180),
    )
    if rng.choice(TRACKS) == "line":
        places = [at(centre, azimuth, number * unit_m) for number in range(-2, 3)]
    else:
        places = [centre, at(centre, azimuth, unit_m), at(centre, azimuth + 60, unit_m)]
    return Track(unit_m=unit_m, places=tuple(places))
