"""What the oracle reads and what it says: rows of a log, settings of a stream, changes; what follows of a fix."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from st_common.reference.columns import objects
from st_common.reference.metric import Metric, Point
from st_common.reference.shapes import distances

_GEOD = Geod(ellps="WGS84")


class Feature(NamedTuple):
    """A feature of a layer; `tags` are what keys are joined on."""

    fid: str
    kind: str
    geometry: BaseGeometry
    tags: Mapping[str, str] = {}


Layers = Mapping[tuple[str, int], Sequence[Feature]]
"""The features of every version of every layer."""

Pair = tuple[str, str | None]
"""An object and its partner (None where a query joins nothing); of an aggregate the text of a group, and None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One fix as decoders give it; `x`, `y` and the attributes mean nothing when `gone`."""

    position: int
    object: str
    event_us: int
    x: float = math.nan
    y: float = math.nan
    gone: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One control row of the log."""

    position: int
    row: Mapping[str, Any]


Row = Fix | Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which fixes are stored and change nothing, in metres, metres per second, microseconds; None is off.

    `accuracy` is the attribute that says how many metres a fix may be wrong.
    """

    accuracy: str | None = None
    max_accuracy_m: float | None = None
    beyond_accuracy: bool = False
    min_distance_m: float | None = None
    max_speed_mps: float | None = None
    accept_after_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a stream's settings say, in microseconds. `geographic`: x and y are degrees, and distances are metres.

    `window_rows`: how many of its newest fixes a query with a frame keeps of each object. `filters`: from which row of
    the log on which filter is in force.
    """

    lateness_us: int = 0
    silence_us: int | None = None
    tick_us: int = 1_000_000
    geographic: bool = False
    window_rows: int = 10_000
    filters: tuple[tuple[int, Filter], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change, as the table `changes` has it; `position` is that of the row that brought it about.

    `value` is that of an aggregate, or the second until which a member stays one; `fields` is a JSON object. `x` and
    `y` are where the object was by `fix_us`.
    """

    position: int
    seq: int
    query: str
    query_version: int
    layer_version: int | None
    object: str
    partner: str | None
    sign: int
    cause: str
    event_us: int
    fix_us: int
    value: float | None = None
    fields: str | None = None
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that the rows bring about, in the order of the log, and how many fixes were late or double.

    `filtered` are the rows of the log of the others that do not count, each with the reason and what was too much.
    """

    changes: list[Change]
    filtered: dict[int, tuple[str, float]]
    late: int
    double: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A fix that was used, and what follows from the reading before it: None when that was none, gone or expired.

    `velocity` is in coordinates per second, `heading_deg` from north to the east, None for one that has not moved.
    """

    fix: Fix
    elapsed_s: float | None = None
    speed_mps: float | None = None
    velocity: Point | None = None
    heading_deg: float | None = None
    acceleration_mps2: float | None = None

    @property
    def at(self) -> Point:
        """Where the object was."""
        return self.fix.x, self.fix.y


def reading_of(fix: Fix, before: Reading | None, rules: Rules) -> Reading:
    """A fix with elapsed time, speed and velocity since the reading before, if there is one."""
    if before is None or fix.gone:
        return Reading(fix=fix)
    elapsed_s = (fix.event_us - before.fix.event_us) / 1e6
    way = metres(before.at, (fix.x, fix.y), geographic=rules.geographic)
    speed_mps, was_mps = way / elapsed_s, before.speed_mps
    turn = fix.x - before.fix.x
    if rules.geographic and abs(turn) > 180:
        turn -= math.copysign(360, turn)
    velocity = turn / elapsed_s, (fix.y - before.fix.y) / elapsed_s
    return Reading(
        fix=fix,
        elapsed_s=elapsed_s,
        speed_mps=speed_mps,
        acceleration_mps2=None
        if was_mps is None
        else (speed_mps - was_mps) / elapsed_s,
        velocity=velocity,
        heading_deg=heading(before.at, (fix.x, fix.y), geographic=rules.geographic),
    )


def heading(a: Point, b: Point, *, geographic: bool) -> float | None:
    """In which direction the second of two points lies from the first; None where they are one place."""
    if metres(a, b, geographic=geographic) == 0:
        return None
    if geographic:
        return float(_GEOD.inv(*a, *b)[0]) % 360
    return (90 - math.degrees(math.atan2(b[1] - a[1], b[0] - a[0]))) % 360


def metres(a: Point, b: Point, *, geographic: bool) -> float:
    """The distance of two points: geodesic on degrees, of the plane otherwise."""
    (x, y), (to_x, to_y) = np.array(a), np.array(b)
    return float(Metric(is_flat=not geographic).distance(x, y, to_x, to_y))


def distance_m(
    geometry: BaseGeometry, x: float, y: float, *, geographic: bool
) -> float:
    """How far a geometry is from a point, as the reference measures it."""
    metric = Metric(is_flat=not geographic)
    return float(
        distances(objects([geometry]), np.array([x]), np.array([y]), metric)[0]
    )
