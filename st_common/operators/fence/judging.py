"""What the fixes of a run do at fences: who enters and exits, who dwells, who crosses (SPEC X3, docs/adr/0024)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.geometry.borders import Segments
from st_common.operators.arrays.keys import MASK, SHIFT, is_in, packed, unique
from st_common.operators.events.timeline import FIX
from st_common.operators.fence.dwelling import Dwells, Effects, find_dwells
from st_common.operators.fence.machine import (
    END,
    IN,
    NEAR,
    OUT,
    Course,
    Ran,
    Standing,
    run,
)
from st_common.operators.fence.specs import FenceSet
from st_common.operators.fence.standing import standing_of, visits_after
from st_common.operators.fence.visits import Visits
from st_common.operators.matching.match import Hits, Triples
from st_common.operators.matching.meeting import Points, have_key
from st_common.operators.matching.query_set import JoinGroup
from st_common.operators.state.component import Change
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.points import look_up, match_in, points_in
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, ranges, shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What happened at fences in a run.

    A row is a pair of an event (its place) and a target whose machine it moves, those of one machine together; `keys`
    are the machines (`object << 32 | target`), `ran` says what became of them. `crosses` are rows at which a region was
    crossed. `dwells` are visits that have lasted long enough. `hits` counts what was looked up.
    """

    event: np.ndarray
    machine: np.ndarray
    keys: np.ndarray
    ran: Ran
    crosses: np.ndarray
    dwells: Dwells
    visits: Change[Visits]
    hits: Hits

    @property
    def target(self) -> np.ndarray:
        """The target of each row."""
        return np.asarray(self.keys[self.machine] & MASK)


def judge_fences(visits: Visits, turn: Turn) -> Judged:
    """Judges the events of a run at all fences, given the visits before it."""
    events, fences = turn.events, turn.known.of(FenceSet)
    mine = np.flatnonzero(turn.own(events.object))
    fixes = mine[events.kind[mine] == FIX]
    readings = turn.readings.take(fixes)
    points = points_in(turn, fences.regions, readings)
    hits = match_in(turn, fences.regions, points)
    crossed = _crossed(turn, fences, points, fixes)
    keys = _moved(turn, visits, mine, fixes, hits, crossed)
    event, machine = _rows(turn, mine, keys)
    code = _codes(turn, points, fixes, hits, event, keys[machine] & MASK)
    before = standing_of(visits, keys)
    course = Course(machine=machine, code=code, ts=events.ts[event])
    fence = fences.place[turn.numbering.targets.query[keys & MASK]]
    ran = run(course, fences.rules.take(fence), before)
    crosses = _crosses(course, ran, before, event, keys, crossed)
    effects = Effects(
        machine=machine, position=events.position[event], ts=events.ts[event]
    )
    dwells, dwelt = find_dwells(turn, fences, visits, keys, effects, ran)
    return Judged(
        event=event,
        machine=machine,
        keys=keys,
        ran=ran,
        crosses=crosses,
        dwells=dwells,
        visits=visits_after(visits, keys, ran.after, dwelt),
        hits=hits,
    )


def _crossed(
    turn: Turn, fences: FenceSet, points: Points, fixes: np.ndarray
) -> np.ndarray:
    """Keys `event << 32 | target` of fixes to which the straight way from the fix before meets a region."""
    wants = fences.wanting("cross")
    keys = [np.empty(0, np.int64)]
    if not wants.any():
        return keys[0]
    readings = points.asked.readings
    moved = np.flatnonzero(readings.before_ts != NEVER)
    segments = Segments(
        ax=readings.before_x[moved],
        ay=readings.before_y[moved],
        bx=readings.x[moved],
        by=readings.y[moved],
    )
    gap_us = readings.ts[moved] - readings.before_ts[moved]
    for segment, fence, partner in _met(turn, fences, points, moved, segments):
        keep = wants[fence] & (gap_us[segment] <= fences.max_gap_us[fence])
        point, query = moved[segment[keep]], fences.numbers[fence[keep]]
        true = satisfy(turn, points, query, point)
        target = turn.numbering.targets_of(query[true], partner[keep][true])
        keys.append(packed(fixes[point[true]], target))
    return unique(np.concatenate(keys))


def _met(
    turn: Turn,
    fences: FenceSet,
    points: Points,
    moved: np.ndarray,
    segments: Segments,
) -> Iterator[Triples]:
    """Segments with the fences whose region they meet, and with the feature of it where a layer is joined.

    `moved` are the points (their places) at which the segments end.
    """
    for places, border in fences.borders:
        segment, row = border.met_by(segments)
        yield segment, places[row], np.full(len(segment), NO_PARTNER)
    for unit in fences.regions.units:
        for group in unit.joins:  # as many as there are ways to join
            fence = fences.place[group.queries]
            fence = fence[fences.wanting("cross")[fence]]
            if len(fence):
                segment, partner = _features_met(turn, group, points, moved, segments)
                yield (
                    np.tile(segment, len(fence)),
                    np.repeat(fence, len(segment)),
                    np.tile(partner, len(fence)),
                )


