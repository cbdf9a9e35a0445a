"""The part of a run, and of a swap, about the rows of queries: after all that tells of these, and in place of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.lines import Lines, joined_lines
from st_common.operators.aggregate.relational import ALL
from st_common.operators.aggregate.telling import (
    group_lines,
    tell_groups,
)
from st_common.operators.arrays.keys import packed
from st_common.operators.events.agenda import agenda_of
from st_common.operators.events.timeline import LAST
from st_common.operators.outer.among import Told
from st_common.operators.outer.asking import asked
from st_common.operators.outer.lingering import (
    Ending,
    Leaving,
    Lingering,
    Positions,
    lingered,
    never,
)
from st_common.operators.outer.remembered import OuterGroups, OuterRows
from st_common.operators.outer.settling import Waiting, settled
from st_common.operators.outer.signed import Instants, Signed, signed
from st_common.operators.outer.specs import OuterSpecs
from st_common.operators.outer.telling import (
    Above,
    Causes,
    regrouped,
    tell_rows,
    with_causes,
)
from st_common.operators.outer.versions import versions_of
from st_common.operators.state.component import Change
from st_common.operators.state.fixes import NEVER, LastFixes
from st_common.operators.state.state import State
from st_common.operators.turn.changes import SHARD_SCHEMA
from st_common.operators.turn.part import Part
from st_common.operators.turn.swapping import Swapping
from st_common.operators.turn.turn import Turn

_SWAP_RANK = 1  # as of all that is told where queries start and stop
_NOBODY = np.empty(0, np.int64)


def run_outer(state: State, turn: Turn, parts: Sequence[Part]) -> list[Part]:
    """What all parts of a run told of queries whose rows are asked about becomes what is told of those who ask.

    Args:
        state: the state before the run.
        turn: the run.
        parts: those of all phases.

    Returns:
        The parts without these rows, and one about them behind the others.
    """
    if not turn.known.nested.any():
        return list(parts)
    kept, told = _taken(turn, parts)
    before = _Remembered.of(state)
    first = next((one.first_tick for one in parts if one.first_tick), None)
    late = _NOBODY if first is None else _untold(turn, before.groups)
    if not len(told) and not len(late) and not before.has_time:
        return kept
    tick, position = first or (NEVER, NEVER)
    also = Instants(
        tick=np.full(len(late), tick), position=np.full(len(late), position)
    )
    leaving = Leaving(positions=_positions(state, turn))
    judged = _judged(turn, signed(turn, told, also), before, late, leaving)
    return [*kept, _part(turn, before, judged)]


def swap_outer(swapping: Swapping, parts: Sequence[Part]) -> list[Part]:
    """The same for queries that start, stop or see another version of a layer.

    Args:
        swapping: which queries, when and why.
        parts: those of all phases.
    """
    turn, change = swapping.turn, swapping.change
    if not turn.known.nested.any():
        return list(parts)
    kept, told = _taken(turn, parts)
    before = _Remembered.of(swapping.state)
    rows, groups = before.rows, before.groups
    specs, of_target = turn.known.of(OuterSpecs), turn.numbering.targets.query
    ended = _ended(swapping, specs)
    # Groups of queries that end go as they were told last, not by one row after the other.
    told = told.filter(pa.array(~ended[_queries(told)]))
    is_gone, is_over = ended[of_target[groups.target]], ended[of_target[rows.target]]
    causes = Causes(minus=change.minus, plus=change.plus)
    begun = _begun(swapping, specs, groups)
    judged = _judged(
        turn,
        signed(turn, told, _at_rows(swapping, begun)),
        replace(before, rows=rows.take(~is_over), groups=groups.take(~is_gone)),
        begun,
        Leaving(positions=never, ending=_ending(swapping)),
        causes,
    )
    lines = [_ended_lines(swapping, specs, groups.take(is_gone))]
    if judged.lines is not None:
        lines.append(with_causes(judged.lines, causes, _SWAP_RANK))
    told_lines = [one for one in lines if one is not None]
    last = joined_lines(told_lines) if told_lines else None
    judged = replace(judged, lines=last)
    return [*kept, _part(turn, before, judged, rows.target[is_over])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What is told of groups and of rows; what becomes of the rows, and which groups there are afterwards."""

    lines: Lines | None
    changes: pa.Table
    rows: Change[OuterRows]
    groups: OuterGroups
    lingering: Lingering
    waiting: Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    """The rows that count, those of them that have left, those that wait, the groups as told last; last fixes."""

    rows: OuterRows
    lingering: Lingering
    waiting: Waiting
    groups: OuterGroups
    fixes: LastFixes

    @staticmethod
    def of(state: State) -> "_Remembered":
        return _Remembered(
            rows=state.memories[OuterRows],
            lingering=state.memories[Lingering],
            waiting=state.memories[Waiting],
            groups=state.memories[OuterGroups],
            fixes=state.fixes,
        )

    @property
    def has_time(self) -> bool:
        """Whether some rows come or go by the clock alone."""
        return len(self.lingering) > 0 or len(self.waiting) > 0


