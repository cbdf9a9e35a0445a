"""What the oracle reads and what it says: rows of a log, settings, changes; what follows of a fix; and what SQL means.

Expressions of random plans are SQL for the engine; beside it stands what they mean, in Python.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from st_common.config.columns import GEOMETRY, sides_of
from st_common.config.stream import AttributeType
from st_common.query.plan import Plan
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
    """Everything that the rows bring about, in the order of the log, which fixes were late, and how many double.

    `filtered` are the rows of the log of the others that do not count, each with the reason and what was too much.
    """

    changes: list[Change]
    filtered: dict[int, tuple[str, float]]
    late_rows: frozenset[int]
    double: int
    used: int

    @property
    def late(self) -> int:
        """How many fixes were late."""
        return len(self.late_rows)


@dataclass(frozen=True, slots=True)
class Reading:
    """A fix that was used, and what follows from the reading before it: None when that was none, gone or expired.

    `heading_deg` is from north to the east, None for one that has not moved.
    """

    fix: Fix
    elapsed_s: float | None = None
    speed_mps: float | None = None
    heading_deg: float | None = None
    acceleration_mps2: float | None = None


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


# -- what SQL means ----------------------------------------------------------------------------------------------------

Near = tuple[int, float]
"""Which of the nearest a member is, and how far away."""
Meaning = Callable[[Reading, str | None], Any]
"""The value for a reading and, in the groups of a layer join, a partner; None is null."""

ATTRIBUTES: dict[str, AttributeType] = {
    "kind": "string",
    "load": "double",
    "seats": "long",
    "free": "bool",
}
"""The attributes of random streams, as settings declare them."""

EXTENTS: dict[str, AttributeType] = {
    GEOMETRY: "string",
    **dict.fromkeys(sides_of(4), "double"),
}
"""The attributes of elements with an extent, which nobody declares."""


def value_of(text: str, reading: Reading, partner: str | None = None) -> Any:
    """The value of an expression of this module.

    Raises:
        KeyError: it is none of them.
    """
    return EXPRESSIONS[text](reading, partner)


def text_of(value: object) -> str:
    """A value as SQL's text: what groups are named by, and keys are compared by."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def value_of_row(text: str, row: Mapping[str, Any]) -> Any:
    """The value of an expression of `OF_ROWS` for a row of a query; as a text where it is cast to one."""
    plain = text.removeprefix("CAST(").removesuffix(" AS VARCHAR)")
    value = OF_ROWS[plain](row)
    return value if plain == text or value is None else text_of(value)


def value_of_pair(text: str, one: Reading, other: Reading | None) -> Any:
    """The value of an expression for a pair; conditions may be several of this module, joined by AND.

    Of who has no other (LEFT JOIN) all that names it is null.
    """
    if other is None:
        return None if text in PAIRS else value_of(text, one)
    values = [_of_pair(part, one, other) for part in text.split(" AND ")]
    if len(values) == 1:
        return values[0]
    return None if None in values and False not in values else all(values)


def value_beside(text: str, reading: Reading, feature: Mapping[str, Any]) -> Any:
    """The value of an expression for a fix and a feature; several conditions may be joined by AND."""
    if text in FEATURES_SHOWN:
        return FEATURES_SHOWN[text](feature)
    if text in OF_NEAR:
        return OF_NEAR[text]((feature["near.rank"], feature["near.distance_m"]))
    values = [
        OF_FEATURES[part](reading, feature)
        if part in OF_FEATURES
        else value_of(part, reading)
        for part in text.split(" AND ")
    ]
    return None if None in values and False not in values else all(values)


def _of_pair(text: str, one: Reading, other: Reading) -> Any:
    known = PAIRS.get(text)
    return value_of(text, one) if known is None else known(one, other)


