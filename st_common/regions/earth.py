"""Coordinates that are no places on Earth, in words, and sides that can be read the other way around."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from st_common.regions.region import Wrong

if TYPE_CHECKING:
    import numpy as np

HALF_TURN, POLE = 180.0, 90.0
_ORDER = "longitude first: -180 to 180, then latitude: -90 to 90"


def off_earth(what: str, places: Iterable[tuple[float, float]]) -> Iterator[Wrong]:
    """The first coordinate of some places that is none on Earth, in words; nothing when all are.

    Args:
        what: whose places these are, in words: "centre of the circle".
        places: pairs of longitude and latitude in degrees; NaN is no coordinate either.
    """
    for x, y in places:
        for value, most, name in (
            (x, HALF_TURN, "longitude"),
            (y, POLE, "latitude"),
        ):
            if not abs(value) <= most:
                yield Wrong(
                    f"the {what} lies off the Earth: {name} {value:.15g}", _ORDER
                )
                return


def beyond(places: "np.ndarray") -> list[tuple[float, float]]:
    """The first of some places, float64[n, 2], that is none on Earth, for `off_earth`; nothing when all are."""
    is_on = (abs(places) <= (HALF_TURN, POLE)).all(axis=1)
    found: list[tuple[float, float]] = places[~is_on][:1].tolist()
    return found


def leaps(lines: "np.ndarray") -> bool:
    """Whether a side of lines or rings spans more than half a turn and less than a whole one: it has two readings.

    A side from -180 to 180 goes along the border of the map, as at the poles.

    Args:
        lines: object[n], lines or rings in degrees.
    """
    import numpy as np
    import shapely  # slow to import, and seldom needed

    from st_common.geometry.longitudes import has_two_readings

    places, line = shapely.get_coordinates(lines, return_index=True)
    sides = np.diff(places[:, 0])[np.diff(line) == 0]
    return bool(has_two_readings(sides).any())
