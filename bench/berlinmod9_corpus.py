"""The corpus of the nine BerlinMOD queries by formula: vehicles on a disc around Brussels that drift a little.

    vehicle v, its fix e   angle 2.399963 v   radius 0.12 ((v mod 17) / 17) degrees   drift 0.0005 sin 0.13 (e + v)
    fix e v                one after the other, spread evenly over ten minutes

It is that of MobilityFlink's benchmark of 2026-05-29 (docs/berlinmod.md), rounded to 7 digits.
"""

from dataclasses import dataclass

import numpy as np

START_MS, SPAN_MS, WINDOW_MS, TICK_MS = 1_735_711_200_000, 600_000, 10_000, 5_000
CENTRE = (4.3517, 50.8503)
PLACES = (
    (1, *CENTRE, 2_000),
    (2, 4.3060, 50.8270, 1_000),
    (3, 4.2100, 50.7600, 2_000),
)
"""Points of interest: name, longitude, latitude, metres around."""
_FIRST_ID, _DIGITS = 100, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """All fixes in order of time.

    Attributes:
        vehicle: int64[n], from 0 on.
        ms: int64[n], milliseconds since the start.
        lon: float64[n].
        lat: float64[n].
        step_ms: between two fixes.
        vehicles: how many there are.
    """

    vehicle: np.ndarray
    ms: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    step_ms: int
    vehicles: int

    @property
    def ids(self) -> list[str]:
        """The id of each vehicle."""
        return [str(_FIRST_ID + number) for number in range(self.vehicles)]

    @property
    def asked(self) -> tuple[str, str]:
        """The ids of the two vehicles that queries are about."""
        return self.ids[0], self.ids[self.vehicles // 2]

    def csv(self) -> str:
        """The fixes as CSV with a head."""
        ids = self.ids
        columns = (
            self.vehicle.tolist(),
            (START_MS + self.ms).tolist(),
            self.lon.tolist(),
            self.lat.tolist(),
        )
        lines = (
            f"{ids[v]},{t},{x!r},{y!r}" for v, t, x, y in zip(*columns, strict=True)
        )
        return "\n".join(["id,t,lon,lat", *lines])


def made(vehicles: int, each: int) -> Fixes:
    """So many vehicles with so many fixes each."""
    number = np.arange(vehicles * each)
    event, vehicle = np.divmod(number, vehicles)
    angle = (vehicle * 2.399963) % (2 * np.pi)
    radius = 0.12 * ((vehicle % 17) / 17.0)
    drift = 0.0005 * np.sin((event + vehicle) * 0.13)
    step_ms = SPAN_MS // len(number)
    return Fixes(
        vehicle=vehicle,
        ms=number * step_ms,
        lon=np.round(CENTRE[0] + radius * np.cos(angle) + drift, _DIGITS),
        lat=np.round(CENTRE[1] + radius * np.sin(angle) + drift, _DIGITS),
        step_ms=step_ms,
        vehicles=vehicles,
    )
