"""Queries that start, stop or see another version of a layer, judged at their row of the log (SPEC X4)."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate import relational
from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.relational import At
from st_common.operators.aggregate.telling import group_lines, names_of, tell_groups
from st_common.operators.aggregate.until_notes import said_at_once
from st_common.operators.arrays.keys import MASK, SHIFT, merged, packed, without
from st_common.operators.events.timeline import Clock, Events
from st_common.operators.expressions import readings
from st_common.operators.expressions.fields import fields_of
from st_common.operators.fence.swapping import swap_fences
from st_common.operators.fence.visits import Visits
from st_common.operators.matching.layer import LayerOf
from st_common.operators.matching.match import match
from st_common.operators.matching.placing import Source
from st_common.operators.runtime.compiling import compile_shard
from st_common.operators.runtime.evaluate import Counters, Outcome, owned
from st_common.operators.runtime.inner import Memo, inner_answer
from st_common.operators.state.changed_queries import changed_queries
from st_common.operators.state.component import Change, joined
from st_common.operators.state.delta import Delta
from st_common.operators.state.fixes import ALIVE, NEVER
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.travelled.swapping import swap_frames
from st_common.operators.turn.changes import CAUSE, change_rows
from st_common.operators.turn.points import points_of
from st_common.operators.turn.present import Present
from st_common.operators.turn.swapping import Swap
from st_common.operators.turn.turn import Turn
from st_common.operators.turn.valid import valid_from
from st_common.operators.window.entries import Entries


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """The keys of an answer that are swapped: of before and of after without what stays, and what is kept."""

    minus: np.ndarray
    plus: np.ndarray
    kept: np.ndarray


def swap(state: State, change: Swap, settings: Settings, layer_of: LayerOf) -> Outcome:
    """The outcome of a swap: - for what no longer holds, + for what now does, the answers after it."""
    turn = _turn(state, change, settings, layer_of)
    numbering = turn.numbering
    fixed = _swapped(
        state.answer, state.answer & MASK, _fixwise(state, turn, settings), change, turn
    )
    present = Present(state.fixes, turn)
    fresh = inner_answer(
        turn, present, state.tick_answer[:0], Memo(), present.alive
    ).plus
    ticking = _swapped(
        state.tick_answer, state.tick_answer >> SHIFT, fresh, change, turn
    )
    at = At(
        tick=_now(state, settings),
        position=change.position,
        minus=change.minus,
        plus=change.plus,
    )
    groups = _groups(state, turn, change, ticking, present)
    told = [_tell(present, turn, fixed, ticking, at)]
    told.append(
        tell_groups(
            turn,
            group_lines(turn, state.memories[Groups], _told_groups(turn, groups), at),
        )
    )
    said = said_at_once(turn, present, ticking.plus, at.tick)
    framed = swap_frames(
        state, turn, present, change, merged(ticking.kept, ticking.plus), at
    )
    fenced = swap_fences(state, turn, change, owned(state.objects, settings), at)
    told += [framed.changes, fenced.changes]
    partner_ids, partner_hashes = numbering.new_partners()
    target_query, target_partner = numbering.new_targets()
    delta = Delta(
        next_segment=state.next_segment,
        max_event=state.max_event,
        queries=change.queries,
        layers=change.layers,
        changed_queries=changed_queries(state.queries, change.queries),
        answer_minus=fixed.minus,
        answer_plus=fixed.plus,
        tick_minus=ticking.minus,
        tick_plus=ticking.plus,
        memories={
            Entries: _entries(state, turn, change),
            Groups: Change(
                removed=np.union1d(groups.removed, framed.groups.removed),
                added=joined([groups.added, framed.groups.added, said]),
            ),
            **framed.changed,
            Visits: fenced.visits,
        },
        partner_ids=partner_ids,
        partner_hashes=partner_hashes,
        target_query=target_query,
        target_partner=target_partner,
    )
    counters = Counters(
        leaves=len(fixed.minus) + fenced.leaves,
        enters=len(fixed.plus) + fenced.enters,
    )
    return Outcome(delta=delta, changes=pa.concat_tables(told), counters=counters)


def _turn(state: State, change: Swap, settings: Settings, layer_of: LayerOf) -> Turn:
    none, after = Events.empty(), frozenset(change.after.tolist())
    return Turn(
        events=none,
        readings=readings.of_events(state.fixes, none, {}),
        objects=state.objects,
        clock=Clock(position=np.array([-1]), value=np.array([_now(state, settings)])),
        queries=change.queries,
        known=compile_shard(
            change.queries,
            settings,
            Source(fixes=state.fixes, objects=state.objects),
            after,
        ),
        settings=settings,
        layer_of=layer_of,
        numbering=Numbering(state.partners, state.targets),
    )


def _fixwise(state: State, turn: Turn, settings: Settings) -> np.ndarray:
    """The keys of what the last fixes of own living objects satisfy now."""
    own = owned(state.objects, settings)
    alive = np.flatnonzero(
        (state.fixes.status == ALIVE) & (True if own is None else own)
    )
    queries = turn.known.fixwise
    if queries.empty:
        return alive[:0]
    points = points_of(
        queries,
        readings.of_objects(state.fixes, alive),
        state.objects,
        space=settings.space,
    )
    hits = match(queries, points, layer_of=turn.layer_of, numbering=turn.numbering)
    return np.sort(packed(alive[hits.point], hits.target))


def _swapped(
    answer: np.ndarray, target: np.ndarray, after: np.ndarray, change: Swap, turn: Turn
) -> _Keys:
    mine = np.zeros(len(change.queries), bool)
    mine[change.before] = True
    if change.keeps:
        mine &= (
            ~turn.known.windowed | turn.known.framed
        )  # what a window holds stays until it is old
    is_before = mine[turn.numbering.targets.query[target]]
    before = answer[is_before]
    minus, plus = (
        (without(before, after), without(after, before))
        if change.keeps
        else (before, after)
    )
    return _Keys(minus=minus, plus=plus, kept=without(answer, minus))


def _groups(
    state: State, turn: Turn, change: Swap, ticking: _Keys, present: Present
) -> Change[Groups]:
    """The aggregates of the swapped queries before and after.

    Before the stream has a time there are none: also counts of nothing wait for its first tick.
    """
    if state.max_event == NEVER:
        return Change(added=Groups())
    counted = turn.known.grouped & ~(
        turn.known.windowed if change.keeps else np.zeros(len(change.queries), bool)
    )
    counted &= turn.known.mine
    before, after = (
        change.before[counted[change.before]],
        change.after[counted[change.after]],
    )
    answer = merged(ticking.kept, ticking.plus)
    fresh = relational.groups_of_members(
        turn, present, answer, after[~turn.known.windowed[after]]
    )
    dirty = np.union1d(before, after)
    changed = relational.regrouped(turn, state.memories[Groups], dirty, fresh)
    if change.keeps:
        return changed
    gone = np.isin(
        turn.numbering.targets.query[state.memories[Groups].target], change.before
    )
    return Change(
        removed=state.memories[Groups].target[gone],
        added=_without_zeros(turn, changed.added, change.before),
    )


def _entries(state: State, turn: Turn, change: Swap) -> Change[Entries]:
    """Queries that stop lose what their windows hold."""
    entries = state.memories[Entries]
    if change.keeps:
        return Change(added=Entries())
    query = turn.numbering.targets.query[entries.target]
    gone = np.flatnonzero(np.isin(query, change.before))
    return Change(removed=gone, added=Entries())


def _told_groups(turn: Turn, groups: Change[Groups]) -> Change[Groups]:
    """Those of aggregates; others are notes of what was said of members."""
    of = turn.numbering.targets.query[groups.removed]
    return replace(groups, removed=groups.removed[turn.known.grouped[of]])


def _without_zeros(turn: Turn, added: Groups, gone: np.ndarray) -> Groups:
    """A dropped query has no group, not even a count of nothing."""
    keep = ~np.isin(turn.numbering.targets.query[added.target], gone)
    return added.take(keep)


def _tell(
    present: Present, turn: Turn, fixed: _Keys, ticking: _Keys, at: At
) -> pa.Table:
    known, of_target = turn.known, turn.numbering.targets.query
    minus = np.concatenate([_swapped_halves(fixed.minus), ticking.minus])
    plus = np.concatenate([_swapped_halves(fixed.plus), ticking.plus])
    told = ~known.grouped & ~known.framed
    minus, plus = (keys[told[of_target[keys >> SHIFT]]] for keys in (minus, plus))
    keys, counts = np.concatenate([minus, plus]), [len(minus), len(plus)]
    target, who, sign = keys >> SHIFT, keys & MASK, np.repeat([-1, 1], counts)
    query = of_target[target]
    selecting, fields = known.selecting[query], None
    if selecting.any():
        fields = fields_of(
            turn.queries,
            turn.objects,
            query=query,
            reading=who,
            wanted=selecting,
            space=turn.settings.space,
            readings=present.readings(np.arange(len(present))),
        )
    value, comes = np.full(len(keys), np.nan), sign > 0
    value[comes] = valid_from(turn, present, query[comes], who[comes], at.tick)
    return change_rows(
        names_of(turn),
        position=at.rows(query),
        event_ts=np.full(len(keys), at.tick),
        fix_ts=present.ts[who],
        rank=np.ones(len(keys)),
        objects=who,
        target=target,
        sign=sign,
        cause=np.repeat([CAUSE[at.minus or ""], CAUSE[at.plus or ""]], counts),
        value=value,
        fields=fields,
    )


def _swapped_halves(keys: np.ndarray) -> np.ndarray:
    """Keys `object, target` as `target, object`."""
    return packed(keys & MASK, keys >> SHIFT)


def _now(state: State, settings: Settings) -> int:
    """The clock; before the stream has one, when nothing is told, the epoch."""
    return 0 if state.max_event == NEVER else state.max_event - settings.lateness_us
