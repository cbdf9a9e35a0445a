"""What a kind of query sees and what it supplies: the objects, its queries, their criteria, four methods (GPAC).

GPAC is one skeleton that "can be adjusted through a set of methods to behave as various continuous spatio-temporal
queries" (section 3). A kind supplies them over arrays, for all of its queries at once (SPEC G1, P8).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.skeleton.combined_forms import Forms
from st_common.operators.skeleton.selection import EVERYONE, Selection

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]


def _no_floats() -> Floats:
    return np.empty(0)


def _no_ints() -> Ints:
    return np.empty(0, np.int64)


def _no_shapes(objects: Ints) -> npt.NDArray[np.object_]:
    """What gives the geometries of objects where no kind asks for any."""
    return np.full(len(objects), None, object)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All objects of a stream by number, at one moment; n of them.

    Attributes:
        x: float64[n], of the last fixes, in the coordinates of `space`; NaN where an object is nowhere. `y` likewise.
        alive: bool[n], neither gone nor silent.
        ids: string[n]; ties are decided by them.
        space: what coordinates mean.
        selection: which objects satisfy the rules of the queries, where and inside. It belongs to the moment, not to
            the queries: criteria that are kept name rules by number, so that a number must mean the same rule as long
            as criteria are kept that name it.
        shapes_of: gives the geometries of some objects (int64[m]), of those that kinds of extents ask about; object[m].
        vx: float64[n], coordinates per second, NaN when unknown; `vy` likewise. Empty where no kind asks.
    """

    x: Floats
    y: Floats
    alive: Bools
    ids: pa.Array
    space: Space
    selection: Selection = EVERYONE
    vx: Floats = field(default_factory=_no_floats)
    vy: Floats = field(default_factory=_no_floats)
    shapes_of: Callable[[Ints], npt.NDArray[np.object_]] = _no_shapes


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
            place what focal, x and y are for a row, which are not used then. Of combined regions a place for each slot.
        form: int64[m] of combined regions, the row of each in `forms`.
        forms: what combined regions are made of; None without.
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
    form: Ints = field(default_factory=_no_ints)
    forms: Forms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Q.Criteria of w queries: what an object is held against, as the world was. What a kind does not use is empty.

    Attributes:
        query: int64[w], rows of the table.
        focal: int64[w, f], objects that are never members, -1 for none.
        eligible: int64[w], the rule that members satisfy.
        x: float64[w], the centre, of groups and combined regions float64[w, places]; NaN: it has no member. `y`
            likewise.
        half_width: float64[w], of boxes, half a side in coordinates; `half_height` likewise.
        limit: float64[w], the greatest distance of a member, as the kind compares distances: of circles the radius, of
            neighbours a rank of `Space.rank`, which is infinite with fewer than k objects.
        tie: int64[w], of the objects that are exactly so far those are members whose id is not after this object's; -1:
            all.
        total: int8[w], of groups: 0 sum, 1 max, 2 min of distances.
        form: int64[w], of combined regions, the row of each in `forms`, which is not of rows.
        forms: see `form`.
        gap: not of rows but of objects, float64[n]: the distance to the nearest other one (reverse).
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
    form: Ints = field(default_factory=_no_ints)
    forms: Forms | None = None
    gap: Floats = field(default_factory=_no_floats)

    def take(self, rows: Ints) -> "Criteria":
        """The criteria of these rows (int64, places)."""
        taken: dict[str, Any] = {
            name: column[rows] for name, column in _columns(self).items()
        }
        return replace(self, **taken)

    def with_rows(self, rows: Ints, other: "Criteria") -> "Criteria":
        """These criteria with others in place of some rows; a copy.

        Args:
            rows: int64[r], places of the rows, each once.
            other: r criteria, one for each row; `gap`, which is not of rows, is taken from them.
        """
        if not len(rows) and not len(other.gap):
            return self
        theirs = _columns(other)
        columns: dict[str, Any] = {
            name: _replaced(column, rows, theirs[name])
            for name, column in _columns(self).items()
        }
        return replace(self, **columns, gap=other.gap)


