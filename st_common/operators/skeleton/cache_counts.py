"""What the caches of moving queries cost and save, by kind of query (SPEC G6)."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from st_common.operators.arrays.summed import Summed
from st_common.operators.skeleton.anticipation import Cache
from st_common.operators.skeleton.world import Criteria, Floats, World


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCounts(Summed):
    """Counts of the caches of some queries; sums over ticks, queries and shards mean the same.

    `cached / members` is the overhead in fixes, `cache_area / area` that in area.

    Attributes:
        refills: caches that were filled anew.
        misses: members that came into an answer and that the cache did not have. They are told all the same, for all
            objects are looked at where nothing is filled anew.
        members: summed over the ticks at which caches were used, as are all below.
        cached: objects in caches, the focal ones left out.
        area: of regions, square metres or the plane's unit squared.
        cache_area: of cache areas.
    """

    refills: int = 0
    misses: int = 0
    members: int = 0
    cached: int = 0
    area: float = 0.0
    cache_area: float = 0.0


Caches = Mapping[str, CacheCounts]  # by kind of query
_PLURALS = {
    "moving_box": "moving boxes",
    "moving_circle": "moving circles",
    "nearest": "k nearest",
}


def summed(parts: Iterable[Caches]) -> dict[str, CacheCounts]:
    """The sums by kind."""
    total: dict[str, CacheCounts] = {}
    for part in parts:
        for kind, counts in part.items():
            total[kind] = total.get(kind, CacheCounts()) + counts
    return total


def to_json(caches: Caches) -> dict[str, Any]:
    """The counts as JSON values."""
    return {kind: asdict(counts) for kind, counts in caches.items()}


def from_json(value: Mapping[str, Any]) -> dict[str, CacheCounts]:
    """What `to_json` gave."""
    return {kind: CacheCounts(**counts) for kind, counts in value.items()}


def lines_of(caches: Mapping[str, Any]) -> dict[str, str]:
    """What caches cost, a line for people for each kind, from what `to_json` gave."""
    return {
        kind: f"of {_PLURALS[kind]}: {_in_words(counts)}"
        for kind, counts in from_json(caches).items()
    }


def _in_words(counts: CacheCounts) -> str:
    words = [
        _counted(counts.refills, "refill", "refills"),
        _counted(counts.misses, "miss", "misses"),
    ]
    if counts.area:
        words.append(f"{counts.cache_area / counts.area:,.2f} times the area")
    if counts.members:
        words.append(f"{counts.cached / counts.members:,.2f} times the fixes")
    return ", ".join(words)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def overhead(world: World, cache: Cache, members: int, margin: float) -> CacheCounts:
    """How much wider than their regions the cache areas of some queries are, and how much more is in them.

    Args:
        world: the last fixes of all objects.
        cache: the caches, and by their anchors the regions. Queries that are nowhere, or have no radius (fewer than k
            objects), have no area.
        members: how many members the queries have.
        margin: by how much a cache area is wider, metres or the unit of the plane.
    """
    area, cache_area = _areas(world, cache.anchor, margin)
    others = (cache.anchor.focal[cache.row] != cache.object[:, None]).all(axis=1)
    known = np.isfinite(
        area
    )  # not of a query whose focal object is away, nor of kNN with fewer than k objects
    return CacheCounts(
        members=members,
        cached=int(np.count_nonzero(others)),
        area=float(area[known].sum()),
        cache_area=float(cache_area[known].sum()),
    )


def _areas(world: World, criteria: Criteria, margin: float) -> tuple[Floats, Floats]:
    """The areas of regions and of their cache areas, float64[m] each; not finite where a query has none."""
    if not len(criteria.half_width):
        radius = (
            world.space.radius_of(criteria.limit)
            if len(criteria.tie)
            else criteria.limit
        )
        return np.pi * radius**2, np.pi * (radius + margin) ** 2
    wide, high = criteria.half_width, criteria.half_height
    across, along = world.space.scale(criteria.y)
    wide, high = wide * across, high * along
    return np.where(np.isnan(criteria.x), np.nan, 4 * wide * high), 4 * (
        wide + margin
    ) * (high + margin)
