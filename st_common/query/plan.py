"""What a query asks, apart from its text: the one thing that engines read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from sys import intern
from typing import Any, Literal, TypeVar

from st_common.controls.rows import PLAN_VERSION
from st_common.query.comparing import (
    Compare,
    Transform,
    compare_from_json,
    compare_to_json,
    transform_from_json,
    transform_to_json,
)
from st_common.query.counted import (
    AS_JSON,
    COUNTS,
    MOST_COLLECTED,
    MOST_TOLD,
    MOST_VALUES,
    OF_WAYS,
    Aggregate,
    Function,
    Top,
    Value,
    ValueFunction,
    aggregate_from_json,
    aggregate_to_json,
    asks_ways,
    has_value,
)
from st_common.query.fence import Fence, fence_from_json, fence_to_json
from st_common.query.frame import Frame, frame_from_json, frame_to_json
from st_common.query.incident import Incident, incident_from_json, incident_to_json
from st_common.query.neighbours import (
    Neighbours,
    neighbours_from_json,
    neighbours_to_json,
    places_of,
)
from st_common.record import values_of
from st_common.regions.region import MovingRegion, Region
from st_common.regions.registry import Box, region_from_json, region_to_json

Part = TypeVar("Part")

Emit = Literal["changes", "every", "istream", "dstream", "rstream"]

Predicate = Literal["intersects", "within", "dwithin", "equals", "nearest"]
How = Literal["inner", "semi", "anti", "left"]
Order = Literal["auto", "space_first", "select_first"]

__all__ = [
    "AS_JSON",
    "COUNTS",
    "MOST_COLLECTED",
    "MOST_NEAREST",
    "MOST_TOLD",
    "MOST_VALUES",
    "OF_WAYS",
    "Aggregate",
    "Box",
    "Emit",
    "Function",
    "LayerJoin",
    "Outer",
    "PairJoin",
    "Plan",
    "Region",
    "Top",
    "Value",
    "ValueFunction",
    "Window",
    "asks_ways",
    "has_value",
]
VERSION = PLAN_VERSION
"""Of a plan as JSON; older ones are read as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerJoin:
    """A join of a stream with a layer: a pair of object and feature is in the answer while the predicate holds.

    `intersects` holds inside and on the border, `within` inside alone. `distance_m` is of `dwithin` (metres, closed:
    distance <= d). `equals` joins a stored table on a key: the value of the expression `left` over the fix equals the
    feature's `right` ("fid", "kind" or the name of a tag). Beside another predicate both must hold: a bus is near
    to the route of its own line. `kinds` empty means features of every kind; they are kept sorted, each once. `tags`
    are names and values, all of which a feature must have; they are kept likewise. `fid` names the id. With `nearest`
    an object is joined with so many of the features that are left, the nearest ones; of equally far ones the first by
    fid. It stands beside `dwithin`, `equals`, or the predicate `nearest`, which asks for nothing else.

    `how` says what becomes of the pairs. `inner`: they are the rows. `semi`: the rows are the objects that are in one
    (`EXISTS`), each once; `anti`: the objects that are in none (`NOT EXISTS`). `left`: the pairs, and the objects that
    are in none, without a partner (`LEFT JOIN`); what the condition asks of features says which are joined with.
    """

    layer: str
    predicate: Predicate
    distance_m: float = 0.0
    kinds: tuple[str, ...] = ()
    left: str | None = None
    right: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    how: How = "inner"
    nearest: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(sorted(set(self.kinds))))
        if self.tags:
            object.__setattr__(
                self,
                "tags",
                tuple(sorted({(name, value) for name, value in self.tags})),
            )

    @property
    def chooses(self) -> bool:
        """Whether it chooses objects, and gives no pairs."""
        return self.how in ("semi", "anti")

    @property
    def is_outer(self) -> bool:
        """Whether objects without a feature are in the answer as well."""
        return self.how == "left"

    @property
    def noun(self) -> str:
        """What it is called in texts and errors."""
        return _LAYER_NOUNS[self.how]


_LAYER_NOUNS: dict[How, str] = {
    "inner": "JOIN",
    "semi": "EXISTS",
    "anti": "NOT EXISTS",
    "left": "LEFT JOIN",
}


