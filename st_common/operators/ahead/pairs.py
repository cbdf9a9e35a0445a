"""Pairs of objects over several ticks at once (SPEC G9, P8).

As with the kinds, only what changed is looked at: pairs of which one object changed, and all of a query whose region
moved. A pair that holds at a tick holds until something happens to one of the two or to the query.
"""

import numpy as np

from st_common.operators.ahead.kinds import cells
from st_common.operators.ahead.regions import (
    Firsts,
    Regions,
    expanded,
    insiders,
    joined,
    next_move,
    old_keys,
    query_of,
    regions_of,
)
from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique
from st_common.operators.arrays.turns import Turns, of_spells
from st_common.operators.expressions.screens import passes
from st_common.operators.matching.match import match
from st_common.operators.pairs.judging import hold
from st_common.operators.pairs.moving_regions import selected
from st_common.operators.pairs.pairing import codes_of
from st_common.operators.pairs.specs import PairSpecs
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.state.intern import shards_of
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.course import Course
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


def pairs_ahead(
    course: Course, turn: Turn, fixes: Present, answer: np.ndarray
) -> tuple[Turns, int]:
    """What comes and goes in pairs of objects, over several ticks at once.

    Args:
        course: the versions of last fixes over the ticks.
        turn: the run.
        fixes: the last fixes before the ticks.
        answer: int64, ascending, keys `target << 32 | object` before the ticks.

    Returns:
        Keys that come and go, and how many pairs were tested.
    """
    specs = turn.known.of(PairSpecs)
    regions = regions_of(specs.moving, course, turn, fixes)
    firsts, others, tested = _holding(turn, course, regions)
    spells = [_spells(turn, course, fixes, firsts, others)]
    if specs.lonely.any():
        spells.append(_firsts_kept(turn, course, regions))
    key, tick, end = map(np.concatenate, zip(*spells, strict=True))
    old = old_keys(turn, answer, specs.numbers)
    old_end = _lasting(turn, course, fixes, regions, old)
    return of_spells(
        np.concatenate([old, key]),
        np.concatenate([np.full(len(old), -1), tick]),
        np.concatenate([old_end, end]),
        course.ticks,
    ), tested


def _holding(
    turn: Turn, course: Course, regions: list[Regions]
) -> tuple[Firsts, np.ndarray, int]:
    """The pairs that hold of those of which something changed: firsts, versions of others, and how many were tested."""
    keys = turn.known.of(PairSpecs).keys
    codes = [codes_of(key, course, course.world) for key in keys]
    tick, first, other = _touching(turn, course, codes)
    parts = [_all_around(turn, course, of) for of in regions]
    parts.append(_still_firsts(turn, course, tick, first, other))
    parts += [_unmoved(course, of, tick, first, other) for of in regions]
    firsts = joined([part[0] for part in parts])
    others = np.concatenate([part[1] for part in parts])
    keep = np.flatnonzero(_owned(turn, course, firsts))
    firsts, others = firsts.take(keep), others[keep]
    keep = np.flatnonzero(_near(turn, course, codes, firsts, others))
    tested, firsts, others = len(others), firsts.take(keep), others[keep]
    keep = np.flatnonzero(hold(turn, course, firsts.query, firsts.version, others))
    firsts, others = firsts.take(keep), others[keep]
    keep = _screened(turn, course, firsts)
    return firsts.take(keep), others[keep], tested


def _lasting(
    turn: Turn, course: Course, fixes: Present, regions: list[Regions], old: np.ndarray
) -> np.ndarray:
    """The first tick at which each pair of before is decided anew."""
    # -1: who may come first stands there without a partner.
    column = course.columns_of(fixes.lookups.others(old >> SHIFT))
    of_partner = np.append(course.until[course.first], course.ticks)[column]
    lasts = np.minimum(course.until[course.first_of(old & MASK)], of_partner)
    return np.asarray(
        np.minimum(lasts, next_move(turn, regions, course.ticks)[query_of(turn, old)])
    )


