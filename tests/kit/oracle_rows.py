"""What the oracle reads and what it says: rows of a log, settings of a stream, changes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shapely.geometry.base import BaseGeometry


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

NEVER = -(1 << 62)
"""The clock before anything was seen."""


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
