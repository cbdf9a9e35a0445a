"""What becomes of answers at ticks when queries start, stop or see another version of a layer (SPEC X4)."""

from dataclasses import replace
from functools import partial

import numpy as np

from st_common.operators.aggregate import relational
from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.telling import group_lines, tell_groups
from st_common.operators.aggregate.until_notes import said_at_once
from st_common.operators.ahead.ahead import JOINS, PAIRS, STILL
from st_common.operators.arrays.keys import MASK, SHIFT, merged
from st_common.operators.fence.moving_swapping import swap_moving_fences
from st_common.operators.pairs.choosing import shown_answer
from st_common.operators.runtime.inner import Memo, inner_answer
from st_common.operators.state.component import Change, joined
from st_common.operators.state.fixes import NEVER
from st_common.operators.travelled.swapping import swap_frames
from st_common.operators.turn.part import Counters, Part
from st_common.operators.turn.swapping import (
    Keys,
    Swapping,
    swapped_keys,
    tell_swapped,
)
from st_common.operators.turn.turn import Turn
from st_common.operators.window.entries import Entries


def swap_ticks(swapping: Swapping) -> Part:
    """The part of a swap about answers at ticks: members, groups above them, windows, frames and moving fences."""
    state, turn, at = swapping.state, swapping.turn, swapping.at
    # Who has reported since the last tick is judged by what he reported.
    swapping = swapping.also(state.pending.objects)
    stored, keys = _swapped(swapping)
    groups = _groups(swapping, keys)
    lines = group_lines(turn, state.memories[Groups], _of_aggregates(turn, groups), at)
    said = said_at_once(turn, swapping.present, keys.plus, at.tick)
    after = merged(keys.kept, keys.plus)
    framed = swap_frames(swapping, after)
    fenced = swap_moving_fences(swapping, after)
    groups_after = Change(
        removed=np.union1d(groups.removed, framed.groups.removed),
        added=joined([groups.added, framed.groups.added, said]),
    )
    plus = merged(keys.plus, _rows_anew(swapping, keys.kept))
    return Part(
        changes=(
            tell_swapped(swapping, keys.minus, plus, answer=after),
            tell_groups(turn, lines),
            framed.changes,
            *fenced.changes,
        ),
        delta={"tick_minus": stored.minus, "tick_plus": stored.plus},
        memories={
            Entries: _entries(swapping),
            Groups: groups_after,
            **framed.changed,
            **fenced.memories,
        },
        counters=Counters(),
    )


def _swapped(swapping: Swapping) -> tuple[Keys, Keys]:
    """The keys that are swapped as they are stored, and as they are told: pairs that choose objects are not."""
    turn, answer = swapping.turn, swapping.state.tick_answer
    members = _members(swapping)
    judged = _judged(swapping, answer)
    stored = swapped_keys(swapping, answer, answer >> SHIFT, judged, members)
    if not turn.known.choosing.any():
        return stored, stored
    told, members = shown_answer(turn, answer), shown_answer(turn, members)
    judged = _judged(swapping, told)
    return stored, swapped_keys(swapping, told, told >> SHIFT, judged, members)


def _rows_anew(swapping: Swapping, kept: np.ndarray) -> np.ndarray:
    """Members that stay and about whose columns another query asks: it is judged anew by what they are now."""
    turn, change = swapping.turn, swapping.change
    is_judged = np.zeros(len(turn.queries), bool)
    is_judged[change.after] = change.keeps
    is_judged &= turn.known.nested & turn.known.every & ~turn.known.windowed
    anew: np.ndarray = kept[is_judged[turn.numbering.targets.query[kept >> SHIFT]]]
    return anew


def _members(swapping: Swapping) -> np.ndarray:
    """The members that the queries have by the last fixes: sorted keys `target << 32 | object`."""
    turn, present, among = swapping.turn, swapping.present, swapping.among
    none = swapping.state.tick_answer[:0]
    # From nothing, and with everybody changed: what comes is the whole answer.
    judge = partial(inner_answer, turn, present, none, Memo())
    if among is None:
        return judge(present.alive).plus
    still = judge(
        present.alive & among, but=frozenset({*turn.known.kinds, PAIRS, JOINS})
    )
    return merged(still.plus, judge(present.alive, but=frozenset({STILL})).plus)


def _judged(swapping: Swapping, answer: np.ndarray) -> np.ndarray:
    """Which members are judged anew; bool. Whose region moves, or who has neighbours, is judged with all others."""
    turn = swapping.turn
    stands = np.zeros(len(turn.queries), bool)
    for unit in turn.known.still.units:
        stands[unit.numbers] = True
    query = turn.numbering.targets.query[answer >> SHIFT]
    return np.asarray(swapping.judges(answer & MASK) | ~stands[query])


def _groups(swapping: Swapping, keys: Keys) -> Change[Groups]:
    """The aggregates of the swapped queries before and after.

    Before the stream has a time there are none: also counts of nothing wait for its first tick.
    """
    state, turn, change = swapping.state, swapping.turn, swapping.change
    if state.max_event == NEVER:
        return Change(added=Groups())
    is_counted = turn.known.grouped & turn.known.mine & _are_counted(swapping, keys)
    if change.keeps:
        is_counted = is_counted & ~turn.known.windowed
    before = change.before[is_counted[change.before]]
    after = change.after[is_counted[change.after]]
    fresh = relational.groups_of_members(
        turn,
        swapping.present,
        merged(keys.kept, keys.plus),
        after[~turn.known.windowed[after]],
    )
    held = state.memories[Groups]
    changed = relational.regrouped(turn, held, np.union1d(before, after), fresh)
    if change.keeps:
        return changed
    is_gone = np.isin(turn.numbering.targets.query[held.target], change.before)
    return Change(
        removed=held.target[is_gone],
        added=_without_zeros(turn, changed.added, change.before),
    )


def _are_counted(swapping: Swapping, keys: Keys) -> np.ndarray:
    """Which queries have groups that may be others: none told yet, or a member that is judged anew; bool[queries]."""
    counted = np.ones(len(swapping.turn.queries), bool)
    if swapping.among is None:
        return counted
    of_target = swapping.turn.numbering.targets.query
    counted[of_target[swapping.state.memories[Groups].target]] = False
    for members in (keys.minus, keys.plus, keys.kept):
        judged = members[_judged(swapping, members)]
        counted[of_target[judged >> SHIFT]] = True
    return counted


def _entries(swapping: Swapping) -> Change[Entries]:
    """Queries that stop lose what their windows hold."""
    change = swapping.change
    if change.keeps:
        return Change(added=Entries())
    query = swapping.turn.numbering.targets.query[
        swapping.state.memories[Entries].target
    ]
    gone = np.flatnonzero(np.isin(query, change.before))
    return Change(removed=gone, added=Entries())


def _of_aggregates(turn: Turn, groups: Change[Groups]) -> Change[Groups]:
    """Those that are told; others are notes of what was said of members."""
    of = turn.numbering.targets.query[groups.removed]
    return replace(groups, removed=groups.removed[turn.known.grouped[of]])


def _without_zeros(turn: Turn, added: Groups, gone: np.ndarray) -> Groups:
    """A dropped query has no group, not even a count of nothing."""
    is_kept = ~np.isin(turn.numbering.targets.query[added.target], gone)
    return added.take(is_kept)
