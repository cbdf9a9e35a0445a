"""What ticks say of the visits of fences on regions that move (SPEC X3, docs/adr/0024).

A machine takes a code at each tick at which something happened to its object or to a focal one of its region:

    tick          1     2     3     4     5     6
    object        fix         fix                          `a`, which stands still
    focal object        fix         fix         gone       `truck1`, which drives past it
    member        no    yes   yes   no                     of the answer without DETECT
    code          OUT   IN    IN    OUT         END        NEAR for OUT within the hysteresis
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.aggregate.stretch import Stretch
from st_common.operators.arrays.keys import MASK, SHIFT, packed, swap_halves, unique
from st_common.operators.fence.machine import END, IN, NEAR, OUT
from st_common.operators.fence.moving_near import NEAR as NEAR_TO
from st_common.operators.fence.moving_near import Apart
from st_common.operators.fence.moving_specs import MovingFences
from st_common.operators.state.fixes import ALIVE
from st_common.operators.turn.course import Course, Now
from st_common.operators.turn.places import places_of
from st_common.operators.turn.points import points_of
from st_common.runs import ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Machines (`key` is `object << 32 | target`) at ticks of a run: what they take there, each pair once.

    `tick` is the event time, `position` the row of the log. `place` is where the fix of the object stands that counts
    then, `fix_ts` its time, `x` and `y` where the object was. `status` is that of the object, or else of the first
    focal one that is not alive. `is_new`: the tick has none of the fixes from before the query was registered.
    """

    key: np.ndarray
    tick: np.ndarray
    position: np.ndarray
    code: np.ndarray
    place: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    status: np.ndarray
    is_new: np.ndarray


