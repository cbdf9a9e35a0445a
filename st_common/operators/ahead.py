"""The spatial answers below aggregates at several ticks of a run at once, as far as that is less work (SPEC P8).

A tick costs a fixed amount of calls, whatever happens in it. So ticks are taken together as long as their objects and
queries are few; what is looked at are the pairs of which something changed, whatever tick it changed at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.ahead_kinds import kind_ahead
from st_common.operators.course import Course, Moment
from st_common.operators.keys import MASK, SHIFT, packed
from st_common.operators.kind_queries import KindQueries
from st_common.operators.match import QuerySet, match
from st_common.operators.points import points_at
from st_common.operators.present import Present
from st_common.operators.turn import Turn
from st_common.operators.turns import ByTick, Turns, of_spells
from st_common.query.region import MovingBox, MovingCircle

MOST_PAIRS = 1 << 17
"""Of a query and an object: with more of them ticks are judged one by one, by indexes."""
MOST_CELLS = 1 << 22
"""Pairs of a query and an object at all ticks that are taken together."""
MOST_TICKS = 512


STILL = "still"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What comes and goes at so many ticks in the answers of some `sources`: kinds by name, and `STILL`."""

    ticks: int
    sources: frozenset[str]
    turns: ByTick
    touched: int


def _nothing(ticks: int) -> Ahead:
    return Ahead(ticks=ticks, sources=frozenset(), turns=ByTick(Turns.joined([]), 0), touched=0)


NOTHING = _nothing(0)


def sources_of(turn: Turn) -> frozenset[str]:
    """What can be judged at several ticks at once: all but what has a cache, or is eligible by a region that moves."""
    known = turn.known
    names = {name for name, queries in known.kinds.items() if not turn.settings.margin and not _moving(queries)}
    return frozenset(names | ({STILL} if not known.still.empty else set()))


def _moving(queries: KindQueries) -> bool:
    return any(isinstance(rule.region, MovingBox | MovingCircle) for rule in queries.rules)


def ahead_of(turn: Turn, fixes: Present, moments: Sequence[Moment], answer: np.ndarray) -> Ahead:
    """What comes and goes at as many of some ticks as can be taken together, given the answer before them.

    Nothing, where there are too many objects and queries: then ticks are judged by themselves.
    """
    sources = sources_of(turn)
    if not sources:
        return _nothing(len(moments))
    cells = _cells_of(turn, fixes, moments, sources)
    if cells * len(moments) > MOST_CELLS:
        moments = moments[: max(MOST_CELLS // cells, 1)]
        cells = _cells_of(turn, fixes, moments, sources)
    if cells > MOST_PAIRS:
        return _nothing(len(moments))
    return _judged(turn, fixes, moments, answer, sources)


def _cells_of(turn: Turn, fixes: Present, moments: Sequence[Moment], sources: frozenset[str]) -> int:
    """How many pairs of a query and an object there are at each of some ticks, at most."""
    is_here = fixes.alive.copy()
    is_here[np.concatenate([moment.objects for moment in moments])] = True
    objects = int(np.count_nonzero(is_here))
    queries = sum(len(turn.known.kinds[name].numbers) for name in sources if name != STILL)
    return max(objects * (queries + (objects if "reverse" in sources else 0)), 1)


def _judged(
    turn: Turn, fixes: Present, moments: Sequence[Moment], answer: np.ndarray, sources: frozenset[str]
) -> Ahead:
    targets = turn.numbering.targets.query
    about = np.zeros(len(turn.queries), bool)
    for name in sources - {STILL}:
        about[turn.known.kinds[name].numbers] = True
    if STILL in sources:
        about[_numbers(turn.known.still)] = True
    answer = answer[about[targets[answer >> SHIFT]]]
    course = Course(turn, fixes, moments, answer & MASK)
    parts, touched = [], 0
    for name, queries in turn.known.kinds.items():
        if name in sources:
            turns, looked = kind_ahead(name, queries, course, turn, fixes, answer)
            parts.append(turns)
            touched += looked
    if STILL in sources:
        parts.append(_still(turn, course, answer))
    by_tick = ByTick(Turns.joined(parts), len(moments))
    return Ahead(ticks=len(moments), sources=sources, turns=by_tick, touched=touched)


def _numbers(queries: QuerySet) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *(unit.numbers for unit in queries.units)])


def _still(turn: Turn, course: Course, answer: np.ndarray) -> Turns:
    """Regions that stand still and layers: every new version is looked at once."""
    queries, numbering = turn.known.still, turn.numbering
    new = course.new[course.alive[course.new]]
    points = points_at(queries, course, new, turn.objects, geographic=turn.settings.geographic)
    hits = match(queries, points, layer_of=turn.layer_of, numbering=numbering)
    mine = np.zeros(len(turn.queries), bool)
    mine[_numbers(queries)] = True
    old = answer[mine[numbering.targets.query[answer >> SHIFT]]]
    first = np.flatnonzero(course.tick < 0)[course.columns_of(old & MASK)]
    version = np.concatenate([first, new[hits.point]])
    key = np.concatenate([old, packed(hits.target, course.object[new[hits.point]])])
    return of_spells(key, course.tick[version], course.until[version], course.ticks)
