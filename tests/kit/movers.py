"""Vehicles that move on the roads of an OpenStreetMap extract: seeded, so that the same call gives the same bytes.

A vehicle drives along an edge with the speed of its road's class times its own share of it, and takes a random edge at
every junction: no one turns on the spot unless the road ends, no one leaves the roads, no one jumps. One fix a second
for each vehicle, at its own moment within the second.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import osmium
import pyarrow as pa
import pyarrow.compute as pc

KMH = 1 / 3.6
SPEEDS_MPS = {
    "motorway": 100 * KMH,
    "trunk": 80 * KMH,
    "primary": 50 * KMH,
    "secondary": 45 * KMH,
    "tertiary": 40 * KMH,
    "unclassified": 35 * KMH,
    "residential": 30 * KMH,
    "living_street": 15 * KMH,
    "service": 15 * KMH,
}
"""The roads that vehicles use, a link like its class, and how fast they go there."""

CLASSES = ("car", "bus", "taxi", "truck")
CLASS_SHARES = (0.70, 0.08, 0.12, 0.10)
SLOWEST = np.array((0.75, 0.55, 0.80, 0.60))
FASTEST = np.array((1.00, 0.75, 1.00, 0.80))
"""The share of a road's speed that the vehicles of a class drive: each its own, between these."""

COLUMNS = ("object_id", "event_ts", "x", "y", "class", "speed_mps")
START = np.datetime64("2026-06-19T23:59:30", "ms")
EARTH_M = 6_371_008.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Roads:
    """Directed straight edges between points, sorted by `start`: those that leave point n are `first[n]:first[n + 1]`.

    `x`, `y` f64 degrees per point; `start`, `end` int64, `length_m`, `speed_mps` f64 per edge. Every point has an edge
    that leaves it, and all hang together.
    """

    x: np.ndarray
    y: np.ndarray
    start: np.ndarray
    end: np.ndarray
    length_m: np.ndarray
    speed_mps: np.ndarray
    first: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    """Where vehicles were: `x`, `y` (degrees), `speed_mps`, `edge` are [seconds, vehicles], the rest is per vehicle.

    `phase_ms` is a vehicle's moment within each second, `kind` its place in CLASSES, `share` its part of roads' speeds.
    """

    x: np.ndarray
    y: np.ndarray
    speed_mps: np.ndarray
    edge: np.ndarray
    phase_ms: np.ndarray
    kind: np.ndarray
    share: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaws:
    """The shares of rows that are wrong on purpose: unreadable ones that are added, rows twice, rows 8 s too late."""

    bad: float = 0.005
    double: float = 0.001
    late: float = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What `write_csv` wrote: rows in all, and how many of them are unreadable, repeated, or out of time."""

    rows: int
    bad: int
    double: int
    late: int


def read_roads(path: Path) -> Roads:
    """The drivable roads of an .osm.pbf, the largest part of them that hangs together; one-way roads are kept so.

    Edges to points that the extract does not hold are left out. Where only one-way edges arrive and none leaves, those
    may be driven back.

    Raises:
        ValueError: the extract holds no drivable road.
    """
    points: dict[int, tuple[float, float]] = {}
    edges: list[tuple[int, int, float]] = []
    both = osmium.osm.NODE | osmium.osm.WAY
    for way in (
        osmium.FileProcessor(str(path), both)
        .with_locations()
        .with_filter(osmium.filter.KeyFilter("highway"))
    ):
        if not isinstance(way, osmium.osm.Way):
            continue
        speed = SPEEDS_MPS.get(way.tags["highway"].removesuffix("_link"))
        if speed is not None:
            nodes = [(node.ref, node.location) for node in way.nodes]
            points |= {ref: (at.lon, at.lat) for ref, at in nodes if at.valid()}
            forth, back = _directions(way.tags)
            for (a, _), (b, _) in pairwise(nodes):
                edges += [(a, b, speed)] * forth + [(b, a, speed)] * back
    edges = [
        (a, b, speed)
        for a, b, speed in edges
        if a in points and b in points and points[a] != points[b]
    ]
    if not edges:
        raise ValueError(f"{path} holds no drivable road")
    refs = np.array(sorted(points))
    where = np.array([points[ref] for ref in refs.tolist()])
    ends = np.searchsorted(refs, np.array([edge[:2] for edge in edges]))
    return _connected(
        where, ends[:, 0], ends[:, 1], np.array([edge[2] for edge in edges])
    )


def drive(roads: Roads, *, vehicles: int, seconds: int, seed: int) -> Tracks:
    """So many vehicles for so many seconds, starting anywhere on the roads (on long edges more often)."""
    fleet = Fleet(roads, vehicles=vehicles, seed=seed)
    shape = (seconds, vehicles)
    x, y, speed, edges = (
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape, np.int64),
    )
    for second in range(seconds):
        x[second], y[second] = fleet.places()
        speed[second], edges[second] = fleet.speed_mps(), fleet.edge
        fleet.go_on()
    return Tracks(
        x=x,
        y=y,
        speed_mps=speed,
        edge=edges,
        phase_ms=fleet.phase_ms,
        kind=fleet.kind,
        share=fleet.share,
    )


class Fleet:
    """Vehicles at one moment, which go on second by second: the same call gives the same ways, however long they are.

    Attributes:
        edge, phase_ms, kind, share: as in `Tracks`, per vehicle.
    """

    def __init__(self, roads: Roads, *, vehicles: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.kind = rng.choice(len(CLASSES), vehicles, p=CLASS_SHARES)
        self.share = rng.uniform(SLOWEST[self.kind], FASTEST[self.kind])
        weights = roads.length_m / roads.length_m.sum()
        self.edge = rng.choice(len(roads.start), vehicles, p=weights)
        self._offset_m = rng.uniform(0, roads.length_m[self.edge])
        self.phase_ms = rng.integers(0, 1000, vehicles)
        self._roads, self._rng = roads, rng

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each is: longitudes and latitudes."""
        roads, edge = self._roads, self.edge
        along = self._offset_m / roads.length_m[edge]
        x = roads.x[roads.start[edge]] * (1 - along) + roads.x[roads.end[edge]] * along
        y = roads.y[roads.start[edge]] * (1 - along) + roads.y[roads.end[edge]] * along
        return x, y

    def speed_mps(self) -> np.ndarray:
        """How fast each drives."""
        return np.asarray(self._roads.speed_mps[self.edge] * self.share)

    def go_on(self) -> None:
        """Lets a second pass."""
        self.edge, self._offset_m = _one_second(
            self._roads, self.edge, self._offset_m, self.share, self._rng
        )


