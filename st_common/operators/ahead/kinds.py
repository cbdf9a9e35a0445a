"""The kinds of the skeleton over several ticks at once: only what changed is held against queries (SPEC P8).

A query and an object are looked at anew when something happened to one of them. Where members decide the criteria, what
queries compare objects by is found in the same way and kept from tick to tick; who is first follows for all ticks.
"""

from dataclasses import dataclass, replace

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.arrays.turns import Turns, of_cells
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.world import Criteria, Kind, Ranking, Table, World
from st_common.operators.turn.course import Course
from st_common.operators.turn.eligibility import selection_of
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.runs import ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the q queries of a kind ask for over several ticks.

    Attributes:
        world: the versions, with what is selected of them.
        criteria: of pairs of a query and a tick at which its focal objects changed, and of the first tick.
        row: int64[ticks, q], which of these hold at a tick.
        moved: bool[ticks, q], where a focal object changed.
    """

    world: World
    criteria: Criteria
    row: np.ndarray
    moved: np.ndarray


def kind_ahead(
    name: str,
    queries: KindQueries,
    course: Course,
    turn: Turn,
    fixes: Present,
    answer: np.ndarray,
) -> tuple[Turns, int]:
    """What comes and goes in the answers of a kind over several ticks at once.

    Args:
        name: the kind, as in `KINDS`.
        queries: its queries.
        course: the versions of last fixes over the ticks.
        turn: the run.
        fixes: the last fixes before the ticks.
        answer: sorted keys `target << 32 | object` before the ticks.

    Returns:
        What comes and goes at which tick, and how many pairs were looked at.
    """
    kind, target = KINDS[name], fixes.lookups.targets(queries)
    asked = asked_of(kind, queries, course, turn, fixes)
    before = _before(answer, target, course, len(turn.numbering.targets))
    if isinstance(kind, Ranking):
        return _ranked(
            kind, asked, course, fixes.lookups.table(queries), target, before
        )
    tick, query, column = cells(asked.moved, course)
    holds = kind.satisfy(
        asked.world, asked.criteria, asked.row[tick, query], course.at[tick, column]
    )
    key = packed(target[query], course.objects[column])
    return of_cells(key, tick, holds, before[query, column]), len(tick)


def _renewed(moved: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ticks at which queries get other criteria, and which criteria count when.

    Args:
        moved: bool[ticks, queries], where an object moved that a query goes with.

    Returns:
        Ticks and queries, int64[c] each, a pair for each of the criteria; and int64[ticks, queries], the place among
        them of those that count.

    Example:
        one query, that moves at ticks 0 and 2 of 4:    ticks 0, 2      places 0, 0, 1, 1
    """
    renewed = moved.copy()
    # The first tick has criteria whether or not anything moved there.
    renewed[0] = True
    tick, query = np.nonzero(renewed)
    row = np.zeros(moved.shape, np.int64)
    row[tick, query] = np.arange(len(tick))
    # Rows are numbered by tick: the newest so far has the greatest number.
    np.maximum.accumulate(row, axis=0, out=row)
    return tick, query, row


def asked_of(
    kind: Kind, queries: KindQueries, course: Course, turn: Turn, fixes: Present
) -> Asked:
    """The criteria of queries over several ticks, and the versions that can satisfy them.

    Args:
        kind: the kind of the queries.
        queries: the queries.
        course: the versions of last fixes over the ticks.
        turn: the run.
        fixes: the last fixes before the ticks.
    """
    table = fixes.lookups.table(queries)
    world = course.world
    selection, _ = selection_of(
        queries,
        course,
        world,
        turn,
        before=None,
        changed=course.alive,
    )
    world = replace(world, selection=selection)
    goes, focal = _goes(table)
    column = course.columns_of(focal)
    version = np.where(column >= 0, course.at[:, column], -1)
    moved = np.zeros((course.ticks, len(table.focal)), bool)
    tick, place = np.nonzero((column >= 0) & course.changed[:, column])
    moved[tick, goes[place]] = True
    tick, query, row = _renewed(moved)
    rows = _table_of(table, query, version[tick])
    which = np.arange(len(query))
    criteria = (
        kind.asked(world, rows, which)
        if isinstance(kind, Ranking)
        else kind.update_criteria(world, rows, which)
    )
    return Asked(world=world, criteria=criteria, row=row, moved=moved)