def fields_of(plan: Plan, reading: Reading, other: Reading | None = None) -> str | None:
    """The selected columns as a JSON object; of streams and fences with the place of the fix; None without any.

    Of pairs they may be about the `other` object too; None: of none. Who has left is none of the nearest any more.
    """
    has_place = plan.tells_events or plan.emit in ("istream", "dstream", "rstream")
    stamps = {"x": "x", "y": "y"} if has_place else {}
    columns = {**stamps, **dict(plan.columns)}
    shown = {
        name: None if text in OF_NEAR else value_of_pair(text, reading, other)
        for name, text in columns.items()
    }
    return json.dumps(shown) if columns else None


def _attribute(name: str) -> Meaning:
    return lambda reading, _: reading.fix.attributes.get(name)


def _if_known(of: Callable[[Reading], Any], then: Callable[[Any], Any]) -> Meaning:
    """Null where what it is about is null."""
    return lambda reading, _: None if of(reading) is None else then(of(reading))


def _any(values: Sequence[bool | None]) -> bool | None:
    """OR of three values: true, false, unknown."""
    if True in values:
        return True
    return None if None in values else False


def _kind(reading: Reading) -> Any:
    return reading.fix.attributes.get("kind")


def _load(reading: Reading) -> Any:
    return reading.fix.attributes.get("load")


def _seats(reading: Reading) -> Any:
    return reading.fix.attributes.get("seats")


def _free(reading: Reading) -> Any:
    return reading.fix.attributes.get("free")


