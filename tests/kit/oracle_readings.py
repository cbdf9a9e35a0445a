"""What the oracle knows of objects: the last reading of each, what follows from the one before it, and distances."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from st_common.reference.columns import objects
from st_common.reference.metric import Metric, Point
from st_common.reference.shapes import distances
from tests.kit.oracle_rows import Fix, Rules

_GEOD = Geod(ellps="WGS84")


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


@dataclass(slots=True)
class Known:
    """The objects that live, with their last readings; of all objects the time of the last fix, and what ended them.

    `seen_us` is the time of the newest fix of each object, also of one that was filtered. `last` has of all objects the
    last reading with a place; of one that ended at its last time, without speed.
    """

    alive: dict[str, Reading] = field(default_factory=dict)
    last: dict[str, Reading] = field(default_factory=dict)
    last_us: dict[str, int] = field(default_factory=dict)
    seen_us: dict[str, int] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "Known":
        """The same, to be kept while this one goes on."""
        return Known(
            dict(self.alive),
            dict(self.last),
            dict(self.last_us),
            dict(self.seen_us),
            dict(self.ended),
        )

    def take(self, reading: Reading) -> None:
        """A fix was used: its object lives, unless the fix says that it is gone."""
        name = reading.fix.object
        self.last_us[name] = reading.fix.event_us
        self.alive[name] = reading
        if reading.fix.gone:
            self.end(name, "gone")
        else:
            self.last[name] = reading

    def end(self, name: str, cause: str) -> None:
        """An object lives no longer."""
        self.alive.pop(name, None)
        self.ended[name] = cause
        if name in self.last:
            self.last[name] = Reading(
                fix=replace(self.last[name].fix, event_us=self.last_us[name])
            )


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