def _goes(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a query and an object that it goes with (-1 for none): one a query, or one for each of its places."""
    if len(table.place_row):
        return table.place_row, table.place_focal
    return np.arange(len(table.focal)), table.focal


def _table_of(table: Table, query: np.ndarray, version: np.ndarray) -> Table:
    """A table with a row for each of some queries, whose focal objects are versions; int64[rows, places]."""
    rows = np.arange(len(query))
    columns = {
        name: getattr(table, name)
        for name in Table.__dataclass_fields__
        if not name.startswith("place_") and name != "forms"
    }
    taken = {
        name: column[query]
        for name, column in columns.items()
        if len(column) == len(table.focal)
    }
    if not len(table.place_row):
        return replace(table, **{**taken, "focal": version[rows, query]})
    start = np.searchsorted(table.place_row, query)
    count = np.searchsorted(table.place_row, query, side="right") - start
    at, of = ranges(start, count), np.repeat(rows, count)
    return replace(
        table,
        **taken,
        place_row=of,
        place_focal=version[of, at],
        place_x=table.place_x[at],
        place_y=table.place_y[at],
    )


def _before(
    answer: np.ndarray, target: np.ndarray, course: Course, targets: int
) -> np.ndarray:
    """bool[q, n]: who is in the answer of which query before the first tick."""
    row_of = np.full(targets, -1)
    row_of[target] = np.arange(len(target))
    row = row_of[answer >> SHIFT]
    mine = row >= 0
    before = np.zeros((len(target), len(course.objects)), bool)
    before[row[mine], course.columns_of(answer[mine] & MASK)] = True
    return before


def cells(
    moved: np.ndarray, course: Course
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is looked at: all objects where a query moved, else those that changed.

    Args:
        moved: bool[ticks, q], where a focal object changed.
        course: the versions over the ticks.

    Returns:
        Three int64 arrays: places of ticks, of queries, and columns of objects; each triple once.
    """
    queries, width = moved.shape[1], len(course.objects)
    tick, column = course.tick[course.new], course.column[course.new]
    tick, column = np.repeat(tick, queries), np.repeat(column, queries)
    query = np.tile(np.arange(queries), len(course.new))
    rest = ~moved[tick, query]
    at, whole = np.nonzero(moved)
    return (
        np.concatenate([tick[rest], np.repeat(at, width)]),
        np.concatenate([query[rest], np.repeat(whole, width)]),
        np.concatenate([column[rest], np.tile(np.arange(width), len(at))]),
    )


def _ranked(
    kind: Ranking,
    asked: Asked,
    course: Course,
    table: Table,
    target: np.ndarray,
    before: np.ndarray,
) -> tuple[Turns, int]:
    """Who is first: by what objects are compared by, found anew where something changed."""
    moved = asked.moved.copy()
    # Nothing is known of the time before the first tick: there all is measured.
    moved[0] = True
    tick, query, column = cells(moved, course)
    value = kind.measure(
        asked.world, asked.criteria, asked.row[tick, query], course.at[tick, column]
    )
    order = np.argsort(tick, kind="stable")
    ranks = np.zeros((course.ticks, len(target), len(course.objects)), np.int32)
    ranks[tick[order], query[order], column[order]] = np.arange(len(tick))
    np.maximum.accumulate(ranks, axis=0, out=ranks)  # what was found last
    holds = kind.chosen(asked.world, table, value[order][ranks], course.at)
    changed = holds ^ np.concatenate([before[None], holds[:-1]])
    tick, query, column = np.nonzero(changed)
    key = packed(target[query], course.objects[column])
    return Turns(tick=tick, key=key, comes=holds[tick, query, column]), len(value)