def write_csv(
    path: Path,
    roads: Roads,
    *,
    vehicles: int = 2000,
    seconds: int = 66,
    seed: int = 1,
    flaws: Flaws | None = None,
) -> Counts:
    """A CSV file of the fixes of so many vehicles, with a header, in the order of time but for the flaws.

    `event_ts` is ISO with milliseconds, UTC, from 23:59:30 on, so that a day closes after half a minute; x and y are
    degrees with 7 decimals. The file has vehicles x seconds good fixes, `double` repeated ones, and the bad rows.
    """
    flaws = flaws or Flaws()
    lines = lines_of(drive(roads, vehicles=vehicles, seconds=seconds, seed=seed))
    rng, count = np.random.default_rng(seed + 1), len(lines)
    late = _some(rng, count, flaws.late)
    order = np.arange(count, dtype=float)
    order[late] += 8.5 * vehicles
    double = _some(rng, count, flaws.double)
    bad = _some(rng, count, flaws.bad)
    spoilt = [_spoil(line, number) for number, line in enumerate(lines[bad].tolist())]
    order = np.concatenate([order, order[double] + 0.2, bad + 0.5])
    rows = np.concatenate([lines, lines[double], np.array(spoilt, object)])[
        np.argsort(order, kind="stable")
    ]
    path.write_bytes(b"\n".join([",".join(COLUMNS).encode(), *rows.tolist(), b""]))
    return Counts(rows=len(rows), bad=len(bad), double=len(double), late=len(late))


def metres(
    x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray
) -> np.ndarray:
    """The distances between points a few kilometres apart, in metres; degrees in."""
    middle = np.radians((y1 + y2) / 2)
    east, north = np.radians(x2 - x1) * np.cos(middle), np.radians(y2 - y1)
    return np.asarray(EARTH_M * np.hypot(east, north))


def _directions(tags: osmium.osm.TagList) -> tuple[int, int]:
    oneway = tags.get("oneway", "yes" if tags.get("junction") == "roundabout" else "no")
    return int(oneway != "-1"), int(oneway not in ("yes", "true", "1"))


