"""Which fixes will be in which regions, if they go on as they do: all queries at once (SPEC G8, P8; docs/adr/0033).

fixes with velocities  ->  ways of the time that is asked for  ->  the ways that meet borders, less who is in
"""

import math
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
_TURN = 360.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecasts:
    """Queries that ask of regions of one kind, by one way, for times of which none is twice another one.

    Attributes:
        numbers: int64[q], the queries.
        index: who is in their regions.
        borders: which ways meet these, and what is near.
        tree: the boxes around them.
        within_s: float64[q], the times.
        by_speed: whether anywhere that the object can be counts, and not straight on alone.
    """

    numbers: np.ndarray
    index: Index
    borders: Borders
    tree: shapely.STRtree
    within_s: np.ndarray
    by_speed: bool

    @property
    def longest_s(self) -> float:
        """The longest time that is asked for."""
        return float(self.within_s.max())

    @property
    def is_for_one_time(self) -> bool:
        """Whether all ask for the same time."""
        return bool((self.within_s == self.within_s[0]).all())


def compile_forecasts(
    numbers: Sequence[int], forecasts: Sequence[Forecast], *, space: Space
) -> tuple[Forecasts, ...]:
    """Forecasts that are asked in the same way together: a group for each kind of regions, way, and doubling of time.

        WITHIN 5 s, 7 s, 8 s, 9 s:  4 <= 5, 7 < 8 are one group, 8 <= 8, 9 < 16 another

    Args:
        numbers: of the queries.
        forecasts: what each of them asks.
        space: what coordinates mean.
    """
    groups: dict[tuple[type, int, str], list[int]] = {}
    for at, one in enumerate(forecasts):
        doublings = math.frexp(one.within_s)[1]
        groups.setdefault((type(one.part), doublings, one.by), []).append(at)
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
        within_s=np.array([one.within_s for one in forecasts]),
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
    point, row = _meet(asked, fixes, seconds, space)
    inside = packed(*asked.index.probe(fixes.x, fixes.y))
    left = without(unique(packed(point, row)), unique(inside))
    return moving[left >> SHIFT], asked.numbers[left & MASK]


def _meet(
    asked: Forecasts, fixes: Readings, seconds: np.ndarray, space: Space
) -> Pairs:
    """Fixes and regions that they meet in time, each pair once; `seconds` since the reading before."""
    if not len(fixes):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if asked.by_speed:
        return _could_meet(asked, fixes, seconds, space)
    if asked.is_for_one_time:
        return asked.borders.met_by(_ways(fixes, asked.longest_s / seconds, space))
    return _go_to(asked, fixes, seconds, space)


def _go_to(
    asked: Forecasts, fixes: Readings, seconds: np.ndarray, space: Space
) -> Pairs:
    """Fixes whose ways meet regions, where each region asks for a time of its own.

    The boxes around the longest ways say who is worth a look, and for what: each of these goes its own way.
    """
    longest = _ways(fixes, asked.longest_s / seconds, space)
    point, row = _boxed(asked.tree, longest, space)
    ways = _ways(fixes.take(point), asked.within_s[row] / seconds[point], space)
    met = asked.borders.meet(row, ways)
    return point[met], row[met]


def _boxed(tree: shapely.STRtree, ways: Segments, space: Space) -> Pairs:
    """Ways and regions whose boxes meet, on degrees a turn away as well; each pair once."""
    bx = ways.ax + space.shortest(ways.bx - ways.ax)
    boxes = np.stack(
        [
            np.minimum(ways.ax, bx),
            np.minimum(ways.ay, ways.by),
            np.maximum(ways.ax, bx),
            np.maximum(ways.ay, ways.by),
        ]
    )
    turns = (0.0,) if space.is_flat else (0.0, -_TURN, _TURN)
    along = np.array([[1.0], [0.0], [1.0], [0.0]])
    around = shapely.box(*np.concatenate([boxes + t * along for t in turns], axis=1))
    at, row = tree.query(np.asarray(around, object))
    pairs = unique(packed(at % len(ways), row))
    return pairs >> SHIFT, pairs & MASK


def _ways(fixes: Readings, times: np.ndarray, space: Space) -> Segments:
    """Where fixes go, each so many `times` its way since the reading before."""
    way_x = space.shortest(fixes.x - fixes.before_x)
    way_y = fixes.y - fixes.before_y
    if not space.is_flat:
        turn = np.abs(way_x) * times
        times = times * np.minimum(1.0, _MOST_TURN / np.maximum(turn, _MOST_TURN))
    return Segments(
        ax=fixes.x,
        ay=fixes.y,
        bx=fixes.x + way_x * times,
        by=fixes.y + way_y * times,
    )


def _could_meet(
    asked: Forecasts, fixes: Readings, seconds: np.ndarray, space: Space
) -> Pairs:
    """Fixes so near to regions that they could be there in time."""
    way = space.distance(fixes.before_x, fixes.before_y, fixes.x, fixes.y)
    across, along = space.reach(fixes.y, way * (asked.longest_s / seconds))
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
    reach = way[point] * (asked.within_s[row] / seconds[point])
    near = asked.borders.near(row, fixes.x[point], fixes.y[point], reach)
    # Who is in is not asked about, and is taken away by who calls.
    return point[near], row[near]
