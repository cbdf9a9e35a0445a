"""Aggregates over several ticks at once: what becomes of the groups of members and of windows (SPEC G9, P8).

A query is decided anew at each tick at which something that it holds begins or ends. Its values there follow from what
it holds then, and what is told from the values at the tick before at which it was decided.

    tick                  0       1       2       3       4
    a is a member         x       x       x       x
    b is a member                         x       x
    cells of the query    0               2               4
    COUNT(*)              1               2               0
    told                  + 1             - 1 + 2         - 2 + 0
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from st_common.operators.aggregate import relational
from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.lines import Lines
from st_common.operators.aggregate.reducing import Reduced, both, reduced_cells
from st_common.operators.aggregate.several import nothing_of, same_values
from st_common.operators.aggregate.stretch import Stretch
from st_common.operators.arrays.keys import MASK, SHIFT, is_in, packed, unique
from st_common.operators.state.component import Change
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.changes import CAUSE, TICK_RANK
from st_common.operators.turn.places import nowhere
from st_common.operators.turn.present import Sample
from st_common.operators.turn.spells import Spells
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What counts in groups while it is held; n of them.

    Attributes:
        spells: of holders: from which tick to before which each counts. A holder is a query, or one group of it (see
            `holders_of`).
        group: int64[n], the number of its group's name among the partners.
        amounts: float64[n, w], what it adds to the values of its query, NaN for null.
        again: int64, ascending, `target << 32 | tick`: groups that are told again; None where that follows from the
            query.
        with_changes: where one group of a query that tells everything again (`RSTREAM`) changed, so are all others.
    """

    spells: Spells
    group: np.ndarray
    amounts: np.ndarray
    again: np.ndarray | None = None
    with_changes: bool = False

    def reduced(
        self, turn: Turn, query: np.ndarray, cell: np.ndarray, spell: np.ndarray
    ) -> Reduced:
        """What each cell and group has.

        Args:
            turn: the run.
            query: int64[p], the query of each row.
            cell: int64[p], the place of a cell.
            spell: int64[p], the place of a spell that is held there.
        """
        return reduced_cells(turn, query, cell, self.group[spell], self.amounts[spell])