def _columns(criteria: Criteria) -> dict[str, np.ndarray]:
    """The columns that have a row for each query."""
    columns = {
        name: getattr(criteria, name)
        for name in Criteria.__dataclass_fields__
        if name not in ("gap", "forms")
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
        caches: whether objects near a query are kept, so that it need not look for others when it moves (paper, 3.3).
    """

    is_dynamic: ClassVar[bool]
    touched_by_all: ClassVar[bool]
    caches: ClassVar[bool]

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """Q.Update(): the criteria of some queries in this world.

        Args:
            world: the last fixes of all objects.
            table: the queries.
            which: int64[w], rows of the table.

        Returns:
            w criteria, aligned with `which`.
        """

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """Q.InCacheArea(): who is in the anticipated area, the query's grown by a margin.

        With margin 0 the pairs hold at least every member.

        Args:
            world: the last fixes of all objects.
            criteria: where the queries are, or were: those that were kept are held against the objects as they are now.
            objects: int64, the objects that are asked about.
            margin: metres, or the unit of planar coordinates.

        Returns:
            Pairs of a row of the criteria and an object, of live objects with a place only, each once, in any order.
        """

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Q.satisfy(): whether the object of each pair is a member, exactly; bool[p].

        Args:
            world: the last fixes of all objects.
            criteria: of the queries.
            row: int64[p], rows of the criteria.
            obj: int64[p], objects.
        """


@runtime_checkable
class Ranking(Kind, Protocol):
    """A kind whose members are those that come first by something that is known of each pair of a query and an object.

    So several ticks can be judged at once: what is known of a pair changes only where one of the two does.
    """

    def asked(self, world: World, table: Table, which: Ints) -> Criteria:
        """The criteria of some queries as far as no member decides them: a place, no limit.

        Args:
            world: the objects, or their versions.
            table: the queries.
            which: int64[w], rows of the table.
        """

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """What each pair is compared by; float64[p], NaN where the object cannot be a member.

        Args:
            world: the objects, or their versions.
            criteria: of the queries.
            row: int64[p], rows of the criteria.
            obj: int64[p], objects.
        """

    def chosen(self, world: World, table: Table, value: Floats, at: Ints) -> Bools:
        """Who is a member: bool[t, m, n].

        Args:
            world: objects as they are at some tick, each by another number at another tick.
            table: m queries; `focal` is not used.
            value: float64[t, m, n], what pairs are compared by at t ticks.
            at: int64[t, n], the objects at each tick.
        """


def centres(world: World, focal: Ints, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Where queries are; NaN when the focal object is not alive.

    Args:
        world: the last fixes of all objects.
        focal: int64[m], the focal objects, -1 without.
        x: float64[m], where a query without one stands; `y` likewise.
        y: see `x`.

    Returns:
        x and y, float64[m], copies.
    """
    moving = np.flatnonzero(focal >= 0)
    x, y = np.array(x, np.float64), np.array(y, np.float64)
    alive = world.alive[focal[moving]]
    x[moving] = np.where(alive, world.x[focal[moving]], np.nan)
    y[moving] = np.where(alive, world.y[focal[moving]], np.nan)
    return x, y


def admitted(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
    """Whether the object of each pair can be a member at all: alive, eligible, and not a focal object; bool[p].

    Args:
        world: the last fixes of all objects.
        criteria: of the queries.
        row: int64[p], rows of the criteria.
        obj: int64[p], objects.
    """
    keep = world.alive[obj]
    for focal in criteria.focal.T:
        keep &= focal[row] != obj
    if world.selection is EVERYONE:
        return keep
    # Rules come last: what they ask may have to go to the database.
    held = np.flatnonzero(keep)
    keep[held] = world.selection.holds(criteria.eligible[row[held]], obj[held])
    return keep


def those_admitted(
    keep: Bools, world: World, criteria: Criteria, row: Ints, obj: Ints
) -> Bools:
    """Whether each pair is to be kept and its object can be a member; bool[p].

    Args:
        keep: bool[p]; only of these pairs it is asked whether they are admitted, which costs more.
        world: the last fixes of all objects.
        criteria: of the queries.
        row: int64[p], rows of the criteria.
        obj: int64[p], objects.
    """
    held, out = np.flatnonzero(keep), np.zeros(len(keep), np.bool_)
    out[held] = admitted(world, criteria, row[held], obj[held])
    return out


def measured_where(keep: Bools, measure: Callable[[Ints], Floats]) -> Floats:
    """What pairs are compared by where they are to be kept, NaN where not; float64[p].

    Args:
        keep: bool[p].
        measure: is given the places of the pairs to be kept, and gives a value for each.
    """
    out = np.full(len(keep), np.nan)
    which = np.flatnonzero(keep)
    out[which] = measure(which)
    return out


def at_places(world: World, table: Table, which: Ints) -> Criteria:
    """Criteria of queries that are asked about a place each: the place and the focal object, without a limit.

    Args:
        world: the last fixes of all objects.
        table: the queries.
        which: int64[w], rows of the table.
    """
    focal = table.focal[which]
    x, y = centres(world, focal, table.x[which], table.y[which])
    return Criteria(
        query=which, focal=focal[:, None], eligible=table.eligible[which], x=x, y=y
    )


def distances(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
    """How far admitted objects are from their query's place, as `Space.rank` orders; float64[p], NaN for others.

    Args:
        world: the last fixes of all objects.
        criteria: the places.
        row: int64[p], rows of the criteria.
        obj: int64[p], objects.
    """
    return measured_where(
        admitted(world, criteria, row, obj),
        lambda keep: world.space.rank(
            criteria.x[row[keep]],
            criteria.y[row[keep]],
            world.x[obj[keep]],
            world.y[obj[keep]],
        ),
    )