def _of_clocks(reading: Reading) -> int:
    """The microseconds that clocks in India show, as of a clock that stood at 0 in 1970, in a cycle of 7 seconds."""
    at = datetime.fromtimestamp(reading.fix.event_us // 1_000_000, UTC)
    ahead = at.astimezone(ZoneInfo("Asia/Kolkata")).utcoffset() or timedelta()
    shown_us = reading.fix.event_us + ahead // timedelta(microseconds=1)
    return shown_us % 7_000_000


_OF_CLOCKS = "EPOCH(event_ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Kolkata')"
CONDITIONS: dict[str, Meaning] = {
    "kind = 'taxi'": _if_known(_kind, lambda kind: kind == "taxi"),
    "kind IN ('taxi', 'bus')": _if_known(_kind, lambda kind: kind in ("taxi", "bus")),
    "load > 2": _if_known(_load, lambda load: load > 2),
    "load IS NULL": lambda reading, _: _load(reading) is None,
    "free": _attribute("free"),
    "NOT free": _if_known(_free, lambda free: not free),
    "free OR load > 2": lambda r, _: _any(
        [_free(r), None if _load(r) is None else _load(r) > 2]
    ),
    "x + y < 8": lambda reading, _: reading.fix.x + reading.fix.y < 8,
    "object <> 'a'": lambda reading, _: reading.fix.object != "a",
    "object = 'b'": lambda reading, _: reading.fix.object == "b",
    "speed_mps > 1": _if_known(
        lambda reading: reading.speed_mps, lambda speed: speed > 1
    ),
    "heading_deg < 100": _if_known(
        lambda reading: reading.heading_deg, lambda way: way < 100
    ),
    "heading_deg IS NULL": lambda reading, _: reading.heading_deg is None,
    "acceleration_mps2 > 0.25": _if_known(
        lambda reading: reading.acceleration_mps2, lambda change: change > 0.25
    ),
    "acceleration_mps2 IS NULL": lambda r, _: r.acceleration_mps2 is None,
    "elapsed_s <= 2": _if_known(
        lambda reading: reading.elapsed_s, lambda elapsed: elapsed <= 2
    ),
    "elapsed_s IS NULL": lambda reading, _: reading.elapsed_s is None,
    "epoch_us(event_ts) % 2000000 < 1000000": lambda reading, _: (
        reading.fix.event_us % 2_000_000 < 1_000_000
    ),
    f"{_OF_CLOCKS} % 7 < 3": lambda reading, _: _of_clocks(reading) < 3_000_000,
}
"""For WHERE."""

MOTION: dict[str, Meaning] = {
    "speed_mps": lambda reading, _: reading.speed_mps,
    "heading_deg": lambda reading, _: reading.heading_deg,
    "acceleration_mps2": lambda reading, _: reading.acceleration_mps2,
}
"""For where fixes will be."""

PLACES: dict[str, Meaning] = {
    "x": lambda reading, _: None if reading.fix.gone else reading.fix.x,
    "y": lambda reading, _: None if reading.fix.gone else reading.fix.y,
}
"""For columns."""

NUMBERS: dict[str, Meaning] = {
    "load": _attribute("load"),
    "seats": _attribute("seats"),
    "x * 2": lambda reading, _: reading.fix.x * 2,
    "load + seats": lambda r, _: (
        None if _load(r) is None or _seats(r) is None else _load(r) + _seats(r)
    ),
}
"""For the arguments of aggregates; sums of them are exact in any order."""

GROUPS: dict[str, Meaning] = {
    "kind": _attribute("kind"),
    "free": _attribute("free"),
    "seats % 2": _if_known(_seats, lambda seats: seats % 2),
    "floor(x / 4)": lambda reading, _: float(math.floor(reading.fix.x / 4)),
    "object": lambda reading, _: reading.fix.object,
    f"floor({_OF_CLOCKS}) % 7": lambda r, _: float(_of_clocks(r) // 1_000_000),
    "GRID_CELL(x, y, 3)": lambda reading, _: (
        f"{math.floor(reading.fix.x / 3)}:{math.floor(reading.fix.y / 3)}"
    ),
}
"""For GROUP BY, DISTINCT and keys."""

PARTNER: dict[str, Meaning] = {"partner": lambda _, partner: partner}
"""For GROUP BY above a join with a layer."""

OfPair = Callable[[Reading, Reading], Any]
"""The value for a pair of readings; None is null."""


def _both(of: Callable[[Reading], Any], then: Callable[[Any, Any], Any]) -> OfPair:
    """Null where it is null of one of the two."""
    return lambda one, other: (
        None if None in (of(one), of(other)) else then(of(one), of(other))
    )


OTHERS: dict[str, OfPair] = {
    "\"other.kind\" = 'bus'": lambda _, b: (
        CONDITIONS["kind = 'taxi'"](b, None) if _kind(b) is None else _kind(b) == "bus"
    ),
    '"other.load" > 1': lambda _, b: None if _load(b) is None else _load(b) > 1,
    '"other.speed_mps" IS NULL': lambda _, b: b.speed_mps is None,
    "\"other.object\" <> 'a'": lambda _, b: b.fix.object != "a",
    '"other.free"': lambda _, b: _free(b),
}
"""Conditions on the other object of a pair."""

OF_BOTH: dict[str, OfPair] = {
    'load > "other.load"': _both(_load, lambda a, b: a > b),
    'x < "other.x"': lambda a, b: a.fix.x < b.fix.x,
    'kind <> "other.kind"': _both(_kind, lambda a, b: a != b),
    'seats + "other.seats" > 3': _both(_seats, lambda a, b: a + b > 3),
    'object < "other.object"': lambda a, b: a.fix.object < b.fix.object,
    'abs(speed_mps - "other.speed_mps") > 0.5': _both(
        lambda one: one.speed_mps, lambda a, b: abs(a - b) > 0.5
    ),
}
"""Conditions on both objects of a pair."""

OF_OTHERS: dict[str, OfPair] = {
    '"other.kind"': lambda _, b: _kind(b),
    '"other.seats"': lambda _, b: _seats(b),
    '"other.x"': lambda _, b: b.fix.x,
    'load + "other.load"': _both(_load, lambda a, b: a + b),
}
"""For columns of pairs."""


OF_NEAR: dict[str, Callable[[Near], Any]] = {
    '"near.rank"': lambda near: near[0],
    'round("near.distance_m", 3)': lambda near: round(near[1], 3),
    '"near.rank" * 2 + 1': lambda near: near[0] * 2 + 1,
}
"""For columns of neighbours."""


def _size(feature: Mapping[str, Any], name: str = "other.size") -> float | None:
    size = feature[name]
    return None if size is None else float(size)


def _with_size(
    of: Callable[[Reading], Any], name: str = "other.size"
) -> Callable[[Reading, Any], Any]:
    """Whether a value of the fix is more than the size; null where one of them is."""

    def is_more(reading: Reading, feature: Mapping[str, Any]) -> bool | None:
        value, size = of(reading), _size(feature, name)
        return None if value is None or size is None else value > size

    return is_more


OF_FEATURES: dict[str, Callable[[Reading, Mapping[str, Any]], Any]] = {
    "\"other.kind\" <> 'park'": lambda _, f: f["other.kind"] != "park",
    '"other.line" IS NULL': lambda _, f: f["other.line"] is None,
    'TRY_CAST("other.size" AS DOUBLE) > 2': lambda _, f: (
        None if _size(f) is None else (_size(f) or 0.0) > 2
    ),
    'load > TRY_CAST("other.size" AS DOUBLE)': _with_size(_load),
    'speed_mps > "other.size in m/s"': _with_size(
        lambda reading: reading.speed_mps, "other.size in m/s"
    ),
    'load > "other.size in km/h"': _with_size(_load, "other.size in km/h"),
    '"pair.distance_m" <= 1.5': lambda _, f: f["pair.distance_m"] <= 1.5,
    '"pair.border_m" < 1.3': lambda _, f: f["pair.border_m"] < 1.3,
    'load > "pair.distance_m"': lambda one, f: (
        None if _load(one) is None else _load(one) > f["pair.distance_m"]
    ),
}
"""Conditions on a fix and a feature of a random layer."""

FEATURES_SHOWN: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    '"other.kind"': lambda f: f["other.kind"],
    'TRY_CAST("other.size" AS DOUBLE) * 2': lambda f: (
        None if _size(f) is None else (_size(f) or 0.0) * 2
    ),
    'round("pair.border_m", 3)': lambda f: (
        None if f["pair.border_m"] is None else round(f["pair.border_m"], 3)
    ),
    'round("pair.distance_m", 3)': lambda f: (
        None if f["pair.distance_m"] is None else round(f["pair.distance_m"], 3)
    ),
}
"""For columns of a fix and a feature, all null where there is none."""

PAIRS: dict[str, OfPair] = {**OTHERS, **OF_BOTH, **OF_OTHERS}

EXPRESSIONS: dict[str, Meaning] = {
    "epoch_us(event_ts)": lambda reading, _: reading.fix.event_us,
    **CONDITIONS,
    **MOTION,
    **{name: _attribute(name) for name in EXTENTS},
    **PLACES,
    **NUMBERS,
    **GROUPS,
    **PARTNER,
}

NAMES = (
    *("object", "partner", "value", "speed", "way_m", "odometer_m"),
    *("c0", "c1", "c2", "k0", "k1"),
)
"""What columns of rows in random plans are called."""

OfRow = Callable[[Mapping[str, Any]], Any]
"""The value for a row of a query by the names of its columns; None is null."""


def _of_column(name: str, then: Callable[[Any], Any]) -> OfRow:
    """Null where the column is null, or is none of the row's."""
    return lambda row: None if row.get(name) is None else then(row[name])


OF_ROWS: dict[str, OfRow] = {}
for _column in NAMES:
    OF_ROWS |= {
        _column: _of_column(_column, lambda value: value),
        f"{_column} > 1": _of_column(_column, lambda value: value > 1),
        f"{_column} <= 4": _of_column(_column, lambda value: value <= 4),
        f"abs({_column}) > 2": _of_column(_column, lambda value: abs(value) > 2),
        f"{_column} * 2": _of_column(_column, lambda value: value * 2),
        f"{_column} <> 'a'": _of_column(_column, lambda value: value != "a"),
        f"{_column} IN ('b', 'bus')": _of_column(
            _column, lambda value: value in ("b", "bus")
        ),
        f"length({_column})": _of_column(_column, len),
    }
"""Texts of outer queries that random plans may use, and what they mean."""