MOST_NEAREST = 10_000
"""Others, or features, that may be asked for as the nearest ones of each object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJoin:
    """A join of a stream's last fixes with themselves: pairs of two objects, each pair in both orders.

    `distance_m` (None: any distance) is closed. Each of `keys` is an expression whose values must be equal on both
    sides and not null. `how` says what becomes of the pairs, as that of `LayerJoin` does: with `semi` and `anti` the
    rows are the objects that come first in one, or in none; with `left` the pairs, and the objects that come first in
    none, without a partner. With `nearest` the others of each first object are only so
    many, the nearest of those that pair and of which the condition holds; of equally far ones the first by id.
    """

    distance_m: float | None = None
    keys: tuple[str, ...] = ()
    how: How = "inner"
    nearest: int | None = None

    @property
    def chooses(self) -> bool:
        """Whether it chooses objects, and gives no pairs."""
        return self.how in ("semi", "anti")

    @property
    def is_outer(self) -> bool:
        """Whether objects without another one are in the answer as well."""
        return self.how == "left"

    @property
    def noun(self) -> str:
        """What it is called in texts and errors."""
        return _PAIR_NOUNS[self.how]


_PAIR_NOUNS: dict[How, str] = {
    "inner": "a JOIN of the stream with itself",
    "semi": "EXISTS about the stream itself",
    "anti": "NOT EXISTS about the stream itself",
    "left": "a LEFT JOIN of the stream with itself",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """PLACE's window: fixes that qualified count for `seconds`, or until `tuples` newer ones did; one is set."""

    seconds: float | None = None
    tuples: int | None = None


def _part(
    value: Mapping[str, Any], name: str, read: Callable[[Any], Part]
) -> Part | None:
    """A part of a plan that was written as JSON; None where the plan has none."""
    written = value.get(name)
    return read(written) if written else None


def _layer_join(value: Mapping[str, Any]) -> LayerJoin:
    return LayerJoin(**{**value, "kinds": tuple(value.get("kinds", ()))})