def keys_of(stretch: Stretch, answer: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The machines that a stretch may move: those that are `known`, and all who were or came into the region.

    Args:
        stretch: some ticks.
        answer: sorted keys `target << 32 | object` before them.
        known: sorted keys `object << 32 | target`.

    Returns:
        Sorted keys `object << 32 | target`.
    """
    fences = stretch.turn.known.of(MovingFences)
    of_target = stretch.turn.numbering.targets.query
    members = np.concatenate([answer, stretch.turns.key])
    mine = fences.place[of_target[members >> SHIFT]] >= 0
    return unique(np.concatenate([known, swap_halves(members[mine])]))


def sighted(stretch: Stretch, answer: np.ndarray, keys: np.ndarray) -> Sightings:
    """What the ticks of a stretch say of machines; `answer` and `keys` as of `keys_of`."""
    turn, course = stretch.turn, stretch.course
    fences = turn.known.of(MovingFences)
    focals = _focals(stretch, keys)
    machine, at = _touched(course, keys >> SHIFT, focals)
    key = keys[machine]
    version = course.at_ticks(key >> SHIFT, at)
    status = course.status_at(key >> SHIFT, at)
    for focal in focals.T:
        status = np.where(status == ALIVE, course.status_at(focal[machine], at), status)
    code = np.where(_are_members(stretch, answer, keys, machine, at), IN, OUT)
    code[status != ALIVE] = END
    query = turn.numbering.targets.query[key & MASK]
    fence = fences.place[query]
    left = np.flatnonzero((code == OUT) & (fences.hysteresis_m[fence] > 0))
    of_focal = course.at_ticks(focals[machine[left], 0], at[left])
    code[left[_are_near(stretch, fence[left], version[left], of_focal)]] = NEAR
    return Sightings(
        key=key,
        tick=stretch.tick[at],
        position=stretch.position[at],
        code=code,
        place=course.place[version],
        fix_ts=course.ts[version],
        **places_of(course, version),
        status=status,
        is_new=stretch.counts(query, at),
    )


def are_near(stretch: Stretch, keys: np.ndarray) -> np.ndarray:
    """Which machines have their object alive and as near to the region as the hysteresis says, at the first tick."""
    turn, course = stretch.turn, stretch.course
    focals, at = _focals(stretch, keys), np.zeros(len(keys), np.int64)
    fence = turn.known.of(MovingFences).place[turn.numbering.targets.query[keys & MASK]]
    version = course.at_ticks(keys >> SHIFT, at)
    of_focal = course.at_ticks(focals[:, 0], at)
    near = np.asarray((focals >= 0).all(axis=1))
    for objects in (keys >> SHIFT, *focals.T):
        near &= course.status_at(objects, at) == ALIVE
    which = np.flatnonzero(near)
    near[which] = _are_near(stretch, fence[which], version[which], of_focal[which])
    return near


def _focals(stretch: Stretch, keys: np.ndarray) -> np.ndarray:
    """The numbers of the objects that the region of each machine goes with, -1 if they never reported; int64[n, f]."""
    turn = stretch.turn
    fences = turn.known.of(MovingFences)
    fence = fences.place[turn.numbering.targets.query[keys & MASK]]
    focals: np.ndarray = fences.focals(stretch.fixes.lookups)[fence]
    return focals


def _touched(
    course: Course | Now, objects: np.ndarray, focals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Machines and ticks (places of both, sorted) at which something happened to the object or to a focal one."""
    column, tick = np.nonzero(course.changed.T)
    machines = np.arange(len(objects))
    pairs = [np.empty(0, np.int64)]
    for who in (objects, *focals.T):
        asked = course.columns_of(who)
        start = np.searchsorted(column, asked)
        count = np.searchsorted(column, asked, side="right") - start
        pairs.append(packed(np.repeat(machines, count), tick[ranges(start, count)]))
    both = unique(np.concatenate(pairs))
    return both >> SHIFT, both & MASK


def _are_members(
    stretch: Stretch,
    answer: np.ndarray,
    keys: np.ndarray,
    machine: np.ndarray,
    at: np.ndarray,
) -> np.ndarray:
    """Whether each machine's object is in the region at a tick: what came or went last says so; bool[n].

    turns of the machine     - at 3     + at 5
    tick              2      3     4    5     6
    member            yes    no    no   yes   yes       it was one before the stretch
    """
    turns = stretch.turns
    key = swap_halves(np.concatenate([answer, turns.key]))
    when = np.concatenate([np.zeros(len(answer), np.int64), turns.tick + 1])
    comes = np.concatenate([np.ones(len(answer), bool), turns.comes])
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    mine = np.flatnonzero(keys[place] == key) if len(keys) else place[:0]
    said = packed(place[mine], when[mine])
    order = np.argsort(said)
    said, comes = said[order], comes[mine][order]
    last = np.searchsorted(said, packed(machine, at + 1), side="right") - 1
    is_mine = np.append(said, -1)[last] >> SHIFT == machine
    return np.asarray(is_mine & np.append(comes, False)[last])


def _are_near(
    stretch: Stretch, fence: np.ndarray, version: np.ndarray, focal: np.ndarray
) -> np.ndarray:
    """Whether objects (versions) are so near to regions as the hysteresis says, and satisfy the condition; bool[n]."""
    turn, course = stretch.turn, stretch.course
    fences, space = turn.known.of(MovingFences), turn.settings.space
    is_near = np.zeros(len(fence), bool)
    for name, queries in fences.kinds.items():
        if name not in NEAR_TO:
            continue  # these have no hysteresis (`Region.no_border`)
        row_of = np.full(len(fences), -1)
        row_of[fences.place[queries.numbers]] = np.arange(len(queries.numbers))
        of = np.flatnonzero(row_of[fence] >= 0)
        apart = Apart(
            focal_x=course.x[focal[of]],
            focal_y=course.y[focal[of]],
            x=course.x[version[of]],
            y=course.y[version[of]],
        )
        table, margin_m = stretch.fixes.lookups.table(queries), fences.hysteresis_m
        is_near[of] = NEAR_TO[name](
            table, row_of[fence[of]], apart, margin_m[fence[of]], space=space
        )
    near = np.flatnonzero(is_near & (version != focal))
    places = course.place[version[near]]
    near = near[_satisfy(stretch, fences.numbers[fence[near]], places)]
    return np.isin(np.arange(len(fence)), near)


def _satisfy(stretch: Stretch, query: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Whether the fix at each place satisfies the condition of a query; bool[n]."""
    turn = stretch.turn
    conditions = turn.known.of(MovingFences).conditions
    readings = stretch.fixes.values.readings(place)
    points = points_of(conditions, readings, turn.objects, space=turn.settings.space)
    if points.truth is None:
        return np.ones(len(query), bool)
    holds: np.ndarray = points.truth.pairs(
        conditions.predicate[query], np.arange(len(query))
    )
    return holds
