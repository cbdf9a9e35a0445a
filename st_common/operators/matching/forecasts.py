"""Which fixes will be in which regions, if they go on as they do: all queries at once (SPEC G8, P8; docs/adr/0062).

fixes with velocities  ->  ways of the time that is asked for  ->  the ways that meet borders, less who is in
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import shapely

from st_common.geometry.borders import Segments, each_once
from st_common.geometry.longitudes import turned
from st_common.geometry.space import Space
from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique, without
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.fixes import NEVER
from st_common.regions.forecast import Forecast
from st_common.regions.region import Borders, Index
from st_common.regions.registry import borders_of, index_of, still

Pairs = tuple[np.ndarray, np.ndarray]

_MOST_TURN = (
    179.0  # degrees of longitude: beyond half a turn the short way is the other one
)
_ENDLESS = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecasts:
    """Queries that ask of regions of one kind, by one way, for one time.

    Attributes:
        numbers: int64[q], the queries.
        index: who is in their regions.
        borders: which ways meet these, and what is near.
        tree: the boxes around them.
        within_s: the time.
        by_speed: whether anywhere that the object can be counts, and not straight on alone.
    """

    numbers: np.ndarray
    index: Index
    borders: Borders
    tree: shapely.STRtree
    within_s: float
    by_speed: bool


def compile_forecasts(
    numbers: Sequence[int], forecasts: Sequence[Forecast], *, space: Space
) -> tuple[Forecasts, ...]:
    """Forecasts that are asked in the same way together: as many groups as there are kinds of regions, ways and times.

    Args:
        numbers: of the queries.
        forecasts: what each of them asks.
        space: what coordinates mean.
    """
    groups: dict[tuple[type, float, str], list[int]] = {}
    for at, one in enumerate(forecasts):
        groups.setdefault((type(one.part), one.within_s, one.by), []).append(at)
    queries = np.asarray(numbers, np.int64)
    return tuple(
        _group(queries[places], [forecasts[at] for at in places], space)
        for places in groups.values()
    )


def _group(
    numbers: np.ndarray, forecasts: Sequence[Forecast], space: Space
) -> Forecasts:
    regions = [still(one.part) for one in forecasts]
    boxes = type(regions[0]).bounds(regions, space=space)
    boxes = np.clip(boxes, -_ENDLESS, _ENDLESS)  # one around a pole is endless
    return Forecasts(
        numbers=numbers,
        index=index_of(regions, space=space),
        borders=borders_of(regions, space=space),
        tree=shapely.STRtree(np.array(shapely.box(*boxes.T), object)),
        within_s=forecasts[0].within_s,
        by_speed=forecasts[0].by == "speed",
    )


def will_enter(asked: Forecasts, readings: Readings, *, space: Space) -> Pairs:
    """Pairs of a reading and a query whose region it is not in, and meets in time, its border included.

    Straight on is a straight line in coordinates, as it is for VALID UNTIL, and on degrees at most half a turn. A
    reading without one before it in its stay, or at the same time, has no velocity, and enters nothing.

    Args:
        asked: the queries.
        readings: n fixes.
        space: what coordinates mean.

    Returns:
        int64 each: places of readings and numbers of queries, each pair once.
    """
    seconds = (readings.ts - readings.before_ts) / 1e6
    known = (readings.before_ts != NEVER) & (seconds > 0) & ~np.isnan(readings.x)
    moving = np.flatnonzero(known)
    fixes, seconds = readings.take(moving), seconds[moving]
    meet = _could_meet if asked.by_speed else _go_to
    point, row = meet(asked, fixes, asked.within_s / seconds, space)
    inside = packed(*asked.index.probe(fixes.x, fixes.y))
    left = without(unique(packed(point, row)), unique(inside))
    return moving[left >> SHIFT], asked.numbers[left & MASK]


def _go_to(asked: Forecasts, fixes: Readings, times: np.ndarray, space: Space) -> Pairs:
    """Fixes whose ways meet regions; each goes on for so many `times` its way since the reading before."""
    way_x = space.shortest(fixes.x - fixes.before_x)
    way_y = fixes.y - fixes.before_y
    if not space.is_flat:
        turn = np.abs(way_x) * times
        times = times * np.minimum(1.0, _MOST_TURN / np.maximum(turn, _MOST_TURN))
    ways = Segments(
        ax=fixes.x,
        ay=fixes.y,
        bx=fixes.x + way_x * times,
        by=fixes.y + way_y * times,
    )
    return asked.borders.met_by(ways)


def _could_meet(
    asked: Forecasts, fixes: Readings, times: np.ndarray, space: Space
) -> Pairs:
    """Fixes so near to regions that they could be there in time."""
    way = space.distance(fixes.before_x, fixes.before_y, fixes.x, fixes.y)
    reach = way * times
    across, along = space.reach(fixes.y, reach)
    boxes = np.stack(
        [fixes.x - across, fixes.y - along, fixes.x + across, fixes.y + along]
    )
    beyond = space.reaching_across(fixes.x, across)
    shift = turned(fixes.x[beyond]) - fixes.x[beyond]
    there = boxes[:, beyond] + np.stack([shift, 0 * shift, shift, 0 * shift])
    around = shapely.box(*np.concatenate([boxes, there], axis=1))
    whose = np.concatenate([np.arange(len(fixes)), beyond])
    at, row = asked.tree.query(np.asarray(around, object))
    point, row = each_once(whose[at], row)
    near = asked.borders.near(row, fixes.x[point], fixes.y[point], reach[point])
    # Who is in is not asked about, and is taken away by who calls.
    return point[near], row[near]