def _touching(
    turn: Turn, course: Course, codes: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tick, first and partner of all pairs of living objects of which one changed, and that some query may pair."""
    new = course.new[course.alive[course.new]]
    tick = course.tick[new]
    here = course.at[tick]
    maybe = course.alive[here] & (
        course.column[new][:, None] != np.arange(len(course.objects))
    )
    maybe &= _may_pair(turn, course, codes, new[:, None], here)
    row, column = np.nonzero(maybe)
    one, other = new[row], here[row, column]
    # Each pair in both orders: where both objects changed, the other one brings up the other order.
    turned = np.flatnonzero(~course.changed[tick[row], column])
    return (
        np.concatenate([tick[row], tick[row][turned]]),
        np.concatenate([one, other[turned]]),
        np.concatenate([other, one[turned]]),
    )


def _may_pair(
    turn: Turn,
    course: Course,
    codes: list[np.ndarray],
    one: np.ndarray,
    other: np.ndarray,
) -> np.ndarray:
    """Which pairs of versions are within the largest distance by their coordinates, or have a key in common."""
    specs, x, y = turn.known.of(PairSpecs), course.x, course.y
    keep = np.zeros(other.shape, bool)
    if not np.isnan(specs.most_m):
        space = turn.settings.space
        across, along = space.reach(y[one], specs.most_m * space.growth)
        apart = np.abs(space.shortest(x[one] - x[other]))
        keep |= (apart <= across) & (np.abs(y[one] - y[other]) <= along)
    by_key = specs.key[specs.numbers[np.isnan(specs.distance_m[specs.numbers])]]
    for key in np.unique(by_key[by_key >= 0]).tolist():
        keep |= (codes[key][one] == codes[key][other]) & (codes[key][one] >= 0)
    return keep


def _still_firsts(
    turn: Turn, course: Course, tick: np.ndarray, first: np.ndarray, other: np.ndarray
) -> tuple[Firsts, np.ndarray]:
    """For some pairs the queries that stand still and that the first of them satisfies."""
    still = turn.known.of(PairSpecs).still
    if still.empty:
        return joined([]), other[:0]
    versions = unique(first)
    query, point = _matched(turn, course, versions)
    hit, row = expanded(point, np.searchsorted(versions, first))
    firsts = Firsts(
        tick=tick[row],
        query=query[hit],
        version=first[row],
        until=course.until[first[row]],
    )
    return firsts, other[row]


def _matched(
    turn: Turn, course: Course, versions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The queries that stand still and that versions satisfy, and the place of the version of each."""
    still = turn.known.of(PairSpecs).still
    points = points_at(still, course, versions, turn.objects, space=turn.settings.space)
    hits = match(still, points, layer_of=turn.layer_of, numbering=turn.numbering)
    return turn.numbering.targets.query[hits.target], hits.point


def _firsts_kept(
    turn: Turn, course: Course, regions: list[Regions]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who may come first, of queries that ask for objects without a partner: as `_spells`, without one."""
    specs = turn.known.of(PairSpecs)
    new = course.new[course.alive[course.new]]
    parts = []
    if not specs.still.empty and len(new):
        query, point = _matched(turn, course, new)
        version = new[point]
        tick, until = course.tick[version], course.until[version]
        parts.append(Firsts(tick=tick, query=query, version=version, until=until))
    for of in regions:
        tick, query, column = cells(of.asked.moved, course)
        inside = insiders(of, course, tick, query, course.at[tick, column])
        parts.append(inside.take(_screened(turn, course, inside)))
    firsts = joined(parts)
    firsts = firsts.take(np.flatnonzero(specs.lonely[firsts.query]))
    alone = np.full(len(firsts.query), NO_PARTNER)
    target = turn.numbering.targets_of(firsts.query, alone)
    return packed(target, course.object[firsts.version]), firsts.tick, firsts.until


def _unmoved(
    course: Course, of: Regions, tick: np.ndarray, first: np.ndarray, other: np.ndarray
) -> tuple[Firsts, np.ndarray]:
    """For some pairs the queries whose region did not move at the tick, and that has the first of them inside."""
    queries, count = len(of.numbers), len(tick)
    row, query = (
        np.repeat(np.arange(count), queries),
        np.tile(np.arange(queries), count),
    )
    rests = np.flatnonzero(~of.asked.moved[tick[row], query])
    row, query = row[rests], query[rests]
    # A query and a version are held against each other once, in however many pairs they are.
    known, at = np.unique(
        np.stack([tick[row], query, first[row]]), axis=1, return_inverse=True
    )
    asked = of.asked
    holds = KINDS[of.name].satisfy(
        asked.world, asked.criteria, asked.row[known[0], known[1]], known[2]
    )[at]
    row, query = row[holds], query[holds]
    # Sure until the object has another version, or the region moves again.
    until = np.minimum(course.until[first[row]], of.moves[tick[row] + 1, query])
    return Firsts(
        tick=tick[row], query=of.numbers[query], version=first[row], until=until
    ), other[row]


def _all_around(turn: Turn, course: Course, of: Regions) -> tuple[Firsts, np.ndarray]:
    """Of regions that moved: everybody inside, each with all other living objects."""
    width = len(course.objects)
    tick, query = np.nonzero(of.asked.moved)
    column = np.tile(np.arange(width), len(tick))
    tick, query = np.repeat(tick, width), np.repeat(query, width)
    firsts = insiders(of, course, tick, query, course.at[tick, column])
    firsts = firsts.take(_screened(turn, course, firsts))
    rows = np.repeat(np.arange(len(firsts.tick)), width)
    others = course.at[firsts.tick].ravel()
    keep = np.flatnonzero(course.alive[others] & (others != firsts.version[rows]))
    return firsts.take(rows[keep]), others[keep]


def _owned(turn: Turn, course: Course, firsts: Firsts) -> np.ndarray:
    """Which pairs this shard decides: those that are spread by their first object."""
    settings, specs = turn.settings, turn.known.of(PairSpecs)
    if settings.shards == 1:
        return np.ones(len(firsts.tick), bool)
    hashes = turn.objects.hashes[course.object[firsts.version]]
    own = shards_of(hashes, settings.shards) == settings.shard
    return np.asarray(own | ~specs.spread[firsts.query])


def _near(
    turn: Turn,
    course: Course,
    codes: list[np.ndarray],
    firsts: Firsts,
    other: np.ndarray,
) -> np.ndarray:
    """Which pairs are within their query's distance and have its keys in common."""
    specs, one, query = turn.known.of(PairSpecs), firsts.version, firsts.query
    keep = np.ones(len(other), bool)
    far = specs.distance_m[query]
    by_distance = np.flatnonzero(~np.isnan(far))
    a, b = one[by_distance], other[by_distance]
    keep[by_distance] = turn.settings.space.is_within(
        course.x[a], course.y[a], course.x[b], course.y[b], far[by_distance]
    )
    for key, code in enumerate(codes):
        mine = specs.key[query] == key
        keep &= ~mine | ((code[one] == code[other]) & (code[other] >= 0))
    return keep


def _spells(
    turn: Turn, course: Course, fixes: Present, firsts: Firsts, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The keys `target << 32 | object` of pairs, the ticks at which they come, and those before which they go.

    Args:
        turn: the run.
        course: the versions of last fixes over the ticks.
        fixes: the last fixes before the ticks.
        firsts: the first objects of the pairs.
        others: int64[n], the versions of the second ones.
    """
    partner = fixes.lookups.partners(course.object[others])
    target = turn.numbering.targets_of(firsts.query, partner)
    end = np.minimum(firsts.until, course.until[others])
    return packed(target, course.object[firsts.version]), firsts.tick, end


def _screened(turn: Turn, course: Course, firsts: Firsts) -> np.ndarray:
    """The places of firsts that satisfy what else their query asks, where its region moves."""
    moving = turn.known.of(PairSpecs).moving
    of_moving = np.zeros(len(turn.queries), bool)
    for queries in moving.kinds.values():
        of_moving[queries.numbers] = True
    keep = np.ones(len(firsts.tick), bool)
    mine = np.flatnonzero(of_moving[firsts.query])
    if not len(mine):
        return np.arange(len(keep))
    versions, at = np.unique(firsts.version[mine], return_inverse=True)
    points = points_at(
        moving.screened,
        course,
        versions,
        turn.objects,
        space=turn.settings.space,
    )
    query, passed = firsts.query[mine], np.zeros(len(mine), bool)
    chosen = np.flatnonzero(selected(moving, points, at, query))
    passed[chosen] = True
    if not moving.screened.screens.empty:
        passed[chosen] = passes(
            moving.screened.screens, points.asked, at[chosen], query[chosen]
        )
    keep[mine] = passed
    return np.flatnonzero(keep)