class Times(Protocol):
    """A run, and k times of it at which groups may change: event times in microseconds, and rows of the log."""

    @property
    def turn(self) -> Turn:
        """The run; its queries are those that hold parts."""

    @property
    def tick(self) -> np.ndarray:
        """int64[k], rising at each position."""

    @property
    def position(self) -> np.ndarray:
        """int64[k], rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Pairs of a holder and a tick at which it is decided, sorted by both; n of them.

    Attributes:
        holder: int64[n]: a query; or one group of it, where each group is of one object and nobody else's change
            matters.
        query: int64[n], the query of the holder.
        at: int64[n], the place of the tick.
        first: int64[n], the place of the holder's first cell.
        last: int64[n], that of its last one.
    """

    holder: np.ndarray
    query: np.ndarray
    at: np.ndarray
    first: np.ndarray
    last: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Groups cell after cell, sorted by target and cell; those from before stand one cell before the first.

    `follows`: the row before is of the same group, one cell earlier; `differs`: and has another value.
    """

    groups: Groups
    cell: np.ndarray
    is_old: np.ndarray
    follows: np.ndarray
    differs: np.ndarray


def parts_of_members(stretch: Stretch) -> Parts:
    """What the members of aggregates count for, at the ticks at which these are decided; nobody else is asked about.

    Args:
        stretch: the ticks, with the members over them. Windows have parts of their own.
    """
    turn, members = stretch.turn, stretch.members
    spells = members.spells
    mine = np.flatnonzero((turn.known.grouped & ~turn.known.windowed)[spells.query])
    spells = Spells(
        spells.query[mine], spells.start[mine], spells.until[mine], spells.ticks
    )
    query, at = spells.decided()
    soonest = np.full(len(turn.queries), spells.ticks)
    soonest[query[::-1]] = at[::-1]  # the first of a query is written last
    seen = np.flatnonzero(spells.until > soonest[spells.query])
    version, point = np.unique(members.version[mine[seen]], return_inverse=True)
    course = stretch.course
    sample = Sample(
        values=course.values, place=course.place[version], object=course.object[version]
    )
    group, amounts = np.full(len(mine), NO_PARTNER), np.ones((len(mine), 1))
    if len(seen):
        adds = relational.contributions(
            turn, sample, point, members.key[mine[seen]] >> SHIFT
        )
        group[seen] = adds.group
        known = relational.amounts_of(
            turn, spells.query[seen], sample.object[point], adds, adds.several
        )
        amounts = np.ones((len(mine), known.shape[1]))
        amounts[seen] = known
    return Parts(spells=spells, group=group, amounts=amounts)


def regroup(
    stretch: Times, parts: Parts, groups: Groups
) -> tuple[Lines | None, Groups]:
    """What becomes of groups over some ticks.

    Args:
        stretch: the ticks; a `Stretch` where the parts do not say which groups are told again.
        parts: what counts in which group, from when to when.
        groups: the groups as they were told last.

    Returns:
        The lines that are told, None for none, and all groups after the ticks.
    """
    turn, cells = stretch.turn, _cells(stretch.turn, parts)
    if not len(cells.holder):
        return None, groups
    old = np.flatnonzero(is_in(holders_of(turn, groups.target), cells.holder))
    run = _run(turn, cells, _values(turn, parts, cells), groups.take(old))
    if parts.again is None and isinstance(stretch, Stretch):
        is_again = _again(stretch, cells)[run.cell]
    else:
        told = np.empty(0, np.int64) if parts.again is None else parts.again
        is_again = is_in(packed(run.groups.target, cells.at[run.cell]), told)
    if parts.with_changes:
        is_again |= _is_beside_changes(turn, cells, run)
    lines = _lines(stretch, cells, run, is_again)
    stays = np.flatnonzero(
        (run.cell == cells.last[np.maximum(run.cell, 0)]) & ~run.is_old
    )
    values = run.groups.take(stays).in_order()
    after = groups.changed(Change(removed=groups.target[old], added=values))
    return lines, after


def holders_of(turn: Turn, target: np.ndarray) -> np.ndarray:
    """The holders of some targets (int64[n]); int64[n].

    A holder is the query, or, where frames have a group of each object, a number for that group alone, beyond all
    numbers of queries: then an object that moves does not make the groups of all others be found anew.
    """
    query = turn.numbering.targets.query[target]
    alone = turn.known.holds_by_object[query]
    return np.where(alone, len(turn.queries) + target, query)


def _cells(turn: Turn, parts: Parts) -> Cells:
    """The holders and ticks at which something begins or ends, or that are told again."""
    holder, at = parts.spells.decided()
    if parts.again is not None:
        more = holders_of(turn, parts.again >> SHIFT)
        decided = unique(
            np.concatenate([packed(holder, at), packed(more, parts.again & MASK)])
        )
        holder, at = decided >> SHIFT, decided & MASK
    queries = len(turn.queries)
    query = np.where(
        holder < queries,
        holder,
        turn.numbering.targets.query[np.maximum(holder - queries, 0)],
    )
    first, end = (
        np.searchsorted(holder, holder),
        np.searchsorted(holder, holder, side="right"),
    )
    return Cells(holder=holder, query=query, at=at, first=first, last=end - 1)


def _values(turn: Turn, parts: Parts, cells: Cells) -> Reduced:
    """The values of all groups at each cell; a count of nothing without groups is 0."""
    reduced = both(
        [
            parts.reduced(turn, cells.query[cell], cell, spell)
            for cell, spell in parts.spells.parts_at(cells.holder, cells.at)
        ]
    )
    has_value = np.zeros(len(cells.query), bool)
    has_value[reduced.cell] = True
    # A cell without rows still has a value where nothing counts as 0.
    empty = np.flatnonzero(~has_value & turn.known.counts_nothing[cells.query])
    if not len(empty):
        return reduced
    star = np.full(len(empty), turn.numbering.partner_of(relational.ALL))
    value, text = nothing_of(turn, cells.query[empty], star)
    nothing = Reduced(cell=empty, group=star, value=value, text=text)
    return both([reduced, nothing])


def _run(turn: Turn, cells: Cells, reduced: Reduced, old: Groups) -> _Run:
    """The values at all cells, and those from before them."""
    fresh = turn.numbering.targets_of(cells.query[reduced.cell], reduced.group)
    # Values from before stand one cell before the first of their holder, so that one rule compares them all.
    before = np.searchsorted(cells.holder, holders_of(turn, old.target)) - 1
    cell = np.concatenate([before, reduced.cell])
    groups = Groups(
        target=np.concatenate([old.target, fresh]),
        value=np.concatenate([old.value, reduced.value]),
        text=np.concatenate([old.text, reduced.text]),
    )
    is_old = np.arange(len(groups)) < len(old)
    order = np.lexsort((cell, groups.target))
    groups, cell, is_old = groups.take(order), cell[order], is_old[order]
    follows = ~is_first(groups.target) & (cell == shifted(cell, 0) + 1)
    before_it = shifted(groups.value, np.nan), shifted(groups.text, NO_PARTNER)
    same = same_values(before_it, (groups.value, groups.text))
    return _Run(
        groups=groups,
        cell=cell,
        is_old=is_old,
        follows=follows,
        differs=follows & ~same,
    )


def _lines(
    stretch: Times, cells: Cells, run: _Run, is_again: np.ndarray
) -> Lines | None:
    """Groups that came, went or have another value: - with the old one, + with the new one; 0 for those told again."""
    update = np.flatnonzero(run.differs)
    comes, goes = _coming(run), _going(cells, run)
    same = np.flatnonzero(run.follows & ~run.differs & is_again)
    row = np.concatenate([goes, update - 1, comes, update, same])
    if not len(row):
        return None
    counts = [len(goes), len(update), len(comes), len(update), len(same)]
    cell = run.cell[row] + np.repeat([1, 1, 0, 0, 0], counts)
    cause = np.repeat(
        [CAUSE[name] for name in ("leave", "value", "enter", "value", "inside")], counts
    )
    sign = np.repeat([-1, -1, 1, 1, 0], counts)
    return _told(stretch, cells.at[cell], run.groups.take(row), sign, cause)


def _coming(run: _Run) -> np.ndarray:
    """The rows of groups that were not there at the cell before."""
    return np.flatnonzero(~run.is_old & ~run.follows)


def _going(cells: Cells, run: _Run) -> np.ndarray:
    """The rows of groups that are not there at the next cell."""
    goes = np.flatnonzero(~np.append(run.follows[1:], False)[: len(run.cell)])
    # At the last cell of its holder a group has no next row because nothing is decided any more: it stays.
    return goes[_end(cells, run, goes) > run.cell[goes]]


def _is_beside_changes(turn: Turn, cells: Cells, run: _Run) -> np.ndarray:
    """Which rows are of a query that tells everything again, at cells at which a group of it changed; bool[n]."""
    changed = np.zeros(len(cells.holder) + 1, bool)
    changed[run.cell[run.differs]] = True
    changed[run.cell[_coming(run)]] = True
    changed[run.cell[_going(cells, run)] + 1] = True
    retells = turn.known.retelling[cells.query[run.cell]]
    beside: np.ndarray = changed[run.cell] & retells
    return beside


def _end(cells: Cells, run: _Run, rows: np.ndarray) -> np.ndarray:
    """The last cell of the query of each row; those from before stand one before the first, where others may be."""
    last: np.ndarray = cells.last[run.cell[rows] + run.is_old[rows]]
    return last


def _told(
    stretch: Times, at: np.ndarray, groups: Groups, sign: np.ndarray, cause: np.ndarray
) -> Lines:
    """Lines of groups at some ticks (int64[n], their places)."""
    numbering, target = stretch.turn.numbering, groups.target
    query, ticks = numbering.targets.query[target], stretch.tick[at]
    return Lines(
        position=stretch.position[at],
        event_ts=ticks,
        fix_ts=ticks,
        **nowhere(len(at)),
        rank=np.full(len(at), TICK_RANK),
        objects=numbering.targets.partner[target],
        target=numbering.targets_of(query, np.full(len(query), NO_PARTNER)),
        sign=sign,
        cause=cause,
        value=groups.value,
        place=groups.text,
    )


def _again(stretch: Stretch, cells: Cells) -> np.ndarray:
    """bool[cells]: where a query tells everything again (SPEC W6: RSTREAM); not in the tick in which it came."""
    turn, turns = stretch.turn, stretch.turns
    again: np.ndarray = turn.known.retelling[cells.query].copy()
    if again.any():
        differs = packed(turn.numbering.targets.query[turns.key >> SHIFT], turns.tick)
        counts = (
            stretch.counts(cells.query, cells.at) | turn.known.windowed[cells.query]
        )
        again &= counts | np.isin(packed(cells.query, cells.at), differs)
    return again


def joined(one: Parts, other: Parts) -> Parts:
    """Both parts together, in the order of spells; of the same ticks, and without `again`."""
    query, start, until = (
        np.concatenate([getattr(one.spells, name), getattr(other.spells, name)])
        for name in ("query", "start", "until")
    )
    order = np.lexsort((start, query))
    return Parts(
        spells=Spells(query[order], start[order], until[order], one.spells.ticks),
        group=np.concatenate([one.group, other.group])[order],
        amounts=relational.both_amounts(one.amounts, other.amounts)[order],
    )