def _connected(
    where: np.ndarray, start: np.ndarray, end: np.ndarray, speed: np.ndarray
) -> Roads:
    part = _parts(len(where), start, end)
    keep = part[start] == np.bincount(part[start]).argmax()
    start, end, speed = start[keep], end[keep], speed[keep]
    stuck = ~np.isin(end, start)  # only arrivals: drive back
    start, end = (
        np.concatenate([start, end[stuck]]),
        np.concatenate([end, start[stuck]]),
    )
    speed = np.concatenate([speed, speed[stuck]])
    used, ends = np.unique(np.stack([start, end]), return_inverse=True)
    start, end = ends.reshape(2, -1)
    _, once = np.unique(
        start * len(used) + end, return_index=True
    )  # by start, then end
    start, end, speed, x, y = (
        start[once],
        end[once],
        speed[once],
        where[used, 0],
        where[used, 1],
    )
    length_m = metres(x[start], y[start], x[end], y[end])
    first = np.searchsorted(start, np.arange(len(used) + 1))
    return Roads(
        x=x, y=y, start=start, end=end, length_m=length_m, speed_mps=speed, first=first
    )


def _parts(points: int, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The same number for points that hang together, whatever the direction: the smallest of them."""
    part = np.arange(points)
    while True:
        before = part.copy()
        np.minimum.at(part, start, part[end])
        np.minimum.at(part, end, part[start])
        part = part[part]
        if (part == before).all():
            return part


def _one_second(
    roads: Roads,
    edge: np.ndarray,
    offset_m: np.ndarray,
    share: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Edges and offsets a second later; whoever reaches an edge's end goes on along the next with the time left."""
    edge, offset_m, left_s = edge.copy(), offset_m.copy(), np.ones(len(edge))
    going = np.arange(len(edge))
    while len(going):
        speed = roads.speed_mps[edge[going]] * share[going]
        room_s = (roads.length_m[edge[going]] - offset_m[going]) / speed
        stays = left_s[going] < room_s
        offset_m[going[stays]] += speed[stays] * left_s[going[stays]]
        left_s[going] -= room_s
        going = going[~stays]
        edge[going] = _next_edge(roads, edge[going], rng)
        offset_m[going] = 0.0
    return edge, offset_m


def _next_edge(roads: Roads, edge: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    point = roads.end[edge]
    first, count = roads.first[point], roads.first[point + 1] - roads.first[point]
    pick = (rng.random(len(edge)) * count).astype(np.int64)
    back = roads.end[first + pick] == roads.start[edge]
    return np.asarray(first + np.where(back, (pick + 1) % count, pick))


def lines_of(tracks: Tracks, *, first_s: int = 0) -> np.ndarray:
    """The rows as bytes, in the order of time; object[seconds x vehicles].

    Args:
        tracks: where vehicles were.
        first_s: the second of their way at which the tracks begin.
    """
    seconds, vehicles = tracks.x.shape
    when_ms = (first_s + np.arange(seconds))[:, None] * 1000 + tracks.phase_ms
    order = np.argsort(when_ms, axis=None, kind="stable")
    vehicle = np.tile(np.arange(vehicles), seconds)[order]
    stamps = np.datetime_as_string(
        START + when_ms.ravel()[order].astype("timedelta64[ms]"), unit="ms"
    )
    columns = (
        pa.array(np.char.mod("v%05d", np.arange(vehicles))).take(pa.array(vehicle)),
        pc.binary_join_element_wise(pa.array(stamps), "Z", ""),
        *(
            pc.cast(pa.array(np.round(at.ravel()[order], 7)), pa.string())
            for at in (tracks.x, tracks.y)
        ),
        pa.array(CLASSES).take(pa.array(tracks.kind[vehicle])),
        pc.cast(pa.array(np.round(tracks.speed_mps.ravel()[order], 2)), pa.string()),
    )
    return np.asarray(pc.binary_join_element_wise(*columns, ",").cast(pa.binary()))


def _some(rng: np.random.Generator, count: int, share: float) -> np.ndarray:
    return np.sort(rng.choice(count, round(count * share), replace=False))


def _spoil(line: bytes, number: int) -> bytes:
    """An unreadable row out of a good one; six ways, in turn."""
    moving, when, x, y, *rest = line.split(b",")
    ways = (
        [moving, when, b"n/a", y, *rest],
        [b"", when, x, y, *rest],
        [moving, b"yesterday", x, y, *rest],
        [moving, when, x],
        [moving, when, x, b"95.5", *rest],
        [moving + b"\xff\xfe", when, x, y, *rest],
    )
    return b",".join(ways[number % len(ways)])
