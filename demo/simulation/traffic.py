"""Objects that travel on a road network as in Brinkhoff's generator, as rounds of reports.

Cars, taxis, buses and slower ones start at nodes, drive the fastest route to a destination, as fast as road and class
allow, and report once per time unit. At the destination an object disappears (its last report says so), or, where
`stays`, sets out for another one: so a population is of exactly one size, as in the papers on neighbour queries.

Unlike in the generator nobody slows anybody down (roads have no capacity) and there is no weather, so nobody is given
a new route on the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from demo.simulation.network import (
    CLASS_SHARES,
    CLASSES,
    Choice,
    Limits,
    RoadNetwork,
    Router,
    destinations,
    limits_of,
)

_TRIES = 20  # of finding a route that is not trivial: a tiny network may have none


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A workload.

    `per_unit` objects are new in a unit; of a fraction one is in some units. `unit_s` is the length of a time unit in
    the event time of the reports.

    `report_share` is the part of the objects that reports in a round, drawn anew each time; reports of new and of gone
    objects are never left out. `spread` starts the first objects anywhere on their routes instead of at nodes, so
    that the first units are like the later ones.
    """

    at_start: int
    per_unit: float = 0
    units: int
    unit_s: float = 5.0
    speed_divisor: int = 50
    choice: Choice = "fastest"
    stays: bool = False
    spread: bool = False
    report_share: float = 1.0


PLACE = Traffic(at_start=10_000, per_unit=100, units=1_000)
"""The data set of the papers GPAC and PLACE: 110,000 objects."""

