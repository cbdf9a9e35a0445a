"""The spatial answers below aggregates at several ticks of a run at once, as far as that is less work (SPEC P8).

A tick costs a fixed amount of calls, whatever happens in it. So ticks are taken together as long as their objects and
queries are few; what is looked at are the pairs of which something changed, whatever tick it changed at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.ahead.joins import joins_ahead
from st_common.operators.ahead.kinds import kind_ahead
from st_common.operators.ahead.pairs import pairs_ahead
from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.arrays.turns import ByTick, Turns, of_spells
from st_common.operators.matching.match import match
from st_common.operators.matching.query_set import QuerySet
from st_common.operators.pairs.specs import MovingJoins, PairSpecs
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.turn.course import Course, Moment
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn

MOST_PAIRS = 1 << 17
"""Of a query and an object: with more of them ticks are judged one by one, by indexes."""
MOST_CELLS = 1 << 22
"""Pairs of a query and an object at all ticks that are taken together."""
MOST_TICKS = 512


STILL, PAIRS, JOINS = "still", "pairs", "joins"
_MOST_MOVING = (
    64  # queries with a region that moves, of pairs: each is held against every pair
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What comes and goes at some ticks in the answers of some sources.

    Attributes:
        ticks: how many ticks were taken together.
        sources: whose answers are known over them: kinds by name, and `still`, `pairs`, `joins`.
        turns: the keys `target << 32 | object` that come and go.
        touched: how many pairs were looked at.
    """

    ticks: int
    sources: frozenset[str]
    turns: ByTick
    touched: int


def _nothing(ticks: int) -> Ahead:
    return Ahead(
        ticks=ticks,
        sources=frozenset(),
        turns=ByTick(Turns.joined([]), ticks),
        touched=0,
    )


def sources_of(turn: Turn) -> frozenset[str]:
    """What can be judged at several ticks at once: all but what has a cache, or depends on more than some objects."""
    known = turn.known
    cached = {
        name
        for name, queries in known.kinds.items()
        if turn.settings.margin or queries.moving_rules
    }
    moving_pairs = sum(
        len(queries.numbers) for queries in known.of(PairSpecs).moving.kinds.values()
    )
    # The nearest others of an object are ranked tick by tick, and so are the nearest objects of a place.
    pairs, joins = (
        any(KINDS[name].is_dynamic for name in moving)
        for moving in (known.of(PairSpecs).moving.kinds, known.of(MovingJoins).kinds)
    )
    pairs |= moving_pairs > _MOST_MOVING or bool(len(known.of(PairSpecs).ranked))
    one_by_one = {name for name, is_so in ((PAIRS, pairs), (JOINS, joins)) if is_so}
    return all_sources(turn) - cached - one_by_one


def all_sources(turn: Turn) -> frozenset[str]:
    """All that gives spatial answers at ticks."""
    known = turn.known
    others = {
        STILL: not known.still.empty,
        PAIRS: bool(len(known.of(PairSpecs).numbers)),
        JOINS: bool(known.of(MovingJoins).kinds),
    }
    return frozenset(known.kinds) | {
        name for name, is_there in others.items() if is_there
    }


