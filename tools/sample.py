"""Writes st_common/samples/ships.csv, which `fairway try sample:ships` reads: a morning off Helsinki, made up.

Each ship keeps to its course at its speed, waits at its berths, and reports about once a minute. The ships are
nobody's.
"""

import csv
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

PAGE = Path("st_common/samples/ships.csv")
_START = datetime(2025, 6, 2, 8, tzinfo=UTC)
_SECONDS = 2 * 3600
_KNOT_MPS = 0.514444
_M_PER_DEGREE = 111_195.0

MARKET, FORTRESS = (24.9562, 60.1662), (24.9790, 60.1497)
KATAJANOKKA, WEST_HARBOUR = (24.9672, 60.1640), (24.9140, 60.1490)
OPEN_SEA, EAST_SEA, LIGHTHOUSE = (
    (24.8600, 60.0500),
    (25.1400, 60.0700),
    (24.9270, 59.9500),
)
MIDWAY, KORKEASAARI, HARMAJA = (
    (24.9700, 60.1570),
    (24.9840, 60.1740),
    (24.9760, 60.1050),
)


@dataclass(frozen=True, slots=True)
class _Ship:
    name: str
    kind: str
    knots: float
    wait_s: float
    course: tuple[tuple[float, float], ...]
    start_s: float = 0.0
    again: bool = False


SHIPS = (
    _Ship(
        "SUOKKI",
        "passenger",
        9.5,
        480,
        (MARKET, MIDWAY, FORTRESS),
        0,
        again=True,
    ),
    _Ship(
        "TYRSKY",
        "passenger",
        10,
        600,
        (FORTRESS, MIDWAY, MARKET),
        420,
        again=True,
    ),
    _Ship(
        "KORKEA",
        "passenger",
        8,
        420,
        (MARKET, KATAJANOKKA, KORKEASAARI),
        300,
        again=True,
    ),
    _Ship(
        "BALTIC LINE",
        "passenger",
        17,
        0,
        (EAST_SEA, HARMAJA, FORTRESS, KATAJANOKKA),
        900,
    ),
    _Ship(
        "GULF STAR",
        "passenger",
        19,
        2400,
        (LIGHTHOUSE, OPEN_SEA, WEST_HARBOUR),
        0,
        again=True,
    ),
    _Ship(
        "PILOT 12",
        "pilot",
        22,
        900,
        (HARMAJA, LIGHTHOUSE, HARMAJA),
        600,
        again=True,
    ),
    _Ship(
        "AALLOTAR",
        "sailing",
        5,
        1800,
        (KORKEASAARI, MIDWAY, HARMAJA, OPEN_SEA),
        240,
    ),
    _Ship("GRANIT", "cargo", 12, 0, (OPEN_SEA, HARMAJA, EAST_SEA), 1200),
)


def rows() -> Iterator[tuple[str, ...]]:
    """The records in the order of their times."""
    rng = random.Random(8)  # noqa: S311 - it is to be the same each time
    yield from sorted(row for ship in SHIPS for row in _reports(ship, rng))


def _reports(ship: _Ship, rng: random.Random) -> Iterator[tuple[str, ...]]:
    legs = _legs(ship)
    second = ship.start_s + rng.uniform(0, 30)
    while second < _SECONDS:
        lon, lat, knots, course = _at(legs, second, ship)
        at = _START + timedelta(seconds=round(second))
        yield (
            f"{at:%Y-%m-%dT%H:%M:%SZ}",
            ship.name,
            ship.kind,
            f"{lon + rng.gauss(0, 3e-5):.5f}",
            f"{lat + rng.gauss(0, 2e-5):.5f}",
            f"{max(knots + rng.gauss(0, 0.2) * (knots > 0), 0):.1f}",
            f"{course:.0f}",
        )
        second += rng.uniform(50, 70)


_Leg = tuple[float, float, tuple[float, float], tuple[float, float]]


def _legs(ship: _Ship) -> list[_Leg]:
    """When a ship is on which leg: from, to (seconds), and both ends; waiting is a leg of no length."""
    legs: list[_Leg] = []
    at, course = ship.start_s, list(ship.course)
    while at < _SECONDS:
        for start, end in pairwise(course):
            took = _metres(start, end) / (ship.knots * _KNOT_MPS)
            legs.append((at, at + took, start, end))
            at += took
        wait = ship.wait_s if ship.again else _SECONDS
        legs.append((at, at + wait, course[-1], course[-1]))
        at += wait
        course.reverse()
    return legs


def _at(
    legs: list[_Leg], second: float, ship: _Ship
) -> tuple[float, float, float, float]:
    start_s, end_s, start, end = next(
        (leg for leg in legs if leg[0] <= second < leg[1]), legs[-1]
    )
    share = min((second - start_s) / (end_s - start_s), 1.0)
    lon, lat = (a + share * (b - a) for a, b in zip(start, end, strict=True))
    if start == end:
        return lon, lat, 0.0, 0.0
    east = (end[0] - start[0]) * math.cos(math.radians(start[1]))
    return lon, lat, ship.knots, math.degrees(math.atan2(east, end[1] - start[1])) % 360


def _metres(start: tuple[float, float], end: tuple[float, float]) -> float:
    east = (end[0] - start[0]) * math.cos(math.radians(start[1]))
    return math.hypot(east, end[1] - start[1]) * _M_PER_DEGREE


def main() -> int:
    """Writes the file."""
    with PAGE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("time", "ship", "type", "lon", "lat", "sog", "cog"))
        writer.writerows(rows())
    return 0


if __name__ == "__main__":
    sys.exit(main())