ALL_REPORT = Traffic(
    at_start=100_000, units=20, stays=True, spread=True, speed_divisor=250
)
"""100,000 objects, each reporting every 5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The reports of one time unit, sorted by object: its number, place, class, directed road, and whether it is gone.

    `road` is the one that it is on, and for an object that is gone the one that it came by.
    """

    unit: int
    object: np.ndarray
    x: np.ndarray
    y: np.ndarray
    kind: np.ndarray
    road: np.ndarray
    gone: np.ndarray

    def only(self, which: np.ndarray) -> "Round":
        """The reports at these places."""
        names = ("object", "x", "y", "kind", "road", "gone")
        return replace(self, **{name: getattr(self, name)[which] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fleet:
    """Objects under way: number, class, destination, the road they are on and how far along it (0 at its start)."""

    number: np.ndarray
    kind: np.ndarray
    destination: np.ndarray
    road: np.ndarray
    along: np.ndarray

    def only(self, which: np.ndarray) -> "_Fleet":
        return _Fleet(
            **{name: getattr(self, name)[which] for name in _Fleet.__dataclass_fields__}
        )

    def joined(self, other: "_Fleet") -> "_Fleet":
        names = _Fleet.__dataclass_fields__
        return _Fleet(
            **{
                name: np.concatenate([getattr(self, name), getattr(other, name)])
                for name in names
            }
        )


def rounds(
    network: RoadNetwork,
    traffic: Traffic,
    *,
    seed: int,
    limits: Limits | None = None,
) -> Iterator[Round]:
    """The rounds of a workload: unit 0 has the objects at the start, each of `units` more the moves and the new ones.

    The same arguments give the same rounds; `report_share` changes who reports, never who is where. `limits` are the
    top speeds; None: the generator's own, by the extent of the network and `speed_divisor`.
    """
    moves, reports = (np.random.default_rng((seed, stream)) for stream in range(2))
    limits = limits or limits_of(network, divisor=traffic.speed_divisor)
    router = Router(network, limits, choice=traffic.choice)
    fleet = _born(router, traffic.at_start, 0, moves)
    if traffic.spread:
        fleet = _spread(router, fleet, moves)
    count = len(fleet.number)
    yield _round(0, network, fleet, fleet.only(np.empty(0, np.int64)))
    for unit in range(1, traffic.units + 1):
        fleet, arrived = _moved(
            router, fleet, np.ones(len(fleet.number)), moves, stays=traffic.stays
        )
        due = int(unit * traffic.per_unit) - int((unit - 1) * traffic.per_unit)
        new = _born(router, due, count, moves)
        count += len(new.number)
        reporting = fleet.only(
            _reporting(len(fleet.number), traffic.report_share, reports)
        ).joined(new)
        yield _round(unit, network, reporting, arrived)
        fleet = fleet.joined(new)


def _born(router: Router, count: int, first: int, rng: np.random.Generator) -> _Fleet:
    """New objects at nodes, each with a route of three roads at least, where the network has such."""
    kind = rng.choice(len(CLASSES), count, p=CLASS_SHARES)
    origin = rng.integers(0, len(router.network.x), count)
    destination = destinations(router.network, origin, rng)
    again = np.flatnonzero(router.is_trivial(kind, origin, destination))
    for _ in range(_TRIES):
        if not len(again):
            break
        origin[again] = rng.integers(0, len(router.network.x), len(again))
        destination[again] = destinations(router.network, origin[again], rng)
        again = again[router.is_trivial(kind[again], origin[again], destination[again])]
    destination[again] = router.next_door(origin[again])
    road = router.next_road(kind, origin, destination)
    return _Fleet(
        number=first + np.arange(count),
        kind=kind,
        destination=destination,
        road=road,
        along=np.zeros(count),
    )


def _spread(router: Router, fleet: _Fleet, rng: np.random.Generator) -> _Fleet:
    """The objects at a random moment of their trips."""
    at, total, going = (
        fleet.road.copy(),
        np.zeros(len(fleet.road)),
        np.arange(len(fleet.road)),
    )
    while len(going):
        road = at[going]
        total[going] += router.network.length[road] / router.speed(
            fleet.kind[going], road
        )
        at[going] = router.next_road(
            fleet.kind[going], router.network.end[road], fleet.destination[going]
        )
        going = going[at[going] >= 0]
    left = total * rng.uniform(
        0, 0.999, len(total)
    )  # nobody arrives before the first unit
    return _moved(router, fleet, left, rng, stays=False)[0]


def _moved(
    router: Router,
    fleet: _Fleet,
    left: np.ndarray,
    rng: np.random.Generator,
    *,
    stays: bool,
) -> tuple[_Fleet, _Fleet]:
    """The objects under way after so many units each (`left`, used up), and those that reached their destination."""
    kind, road, along, destination = (
        fleet.kind,
        fleet.road.copy(),
        fleet.along.copy(),
        fleet.destination.copy(),
    )
    going, gone = np.arange(len(road)), np.zeros(len(road), bool)
    while len(going):
        going = _drive(router, kind, road, along, left, going)
        at = router.network.end[road[going]]
        there = at == destination[going]
        if stays:
            _set_out(router, kind, destination, going[there], at[there], rng)
        else:
            gone[going[there]] = True
            going, at = going[~there], at[~there]
        road[going] = router.next_road(kind[going], at, destination[going])
        along[going] = 0.0
    fleet = replace(fleet, destination=destination, road=road, along=along)
    return fleet.only(np.flatnonzero(~gone)), fleet.only(np.flatnonzero(gone))


def _drive(
    router: Router,
    kind: np.ndarray,
    road: np.ndarray,
    along: np.ndarray,
    left: np.ndarray,
    going: np.ndarray,
) -> np.ndarray:
    """Moves objects to the end of their road, or as far as the time left takes them; those that reached the end."""
    speed, length = (
        router.speed(kind[going], road[going]),
        router.network.length[road[going]],
    )
    room = (length - along[going]) / speed
    stops = left[going] < room
    along[going] = np.where(stops, along[going] + speed * left[going], length)
    left[going] -= room
    arrived: np.ndarray = going[~stops]
    return arrived


def _set_out(
    router: Router,
    kind: np.ndarray,
    destination: np.ndarray,
    who: np.ndarray,
    at: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """New destinations for objects that stand at nodes, with routes that are not trivial where there are such."""
    for _ in range(_TRIES):
        if not len(who):
            return
        destination[who] = destinations(router.network, at, rng)
        again = router.is_trivial(kind[who], at, destination[who])
        who, at = who[again], at[again]
    destination[who] = router.next_door(at)


def _reporting(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    if share >= 1:
        return np.arange(count)
    return np.sort(rng.choice(count, round(count * share), replace=False))


def _round(unit: int, network: RoadNetwork, there: _Fleet, gone: _Fleet) -> Round:
    fleet = there.joined(gone)
    is_gone = np.arange(len(fleet.number)) >= len(there.number)
    order = np.argsort(fleet.number)
    fleet, is_gone = fleet.only(order), is_gone[order]
    part = fleet.along / network.length[fleet.road]
    start, end = network.start[fleet.road], network.end[fleet.road]
    return Round(
        unit=unit,
        object=fleet.number,
        kind=fleet.kind,
        road=fleet.road,
        gone=is_gone,
        x=network.x[start] * (1 - part) + network.x[end] * part,
        y=network.y[start] * (1 - part) + network.y[end] * part,
    )
