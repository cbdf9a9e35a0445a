"""The workload of the round benches: objects on the roads of Oldenburg, made once and kept in bench/work.

A round is what 100,000 objects report within 5 s. It is laid into the log as some data segments and one clock row
behind them, so that the tick at the round's end is due as soon as its segments are read.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from demo.simulation.network import limits_of, read_network
from demo.simulation.traffic import ALL_REPORT, Round, Traffic, rounds
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Clock
from st_common.controls.writing import to_bytes
from st_common.geometry.space import GLOBE, PLANE, Space
from st_common.log.log import SEGMENT_LIMIT
from st_common.query.control import QueryRow, encoded
from st_common.query.plan import Plan
from tests.kit.road_traffic import DECIMALS, payload, stamp_ms, traffic_stream

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
ROADS = SHARED / "data" / "roadnet-oldenburg"
STREAM = "load"
_PLACE = (
    8.2146,
    53.1435,
)  # longitude and latitude that the middle of the plane is given; a unit is a metre there
_METRES_PER_DEGREE = 111_195.0
_ROW_BYTES = 64  # of a report, at most
_SILENCE_UNITS, _NEVER = 1.2, 1000.0
_UNITS = 32  # made at least, so that runs of different lengths share a world


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where all objects are at each unit: `x`, `y` f64[units + 1, objects] as payloads carry them, `kind` int64."""

    traffic: Traffic
    space: Space
    x: np.ndarray
    y: np.ndarray
    kind: np.ndarray


def world(
    work: Path, *, objects: int, units: int, divisor: int, seed: int = 1
) -> World:
    """So many objects for so many units; from bench/work when it was made before."""
    made = max(units, _UNITS)
    traffic = replace(ALL_REPORT, at_start=objects, units=made, speed_divisor=divisor)
    path = work / f"oldenburg-{objects}-{made}-{divisor}-{seed}.npz"
    if not path.exists():
        found = list(rounds(read_network(ROADS), traffic, seed=seed))
        path.parent.mkdir(parents=True, exist_ok=True)
        x, y = (
            np.round([getattr(one, axis) for one in found], DECIMALS) for axis in "xy"
        )
        np.savez(path, x=x, y=y, kind=found[0].kind)
    with np.load(path) as stored:
        x, y = (stored[axis][: units + 1] for axis in "xy")
        return World(traffic=traffic, space=PLANE, x=x, y=y, kind=stored["kind"])


def on_earth(plane: World) -> World:
    """The same world in degrees around the city of Oldenburg, a unit being about a metre."""
    x0, y0 = plane.x[0].mean(), plane.y[0].mean()
    across = _METRES_PER_DEGREE * math.cos(math.radians(_PLACE[1]))
    return replace(
        plane,
        space=GLOBE,
        x=np.round(_PLACE[0] + (plane.x - x0) / across, DECIMALS),
        y=np.round(_PLACE[1] + (plane.y - y0) / _METRES_PER_DEGREE, DECIMALS),
    )


def reporters(objects: int, unit: int, share: float) -> np.ndarray:
    """Who reports in a unit: exactly this share, drawn anew each time; everybody in unit 0."""
    if share >= 1 or unit == 0:
        return np.arange(objects)
    return np.sort(
        np.random.default_rng((7, unit)).choice(
            objects, round(objects * share), replace=False
        )
    )


def seen(space: World, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The last reported places at each unit: f64[units + 1, objects] twice."""
    x, y = space.x.copy(), space.y.copy()
    for unit in range(1, len(x)):
        silent = np.ones(x.shape[1], bool)
        silent[reporters(x.shape[1], unit, share)] = False
        x[unit, silent], y[unit, silent] = x[unit - 1, silent], y[unit - 1, silent]
    return x, y


def data_segments(
    space: World, unit: int, who: np.ndarray, *, parts: int
) -> list[bytes]:
    """The reports of a unit as so many CSV segments, or as many as are needed for each to be small enough."""
    parts = max(parts, -(-len(who) * _ROW_BYTES // SEGMENT_LIMIT))
    return [
        payload(
            Round(
                unit=unit,
                object=some,
                x=space.x[unit, some],
                y=space.y[unit, some],
                kind=space.kind[some],
                road=np.zeros(len(some), np.int64),
                gone=np.zeros(len(some), bool),
            ),
            space.traffic,
        )
        for some in np.array_split(who, parts)
        if len(some)
    ]


def clock_row(space: World, unit: int) -> bytes:
    """The control row that moves the clock just past a unit's end."""
    return to_bytes(Clock(ts_us=stamp_ms(unit, space.traffic) * 1000 + 1))


def settings(
    space: World, *, shards: int, cache_share: float | None = None, share: float = 1.0
) -> StreamSettings:
    """The stream; with `cache_share` moving queries have GPAC's cache area: that share of a margin.

    The margin is how far the fastest object goes in 1.2 units, the time after which a silent object would be
    disconnected where all report in each unit. Where fewer do, nobody is disconnected, and the margin is the same.
    """
    stream = traffic_stream(STREAM, space.traffic, shards=shards)
    if space.space is GLOBE:
        stream = replace(stream, crs="EPSG:4326")
    if cache_share is None:
        return stream
    limits = limits_of(read_network(ROADS), divisor=space.traffic.speed_divisor)
    fastest = float(min(limits.objects[0], limits.roads[0])) / space.traffic.unit_s
    longer = 1.0 if share >= 1 else _NEVER
    silence_s = _SILENCE_UNITS * space.traffic.unit_s * longer
    return replace(
        stream,
        silence_s=silence_s,
        max_speed_mps=fastest,
        cache_share=cache_share / longer,
    )


def registrations(plans: Iterable[Plan]) -> Iterator[bytes]:
    """The plans as control rows that register q0, q1, .."""
    for number, plan in enumerate(plans):
        yield encoded(
            QueryRow(
                name=f"q{number}",
                version=1,
                op="register",
                stream=STREAM,
                position=0,
                arrival_us=0,
                plan=plan,
                text="",
                owner="bench",
            )
        )
