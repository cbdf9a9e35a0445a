"""What a kind of query sees and what it supplies: the objects, its queries, their criteria, four methods (GPAC).

GPAC is one skeleton that "can be adjusted through a set of methods to behave as various continuous spatio-temporal
queries" (section 3). A kind supplies them over arrays, for all of its queries at once (SPEC G1, P8).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.skeleton.selection import EVERYONE, Selection

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]


def _no_floats() -> Floats:
    return np.empty(0)


def _no_ints() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All objects of a stream by number, at one moment; n of them.

    `x`, `y` are of the last fixes in the coordinates of `space`, `vx`, `vy` coordinates per second, NaN
    when unknown. `selection` says which objects satisfy the rules of the queries, where and inside. It belongs to the
    moment, not to the queries: criteria that are kept name rules by number, so that a number must mean the same rule as
    long as criteria are kept that name it.
    """

    x: Floats
    y: Floats
    alive: Bools
    ids: pa.Array
    space: Space
    selection: Selection = EVERYONE
    vx: Floats = field(default_factory=_no_floats)
    vy: Floats = field(default_factory=_no_floats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The queries of one kind, a row each; m of them. What the kind does not use is empty.

    Attributes:
        focal: int64[m], the object that the query goes with; -1: none, it stands still at x, y (NaN: it has no answer).
        x: float64[m].
        y: float64[m].
        eligible: int64[m], the rule of `World.selection` that objects satisfy that can be members.
        width: float64[m] of boxes, full side length; `height` likewise.
        metres: bool[m] of boxes: width and height are metres.
        radius: float64[m] of circles, metres or the unit of planar coordinates.
        k: int64[m] of nearest and group, at least 1.
        total: int8[m] of group: 0 sum, 1 max, 2 min of distances.
        place_row: int64[p] of group: the row of each place, ascending. `place_focal`, `place_x`, `place_y` are for a
            place what focal, x and y are for a row, which are not used then.
    """

    focal: Ints
    x: Floats
    y: Floats
    eligible: Ints
    width: Floats = field(default_factory=_no_floats)
    height: Floats = field(default_factory=_no_floats)
    metres: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    radius: Floats = field(default_factory=_no_floats)
    k: Ints = field(default_factory=_no_ints)
    total: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    place_row: Ints = field(default_factory=_no_ints)
    place_focal: Ints = field(default_factory=_no_ints)
    place_x: Floats = field(default_factory=_no_floats)
    place_y: Floats = field(default_factory=_no_floats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Q.Criteria of some queries, a row each: what an object is held against, as the world was. Unused is empty.

    `query` are the rows of the table. `focal` is int64[w, f], -1 for none: objects that are never members. A centre or
    place of NaN has no member. `limit` is the greatest distance of a member, as kinds compare distances; of the
    objects that are exactly so far those whose id is not after that of the object `tie` are members, all when -1.
    `gap` is not of rows but of objects: the distance to the nearest other one (reverse).
    """

    query: Ints
    focal: Ints
    eligible: Ints
    x: Floats
    y: Floats
    half_width: Floats = field(default_factory=_no_floats)
    half_height: Floats = field(default_factory=_no_floats)
    limit: Floats = field(default_factory=_no_floats)
    tie: Ints = field(default_factory=_no_ints)
    total: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    gap: Floats = field(default_factory=_no_floats)

    def take(self, rows: Ints) -> "Criteria":
        """The criteria of these rows."""
        return replace(
            self, **{name: column[rows] for name, column in _columns(self).items()}
        )

    def with_rows(self, rows: Ints, other: "Criteria") -> "Criteria":
        """These criteria with those of `other` in place of these rows, one by one."""
        if not len(rows) and not len(other.gap):
            return self
        theirs = _columns(other)
        columns = {
            name: _replaced(column, rows, theirs[name])
            for name, column in _columns(self).items()
        }
        return replace(self, **columns, gap=other.gap)


def _columns(criteria: Criteria) -> dict[str, np.ndarray]:
    """The columns that have a row for each query."""
    columns = {
        name: getattr(criteria, name)
        for name in Criteria.__dataclass_fields__
        if name != "gap"
    }
    return {
        name: column
        for name, column in columns.items()
        if len(column) == len(criteria.query)
    }


def _replaced(column: np.ndarray, rows: Ints, values: np.ndarray) -> np.ndarray:
    """A copy with these rows replaced; of two widths the smaller one is filled up with what means nothing."""
    if column.ndim == 1:
        out = column.copy()
        out[rows] = values
        return out
    width = max(column.shape[1], values.shape[1])
    out = np.full(
        (len(column), width), -1 if column.dtype.kind == "i" else np.nan, column.dtype
    )
    out[:, : column.shape[1]] = column
    out[rows] = -1 if column.dtype.kind == "i" else np.nan
    out[rows, : values.shape[1]] = values
    return out


class Kind(Protocol):
    """The four methods that make GPAC's skeleton a kind of query (paper, section 3.1 and 3.3), over arrays.

    Attributes:
        is_dynamic: Q.IsDynamic(): members decide the criteria (as the k-th nearest does). Such a query is judged anew
            when its focal object or a member changed, or when a changed object is now in its area of margin 0.
        touched_by_all: any change of any object judges all queries anew.
        searches: it asks whether objects are eligible that are near a query, not of all objects.
    """

    is_dynamic: ClassVar[bool]
    touched_by_all: ClassVar[bool]
    searches: ClassVar[bool]

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """Q.Update(): the criteria of these rows of the table in this world, aligned with `which`."""

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """Q.InCacheArea(): pairs of a row of the criteria and one of the objects in the anticipated area.

        The area is the query's grown by the margin (metres, or the unit of planar coordinates). With margin 0 the pairs
        hold at least every member. They are of live objects with a place only, each once, in any order; criteria that
        were kept from before are held against the objects as they are now.
        """

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Q.satisfy(): for each pair whether the object is a member, exactly."""


@runtime_checkable
class Ranking(Kind, Protocol):
    """A kind whose members are those that come first by something that is known of each pair of a query and an object.

    So several ticks can be judged at once: what is known of a pair changes only where one of the two does.
    """

    def asked(self, world: World, table: Table, which: Ints) -> Criteria:
        """The criteria of these rows of the table as far as no member decides them."""

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """What each pair is compared by; NaN where the object cannot be a member."""

    def chosen(self, world: World, table: Table, value: Floats, at: Ints) -> Bools:
        """Who is a member: bool[t, m, n].

        Args:
            world: objects as they are at some tick, each by another number at another tick.
            table: m queries; `focal` is not used.
            value: float64[t, m, n], what pairs are compared by at t ticks.
            at: int64[t, n], the objects at each tick.
        """


def centres(world: World, focal: Ints, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Where queries are: at their focal objects, or where they stand still; NaN when the focal object is not alive."""
    moving = np.flatnonzero(focal >= 0)
    x, y = np.array(x, np.float64), np.array(y, np.float64)
    alive = world.alive[focal[moving]]
    x[moving] = np.where(alive, world.x[focal[moving]], np.nan)
    y[moving] = np.where(alive, world.y[focal[moving]], np.nan)
    return x, y


def admitted(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
    """For each pair whether the object can be a member at all: alive, eligible, and not a focal object of the query."""
    keep = world.alive[obj]
    for focal in criteria.focal.T:
        keep &= focal[row] != obj
    if world.selection is EVERYONE:
        return keep
    held = np.flatnonzero(keep)
    keep[held] = world.selection.holds(criteria.eligible[row[held]], obj[held])
    return keep


def those_admitted(
    keep: Bools, world: World, criteria: Criteria, row: Ints, obj: Ints
) -> Bools:
    """For each pair whether it is to be kept and its object can be a member; only pairs to be kept are asked about."""
    held, out = np.flatnonzero(keep), np.zeros(len(keep), np.bool_)
    out[held] = admitted(world, criteria, row[held], obj[held])
    return out


def measured_where(keep: Bools, measure: Callable[[Ints], Floats]) -> Floats:
    """What pairs are compared by where they are to be kept, NaN where not; the places of those that are asked for."""
    out = np.full(len(keep), np.nan)
    which = np.flatnonzero(keep)
    out[which] = measure(which)
    return out


def at_places(world: World, table: Table, which: Ints) -> Criteria:
    """Criteria of queries that are asked about a place each, or about where an object is: the place alone."""
    focal = table.focal[which]
    x, y = centres(world, focal, table.x[which], table.y[which])
    return Criteria(
        query=which, focal=focal[:, None], eligible=table.eligible[which], x=x, y=y
    )


def distances(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
    """How far admitted objects are from their query's place, as `Space.rank` orders; NaN for all others."""
    return measured_where(
        admitted(world, criteria, row, obj),
        lambda keep: world.space.rank(
            criteria.x[row[keep]],
            criteria.y[row[keep]],
            world.x[obj[keep]],
            world.y[obj[keep]],
        ),
    )
