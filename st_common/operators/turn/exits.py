"""The ways out of the regions of queries that say until when members stay: by kind of region, kept with the queries.

query    region           kind   place
0        box a            0      0
1        (does not ask)  -1     -1
2        circle b         1      0
3        box c            0      1
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.state.intern import Sought
from st_common.operators.state.registered import Queries
from st_common.operators.turn.flags import flags_of
from st_common.regions.region import AroundObject, Exits, MovingExits, Region
from st_common.regions.registry import by_kind, still


@dataclass(frozen=True, slots=True, kw_only=True)
class StillKind:
    """The ways out of regions of one kind that stand still, by their places."""

    exits: Exits


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingKind:
    """The ways out of regions of one kind that go with objects, by their places.

    Attributes:
        focals: the id of the object that each goes with.
    """

    exits: MovingExits
    focals: Sought


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionExits:
    """The ways out of the regions of queries; columns have a row for each query of the stream, dropped ones too.

    Attributes:
        kind: int64, the place in `kinds` of a query's region; -1 for a query that does not ask, or has no region.
        place: int64, the place of its region in that kind; -1 likewise.
        kinds: the kinds of regions that there are.
    """

    kind: np.ndarray
    place: np.ndarray
    kinds: tuple[StillKind | MovingKind, ...]


def exits_of(queries: Queries, *, space: Space) -> RegionExits:
    """The ways out of the regions of queries with VALID UNTIL; found once, and kept with the queries.

    Args:
        queries: all queries of the stream.
        space: what coordinates mean.

    Raises:
        StateError: a region has no way out that is known; who registers queries refuses it before.
    """
    kept: RegionExits | None = queries.derived.get((RegionExits, space))
    if kept is None:
        kept = queries.derived[RegionExits, space] = _exits(queries, space)
    return kept


def _exits(queries: Queries, space: Space) -> RegionExits:
    asking = [
        (number, region)
        for number in np.flatnonzero(flags_of(queries).valid_until).tolist()
        if (region := queries[number].plan.inside) is not None
    ]
    numbers = np.array([number for number, _ in asking], np.int64)
    regions = [region for _, region in asking]
    kind, place = np.full((2, len(queries)), -1)
    kinds = []
    for at, places in enumerate(by_kind(regions).values()):
        kind[numbers[places]] = at
        place[numbers[places]] = np.arange(len(places))
        kinds.append(_kind([regions[which] for which in places], space))
    return RegionExits(kind=kind, place=place, kinds=tuple(kinds))


def _kind(regions: Sequence[Region], space: Space) -> StillKind | MovingKind:
    """The ways out of regions, all of one kind."""
    moving = [region for region in regions if isinstance(region, AroundObject)]
    if moving:
        focals = pa.array([region.focal for region in moving], pa.string())
        exits = type(moving[0]).exits(moving, space=space)
        return MovingKind(exits=exits, focals=Sought(focals))
    standing = [still(region) for region in regions]
    return StillKind(exits=type(standing[0]).exits(standing, space=space))