def _judged(
    turn: Turn,
    rows: Signed,
    known: _Remembered,
    again: np.ndarray,
    leaving: Leaving,
    causes: Causes | None = None,
) -> _Judged:
    """Judges rows with signs.

    Args:
        turn: the run.
        rows: the rows.
        known: what is remembered of those before.
        leaving: when rows that have left go.
        again: queries that may count nothing, at instants of their own (`Signed.others`).
        causes: of all that is told; None: each change has its own.
    """
    specs, of_target = turn.known.of(OuterSpecs), turn.numbering.targets.query
    whole = Told(signed=rows, asked=asked(turn, specs, rows))
    whole, lingering = lingered(turn, whole, known.rows, known.lingering, leaving)
    whole, waiting = settled(turn, whole, known.rows, known.waiting, leaving)
    told = whole.signed
    is_about = np.zeros(len(turn.queries), bool)
    is_about[told.query] = True
    before = known.rows.take(is_about[of_target[known.rows.target]])
    versions = versions_of(before, told, whole.asked)
    of_groups = specs.grouped[turn.numbering.targets.query[versions.rows.target]]
    above = Above(turn=specs.above(turn), tick=told.tick, position=told.position)
    star = np.full(len(again), turn.numbering.partner_of(ALL) if len(again) else 0)
    nothing = packed(turn.numbering.targets_of(again, star), told.others)
    lines, after = regrouped(
        above,
        versions.take(of_groups),
        known.groups,
        np.sort(nothing),
        with_changes=causes is None and bool(specs.retelling.any()),
    )
    stays = versions.until == len(told.tick)
    return _Judged(
        lines=lines,
        changes=tell_rows(turn, told, versions.take(~of_groups), known.fixes, causes),
        rows=before.change_to(versions.take(stays).rows.in_order()),
        groups=after,
        lingering=lingering,
        waiting=waiting,
    )


def _part(
    turn: Turn, before: _Remembered, judged: _Judged, over: np.ndarray = _NOBODY
) -> Part:
    """What is told and remembered as a part of a run.

    Args:
        turn: the run.
        before: what was remembered before.
        judged: what is told, and what becomes of both.
        over: the targets of rows that go with their queries.
    """
    removed = np.union1d(judged.rows.removed, over)
    return Part(
        changes=(tell_groups(turn, judged.lines), judged.changes),
        memories={
            OuterRows: replace(judged.rows, removed=removed),
            OuterGroups: before.groups.change_to(judged.groups),
            Lingering: before.lingering.change_to(judged.lingering),
            Waiting: before.waiting.change_to(judged.waiting),
        },
    )


def _positions(state: State, turn: Turn) -> Positions:
    """Where ticks are judged in a run, at which nothing may happen but that rows are too old."""

    def positions(ticks: np.ndarray) -> np.ndarray:
        agenda = agenda_of(
            turn.events,
            turn.clock,
            turn.settings.tick_us,
            pending=state.pending.tick,
            aging=np.unique(ticks),
            final=turn.final,
        )
        place = np.searchsorted(agenda.due, ticks)
        is_due = np.append(agenda.due, NEVER)[place] == ticks
        return np.where(is_due, np.append(agenda.position, LAST)[place], LAST)

    return positions


def _taken(turn: Turn, parts: Sequence[Part]) -> tuple[list[Part], pa.Table]:
    """The parts without what they told of queries whose rows are asked about, and these rows."""
    kept, taken = list[Part](), [SHARD_SCHEMA.empty_table()]
    for part in parts:
        tables = list[pa.Table]()
        for table in part.changes:
            is_below = turn.known.nested[_queries(table)]
            taken.append(table.filter(pa.array(is_below)))
            tables.append(table.filter(pa.array(~is_below)))
        kept.append(replace(part, changes=tuple(tables)))
    return kept, pa.concat_tables(taken)


def _queries(told: pa.Table) -> np.ndarray:
    """The number of the query of each row; int64[n]."""
    return np.asarray(told["query_order"].to_numpy(), np.int64)


def _untold(turn: Turn, groups: OuterGroups) -> np.ndarray:
    """Own queries that were there before the stream had a time, count nothing as 0, and have told no value since."""
    specs, early = turn.known.of(OuterSpecs), turn.known.early
    told = turn.numbering.targets.query[groups.target]
    return np.asarray(np.setdiff1d(early[specs.counts_nothing[early]], told))


def _begun(swapping: Swapping, specs: OuterSpecs, groups: OuterGroups) -> np.ndarray:
    """Own queries that start and count nothing as 0; before the stream has a time that waits for its first tick.

    So do those that go on with another version of a layer, and of which nothing was told yet.
    """
    after, change, turn = swapping.change.after, swapping.change, swapping.turn
    if swapping.state.max_event == NEVER:
        return after[:0]
    counted = specs.counts_nothing & turn.known.mine
    if change.keeps:
        counted &= ~turn.known.windowed | turn.known.framed
        counted[turn.numbering.targets.query[groups.target]] = False
    begun: np.ndarray = after[counted[after]]
    return begun


def _at_rows(swapping: Swapping, queries: np.ndarray) -> Instants:
    """The instants at which queries start."""
    at = swapping.at
    return Instants(position=at.rows(queries), tick=np.full(len(queries), at.tick))


def _ending(swapping: Swapping) -> Ending:
    """The queries that end, all of whose rows go at once."""
    change, at = swapping.change, swapping.at
    ended = np.zeros(len(swapping.turn.queries), bool)
    ended[change.before[: 0 if change.keeps else None]] = True
    return Ending(ended=ended, position=at.rows, tick=at.tick)


def _ended(swapping: Swapping, specs: OuterSpecs) -> np.ndarray:
    """Whether each query ends, and has groups; bool[q]."""
    change = swapping.change
    ended = np.zeros(len(swapping.turn.queries), bool)
    ended[change.before[: 0 if change.keeps else None]] = True
    ended &= specs.grouped
    return ended


def _ended_lines(
    swapping: Swapping, specs: OuterSpecs, gone: OuterGroups
) -> Lines | None:
    """What is told of groups whose queries end."""
    change = Change(removed=gone.target, added=Groups())
    return group_lines(specs.above(swapping.turn), gone, change, swapping.at)