def _pair_join(value: Mapping[str, Any]) -> PairJoin:
    return PairJoin(**{**value, "keys": tuple(value.get("keys", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """What is asked of the rows of a query: `SELECT .. FROM (SELECT ..) r WHERE .. GROUP BY ..`.

    The rows are those that the rest of the plan has in its answer now. Expressions are canonical SQL over their columns
    (see `operators.outer`): `object`, `partner` and `value` as in a row of changes, and those that the plan selects.
    `where` chooses among them. With `lasting_s` a row counts once it was chosen for so long without a break. With a
    `window` of seconds one that was chosen counts on for so long after it left.
    Without an `aggregate` the rows that count are the answer, as they are.
    """

    where: str | None = None
    aggregate: Aggregate | None = None
    window: Window | None = None
    lasting_s: float | None = None

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions over the columns of rows, without those that are not there."""
        where = () if self.where is None else (self.where,)
        if self.aggregate is None:
            return where
        return (*where, *self.aggregate.arguments, *self.aggregate.grouped_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One continuous query on one stream: from the spatial operator up to select, join, aggregate and distinct.

    `inside` and `neighbours` together are the k nearest among those inside. `where` and other expressions are
    canonical SQL over the stream's attributes and `object`, `event_ts`, `x`, `y`, `elapsed_s` (since the object's
    reading before) and `speed_mps`. `columns` are names and expressions of what a change shows beside its key.
    `valid_until` gives with each member the event time until which it stays one, from its velocity (G8).
    `order` says whether the spatial operator stands below the selection (`space_first`) or above it.

    With a `frame` the answer is of the fixes in it: `where`, columns and aggregates are about these fixes, while
    `inside`, `neighbours`, `join` and `compare` say which objects count now. `transforms` and `compare` are BBoxDB's.
    A `fence` tells of events at the border of `inside`, or of the features joined with (X3). An `incident` tells when
    `where`, and `inside` or `join` with it, begins to hold for some time, and when that ends (X8).
    `emit` is what is written, or which of CQL's streams the query gives (SPEC W6). With an `outer` query all else
    says what its rows are, and it is told instead of them, as `emit` says.
    """

    stream: str
    inside: Region | None = None
    neighbours: Neighbours | None = None
    join: LayerJoin | None = None
    pairs: PairJoin | None = None
    where: str | None = None
    window: Window | None = None
    frame: Frame | None = None
    transforms: tuple[Transform, ...] = ()
    compare: Compare | None = None
    fence: Fence | None = None
    incident: Incident | None = None
    aggregate: Aggregate | None = None
    columns: tuple[tuple[str, str], ...] = ()
    valid_until: bool = False
    order: Order = "auto"
    emit: Emit = "changes"
    outer: Outer | None = None

    @property
    def focals(self) -> tuple[str, ...]:
        """The objects that the query goes with, each once, in the plan's order."""
        moving = self.inside.focals if isinstance(self.inside, MovingRegion) else ()
        places = places_of(self.neighbours) if self.neighbours else ()
        return tuple(
            dict.fromkeys(
                [*moving, *(place.focal for place in places if place.focal is not None)]
            )
        )

    @property
    def chosen_by(self) -> LayerJoin | None:
        """The join that chooses objects by the features of a layer (`EXISTS`, `NOT EXISTS`); None without."""
        return self.join if self.join is not None and self.join.chooses else None

    @property
    def joined_with(self) -> LayerJoin | PairJoin | None:
        """What objects are joined with: a layer, or each other; None without."""
        return self.join if self.join is not None else self.pairs

    @property
    def chooses(self) -> bool:
        """Whether a join chooses objects, by the features of a layer or by other objects, and gives no pairs."""
        joined = self.joined_with
        return joined is not None and joined.chooses

    @property
    def gives_pairs(self) -> bool:
        """Whether each object stands beside a partner in the answer: a feature, or another object."""
        return self.joined_with is not None and not self.chooses

    @property
    def tells_events(self) -> bool:
        """Whether machines judge it, each of one object: a fence, or an incident."""
        return self.fence is not None or self.incident is not None

    @property
    def by_ticks(self) -> bool:
        """Whether the query is judged at ticks of event time; else it is judged fix by fix (docs/how-it-works.md)."""
        moves = isinstance(self.inside, MovingRegion) or self.neighbours is not None
        above = (
            self.window is not None
            or self.aggregate is not None
            or self.valid_until
            or self.emit == "rstream"
            or self.outer is not None
        )
        return moves or above or self.pairs is not None or self.frame is not None

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values without what is default; `from_json` gives an equal plan back."""
        value: dict[str, Any] = {"v": VERSION, "stream": self.stream}
        for name, default, written in _WRITTEN:
            if (part := getattr(self, name)) != default:
                value[name] = written(part) if written else part
        return value

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Plan":
        """The plan that `to_json` gave, in this version or in an older one."""
        get, pairs, frame = value.get, value.get("pairs"), value.get("frame")
        part, transforms = partial(_part, value), value.get("transforms", ())
        return Plan(
            stream=intern(value["stream"]),  # one text for a million plans
            inside=part("inside", region_from_json),
            neighbours=part("neighbours", neighbours_from_json),
            join=part("join", _layer_join),
            pairs=_pair_join(pairs) if pairs is not None else None,
            window=part("window", lambda window: Window(**window)),
            frame=frame_from_json(frame) if frame is not None else None,
            transforms=tuple([transform_from_json(one) for one in transforms]),
            compare=part("compare", compare_from_json),
            fence=part("fence", fence_from_json),
            incident=part("incident", incident_from_json),
            aggregate=part("aggregate", aggregate_from_json),
            where=get("where"),
            columns=tuple([(name, text) for name, text in get("columns", ())]),
            valid_until=get("valid_until", False),
            order=get("order", "auto"),
            emit=get("emit", "changes"),
            outer=_outer_from_json(get("outer")),
        )


def _outer_to_json(outer: Outer) -> dict[str, Any]:
    value = values_of(outer)
    if outer.aggregate is not None:
        value["aggregate"] = aggregate_to_json(outer.aggregate)
    if outer.window is not None:
        value["window"] = values_of(outer.window)
    return value


def _outer_from_json(value: Mapping[str, Any] | None) -> Outer | None:
    """What `_outer_to_json` gave; an object without parts asks for all rows."""
    if value is None:
        return None
    parts = dict(value)
    if "aggregate" in parts:
        parts["aggregate"] = aggregate_from_json(parts["aggregate"])
    if "window" in parts:
        parts["window"] = Window(**parts["window"])
    return Outer(**parts)


_WRITTEN: tuple[tuple[str, Any, Callable[[Any], Any] | None], ...] = (
    ("inside", None, region_to_json),
    ("neighbours", None, neighbours_to_json),
    ("join", None, values_of),
    ("pairs", None, values_of),
    ("window", None, values_of),
    ("aggregate", None, aggregate_to_json),
    ("frame", None, frame_to_json),
    ("transforms", (), lambda steps: [transform_to_json(step) for step in steps]),
    ("compare", None, compare_to_json),
    ("fence", None, fence_to_json),
    ("incident", None, incident_to_json),
    ("where", None, None),
    ("columns", (), None),
    ("valid_until", False, None),
    ("order", "auto", None),
    ("emit", "changes", None),
    ("outer", None, _outer_to_json),
)