def ahead_of(
    turn: Turn, fixes: Present, moments: Sequence[Moment], answer: np.ndarray
) -> Ahead:
    """What comes and goes at as many of some ticks as can be taken together.

    Args:
        turn: the run.
        fixes: the last fixes before the ticks.
        moments: the ticks, with their events.
        answer: int64, ascending, keys `target << 32 | object` before them.

    Returns:
        How many ticks were taken, and for which sources all is known of them: for none where there are too many
        objects and queries, or where a kind must be asked tick by tick.
    """
    sources = sources_of(turn)
    if not sources or not any(len(moment.objects) for moment in moments):
        return _nothing(len(moments))
    cells = _cells_of(turn, fixes, moments, sources)
    # Of fewer ticks fewer objects are looked at: what is left is counted again.
    if cells * len(moments) > MOST_CELLS:
        moments = moments[: max(MOST_CELLS // cells, 1)]
        cells = _cells_of(turn, fixes, moments, sources)
    if cells > MOST_PAIRS:
        return _nothing(len(moments))
    return _judged(turn, fixes, moments, answer, sources)


def _cells_of(
    turn: Turn, fixes: Present, moments: Sequence[Moment], sources: frozenset[str]
) -> int:
    """How many pairs of a query and an object there are at each of some ticks, at most."""
    is_here = fixes.alive.copy()
    is_here[np.concatenate([moment.objects for moment in moments])] = True
    objects = int(np.count_nonzero(is_here))
    known = turn.known
    parts = [known.kinds[name] for name in sources if name in known.kinds]
    parts += known.of(MovingJoins).kinds.values() if JOINS in sources else ()
    queries = sum(len(part.numbers) for part in parts)
    return max(
        objects * (queries + (objects if sources & {"reverse", PAIRS} else 0)), 1
    )


def _judged(
    turn: Turn,
    fixes: Present,
    moments: Sequence[Moment],
    answer: np.ndarray,
    sources: frozenset[str],
) -> Ahead:
    """What comes and goes at all of these ticks in the answers of some sources."""
    answer = answer[
        _about(turn, sources)[turn.numbering.targets.query[answer >> SHIFT]]
    ]
    course = Course(turn, fixes, moments, answer & MASK)
    parts = [
        kind_ahead(name, queries, course, turn, fixes, answer)
        for name, queries in turn.known.kinds.items()
        if name in sources
    ]
    if STILL in sources:
        parts.append(_still(turn, course, answer))
    if PAIRS in sources:
        parts.append(pairs_ahead(course, turn, fixes, answer))
    if JOINS in sources:
        parts.append(joins_ahead(course, turn, fixes, answer))
    turns, touched = (
        Turns.joined([part[0] for part in parts]),
        sum(part[1] for part in parts),
    )
    by_tick = ByTick(turns, len(moments))
    return Ahead(ticks=len(moments), sources=sources, turns=by_tick, touched=touched)


def _about(turn: Turn, sources: frozenset[str]) -> np.ndarray:
    """bool[queries]: those of some sources."""
    known, about = turn.known, np.zeros(len(turn.queries), bool)
    parts = [
        queries.numbers for name, queries in known.kinds.items() if name in sources
    ]
    parts += [_numbers(known.still)] if STILL in sources else []
    parts += [known.of(PairSpecs).numbers] if PAIRS in sources else []
    parts += (
        [queries.numbers for queries in known.of(MovingJoins).kinds.values()]
        if JOINS in sources
        else []
    )
    for numbers in parts:
        about[numbers] = True
    return about


def _numbers(queries: QuerySet) -> np.ndarray:
    return np.concatenate(
        [np.empty(0, np.int64), *(unit.numbers for unit in queries.units)]
    )


def _still(turn: Turn, course: Course, answer: np.ndarray) -> tuple[Turns, int]:
    """Regions that stand still and layers: every new version is looked at once."""
    queries, numbering = turn.known.still, turn.numbering
    new = course.new[course.alive[course.new]]
    points = points_at(queries, course, new, turn.objects, space=turn.settings.space)
    hits = match(queries, points, layer_of=turn.layer_of, numbering=numbering)
    mine = np.zeros(len(turn.queries), bool)
    mine[_numbers(queries)] = True
    old = answer[mine[numbering.targets.query[answer >> SHIFT]]]
    # Who was a member before is one as long as the version of before lasts.
    version = np.concatenate([course.first_of(old & MASK), new[hits.point]])
    key = np.concatenate([old, packed(hits.target, course.object[new[hits.point]])])
    return of_spells(key, course.tick[version], course.until[version], course.ticks), 0
