"""Coordinates that are no places on Earth, in words."""

from collections.abc import Iterable, Iterator

from st_common.regions.region import Wrong

HALF_TURN, POLE = 180.0, 90.0
_ORDER = "longitude first: -180 to 180, then latitude: -90 to 90"


def off_earth(what: str, places: Iterable[tuple[float, float]]) -> Iterator[Wrong]:
    """The first coordinate of `what` that is none, with its value."""
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