def _features_met(
    turn: Turn,
    group: JoinGroup,
    points: Points,
    moved: np.ndarray,
    segments: Segments,
) -> tuple[np.ndarray, np.ndarray]:
    """Segments and the numbers, as partners, of the features that they meet."""
    join = group.join
    layer = turn.layer_of(join.layer, group.version)
    segment, feature = layer.crossed(
        segments,
        distance_m=join.distance_m if join.predicate == "dwithin" else None,
        kinds=join.kinds,
        tags=join.tags,
    )
    keep = have_key(group, points, layer, moved[segment], feature)
    segment, feature = segment[keep], feature[keep]
    used, of = np.unique(feature, return_inverse=True)
    ids = pa.array(layer.fids[used], pa.string())
    return segment, turn.numbering.partners_of(ids)[of]


def satisfy(
    turn: Turn, points: Points, query: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """Whether each fix (its place among the points) satisfies the condition of a query; bool[n]."""
    if points.truth is None:
        return np.ones(len(query), bool)
    predicate = turn.known.of(FenceSet).regions.predicate[query]
    return np.asarray(points.truth.pairs(predicate, point), bool)


def _moved(
    turn: Turn,
    visits: Visits,
    mine: np.ndarray,
    fixes: np.ndarray,
    hits: Hits,
    crossed: np.ndarray,
) -> np.ndarray:
    """The machines that events of the run move or tell of: sorted keys, each once."""
    objects, fences = turn.events.object, turn.known.of(FenceSet)
    reports = np.zeros(len(turn.objects), bool)
    reports[objects[mine]] = True
    outside = fences.numbers[fences.wanting("outside")]
    seen = unique(objects[fixes])
    everywhere = turn.numbering.targets_of(
        np.tile(outside, len(seen)), np.full(len(seen) * len(outside), NO_PARTNER)
    )
    return unique(
        np.concatenate(
            [
                visits.key[reports[visits.object]],
                packed(objects[fixes[hits.point]], hits.target),
                packed(objects[crossed >> SHIFT], crossed & MASK),
                packed(np.repeat(seen, len(outside)), everywhere),
            ]
        )
    )


def _rows(
    turn: Turn, mine: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The events of each machine's object, in the order of effect, and whose machine each row is."""
    objects = turn.events.object[mine]
    start = np.searchsorted(objects, keys >> SHIFT)
    count = np.searchsorted(objects, keys >> SHIFT, side="right") - start
    return mine[ranges(start, count)], np.repeat(np.arange(len(keys)), count)


def _codes(
    turn: Turn,
    points: Points,
    fixes: np.ndarray,
    hits: Hits,
    event: np.ndarray,
    target: np.ndarray,
) -> np.ndarray:
    """Where each row says that its object is: `END`, `OUT`, `NEAR` or `IN`."""
    code = np.where(turn.events.kind[event] == FIX, OUT, END)
    row = packed(event, target)
    inside = np.sort(packed(fixes[hits.point], hits.target))
    near = _near_to_grown(turn, points, fixes)
    code[is_in(row, near)] = NEAR
    code[is_in(row, inside)] = IN
    left = np.flatnonzero(code == OUT)
    left = left[_near_to_regions(turn, points, fixes, event[left], target[left])]
    code[left] = NEAR
    return code


def _near_to_grown(turn: Turn, points: Points, fixes: np.ndarray) -> np.ndarray:
    """Sorted keys `event << 32 | target` of fixes in features that are grown by their hysteresis."""
    wider = turn.known.of(FenceSet).wider
    if wider.empty:
        return fixes[:0]
    readings = points.asked.readings
    hits = look_up(turn, wider, readings)
    return np.sort(packed(fixes[hits.point], hits.target))


def _near_to_regions(
    turn: Turn,
    points: Points,
    fixes: np.ndarray,
    event: np.ndarray,
    target: np.ndarray,
) -> np.ndarray:
    """Whether each fix is as near to its region as the hysteresis says, and satisfies the condition; bool[n]."""
    query, events = turn.numbering.targets.query[target], turn.events
    is_near = regions_near(turn, target, events.x[event], events.y[event])
    near = np.flatnonzero(is_near)
    point = np.searchsorted(fixes, event[near])
    is_near[near] = satisfy(turn, points, query[near], point)
    return is_near


def regions_near(
    turn: Turn, target: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Whether places outside are as near to the regions of targets as their hysteresis says; bool[n]."""
    fences = turn.known.of(FenceSet)
    fence = fences.place[turn.numbering.targets.query[target]]
    is_near = np.zeros(len(target), bool)
    for places, border in fences.borders:
        row_of = np.full(len(fences), -1)
        row_of[places] = np.arange(len(places))
        asked = np.flatnonzero((fences.hysteresis_m[fence] > 0) & (row_of[fence] >= 0))
        of = fence[asked]
        is_near[asked] = border.near(
            row_of[of], x[asked], y[asked], fences.hysteresis_m[of]
        )
    return is_near


def _crosses(
    course: Course,
    ran: Ran,
    before: Standing,
    event: np.ndarray,
    keys: np.ndarray,
    crossed: np.ndarray,
) -> np.ndarray:
    """The rows at which a region was crossed by an object that is out, between two fixes that do not lie in it."""
    row = packed(event, keys[course.machine] & MASK)
    outside = ~ran.was_in & ~ran.is_in & (course.code != IN)
    candidate = np.flatnonzero(outside & is_in(row, crossed))
    follows = ~is_first(course.machine)
    was_inside = shifted(course.code == IN, first=False) & follows
    # Before the run an object that is out was in the region if it was about to enter.
    was_inside |= ~follows & (before.against > 0)[course.machine]
    return np.asarray(candidate[~was_inside[candidate]])
