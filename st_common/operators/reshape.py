"""The states of a stream's shards as one, and one as those of other shards: what a reshard does (DESIGN section 2).

Everything that a shard remembers belongs to an object or to a query. With `moving` every shard gets all fixes, so the
last fixes of objects that it has not forgotten, held fixes and what is pending are the same in all of them; answers
that are judged fix by fix belong to the object's shard, all else to the query's (see `compiled.owners`). Without it a
shard gets the fixes of its own objects alone. Partners and targets are numbered by each shard for itself: they go over
by their names, and those that nothing names any more stay behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.errors import StateError
from st_common.operators.compiled import is_spread, owners
from st_common.operators.entries import Entries
from st_common.operators.fixes import NEVER
from st_common.operators.frame_rows import FrameRows, Tracks
from st_common.operators.groups import Groups
from st_common.operators.intern import Interner
from st_common.operators.keys import MASK, SHIFT, packed, unique
from st_common.operators.numbering import Numbering
from st_common.operators.registered import Queries
from st_common.operators.reshape_objects import (
    DAMAGED,
    with_all_objects,
    with_known_objects,
    with_own_objects,
)
from st_common.operators.state import Pending, State
from st_common.operators.targets import NO_PARTNER, Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """What a state remembers by the numbers of objects and targets."""

    answer: np.ndarray
    tick_answer: np.ndarray
    entries: Entries
    groups: Groups
    frame_rows: FrameRows
    tracks: Tracks


def joined(states: Sequence[State], *, moving: bool) -> State:
    """The one state that has everything of the states of all shards at one place of the log.

    Args:
        states: Of every shard, by its number.
        moving: The stream's setting: whether every shard knows all objects.

    Raises:
        StateError: the states are not of one place of the log, or do not know the same.
    """
    live = [_without_dropped(state) for state in states]
    _check(live)
    whole, object_of = with_known_objects(live) if moving else with_all_objects(live)
    numbering = Numbering(Interner.empty(), Targets.empty())
    parts = [
        renumbered(state, numbering, of)
        for state, of in zip(live, object_of, strict=True)
    ]
    return replace(
        whole,
        partners=numbering.partners,
        targets=numbering.targets,
        memo=None,
        answer=unique(np.concatenate([part.answer for part in parts])),
        tick_answer=unique(np.concatenate([part.tick_answer for part in parts])),
        entries=_in_order([part.entries for part in parts]),
        groups=_groups([part.groups for part in parts]),
        frame_rows=_frame_rows([part.frame_rows for part in parts]),
        tracks=_tracks([part.tracks for part in parts]),
        pending=_pending(live, object_of),
    )


def split(state: State, *, shards: int, moving: bool) -> list[State]:
    """The states of so many shards that together know what one knew; by their numbers. See `joined`."""
    shard_of = (state.objects.hashes % np.uint64(shards)).astype(np.int64)
    return [
        _part(state, shard_of, shard, shards, moving=moving) for shard in range(shards)
    ]


def _check(states: Sequence[State]) -> None:
    """Raises when the states are not those of the shards of one stream at one place."""
    first = states[0]
    for state in states[1:]:
        if state.next_segment != first.next_segment:
            ends = sorted({state.next_segment for state in states})
            raise StateError(
                f"the shards stand at different segments: {ends}", hint=DAMAGED
            )
        clock, first_clock = (
            (state.max_event, state.raised_us),
            (first.max_event, first.raised_us),
        )
        if not (
            clock == first_clock
            and state.queries == first.queries
            and state.layers == first.layers
        ):
            raise StateError(
                "the shards do not know the same queries, layers and clock",
                hint=DAMAGED,
            )


def _without_dropped(state: State) -> State:
    """The state without queries that were dropped: shards forget them at different places (see `retire`)."""
    live = np.array([query.live for query in state.queries], bool)
    for numbers in (
        state.targets.query[_targets_of(state)],
        state.frame_rows.query,
        state.tracks.key >> SHIFT,
    ):
        live[numbers] = True
    if live.all():
        return state
    query_of = np.where(live, np.cumsum(live) - 1, -1)
    rows, tracks = state.frame_rows, state.tracks
    return replace(
        state,
        queries=tuple(
            query for query, is_live in zip(state.queries, live, strict=True) if is_live
        ),
        targets=Targets(query_of[state.targets.query], state.targets.partner),
        frame_rows=replace(rows, key=packed(query_of[rows.query], rows.object)),
        tracks=replace(
            tracks, key=packed(query_of[tracks.key >> SHIFT], tracks.key & MASK)
        ),
    )


def _targets_of(state: State) -> np.ndarray:
    """The targets that answers, windows and groups name, each once."""
    named = (
        state.answer & MASK,
        state.tick_answer >> SHIFT,
        state.entries.target,
        state.groups.target,
    )
    found: np.ndarray = np.unique(np.concatenate(named))
    return found


def renumbered(state: State, numbering: Numbering, object_of: np.ndarray) -> _Answers:
    """What a state remembers with the targets and partners of a numbering and with other numbers of objects."""
    entries, groups, rows = state.entries, state.groups, state.frame_rows
    in_entries = _counted(
        state.queries, state.targets.query[entries.target], entries.value
    )
    in_rows = _counted(state.queries, rows.query, rows.value)
    of_targets = _targets_of(state)
    partner = state.targets.partner[of_targets]
    of_partners = np.unique(
        np.concatenate(
            [
                partner,
                entries.group,
                entries.value[in_entries.partners].astype(np.int64),
                rows.group,
                rows.value[in_rows.partners].astype(np.int64),
            ]
        )
    )
    of_partners = of_partners[of_partners != NO_PARTNER]
    partner_of = np.full(
        len(state.partners) + 1, NO_PARTNER
    )  # the last is for none: its number is -1
    names, hashes = (
        state.partners.ids.take(pa.array(of_partners)),
        state.partners.hashes[of_partners],
    )
    partner_of[of_partners] = numbering.known_partners_of(names, hashes)
    target_of = np.full(len(state.targets), -1)
    target_of[of_targets] = numbering.targets_of(
        state.targets.query[of_targets], partner_of[partner]
    )
    return _Answers(
        answer=np.sort(
            packed(object_of[state.answer >> SHIFT], target_of[state.answer & MASK])
        ),
        tick_answer=np.sort(
            packed(
                target_of[state.tick_answer >> SHIFT],
                object_of[state.tick_answer & MASK],
            )
        ),
        entries=replace(
            entries,
            target=target_of[entries.target],
            object=object_of[entries.object],
            group=partner_of[entries.group],
            value=in_entries.renumbered(entries.value, partner_of, object_of),
        ),
        groups=_groups([replace(groups, target=target_of[groups.target])]),
        frame_rows=_frame_rows(
            [
                replace(
                    rows,
                    key=packed(rows.query, object_of[rows.object]),
                    group=partner_of[rows.group],
                    value=in_rows.renumbered(rows.value, partner_of, object_of),
                )
            ]
        ),
        tracks=_tracks([_renumbered_tracks(state.tracks, object_of)]),
    )


def _renumbered_tracks(tracks: Tracks, object_of: np.ndarray) -> Tracks:
    return replace(
        tracks, key=packed(tracks.key >> SHIFT, object_of[tracks.key & MASK])
    )


def _frame_rows(parts: Sequence[FrameRows]) -> FrameRows:
    whole = FrameRows()
    for part in parts:
        whole, _ = whole.joined(part)
    return whole.take(np.argsort(whole.key, kind="stable"))


def _tracks(parts: Sequence[Tracks]) -> Tracks:
    whole = Tracks()
    for part in parts:
        whole = whole.changed(removed=np.empty(0, np.int64), added=part)
    return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Which values are the numbers of partners, and which those of objects: different ones are counted by them."""

    partners: np.ndarray
    objects: np.ndarray

    def renumbered(
        self, value: np.ndarray, partner_of: np.ndarray, object_of: np.ndarray
    ) -> np.ndarray:
        """The values with other numbers."""
        out = value.copy()
        for mine, number_of in ((self.partners, partner_of), (self.objects, object_of)):
            out[mine] = number_of[value[mine].astype(np.int64)]
        return out


def _counted(queries: Queries, query: np.ndarray, value: np.ndarray) -> _Counted:
    """What the values of some entries or rows of these queries are; NaN is no number."""
    specs = [one.plan.aggregate for one in queries]
    distinct = np.array(
        [spec is not None and spec.function == "count_distinct" for spec in specs], bool
    )
    without = np.array(
        [spec is not None and spec.argument is None for spec in specs], bool
    )
    known = ~np.isnan(value)
    return _Counted(
        partners=known & (distinct & ~without)[query],
        objects=known & (distinct & without)[query],
    )


def counted_objects(state: State) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of objects that are counted as values, in windows and in rows of frames."""
    entries, rows = state.entries, state.frame_rows
    of_entries = entries.value[
        _counted(
            state.queries, state.targets.query[entries.target], entries.value
        ).objects
    ]
    of_rows = rows.value[_counted(state.queries, rows.query, rows.value).objects]
    return of_entries.astype(np.int64), of_rows.astype(np.int64)


def _part(
    state: State, shard_of: np.ndarray, shard: int, shards: int, *, moving: bool
) -> State:
    """The state of one of some shards."""
    own = shard_of == shard
    mine = owners(state.queries, shards) == shard
    spread = np.array([is_spread(query.plan) for query in state.queries], bool)
    query_of = state.targets.query
    query, who = query_of[state.tick_answer >> SHIFT], state.tick_answer & MASK
    kept = replace(
        state,
        answer=state.answer[own[state.answer >> SHIFT]],
        tick_answer=state.tick_answer[np.where(spread[query], own[who], mine[query])],
        entries=state.entries.take(mine[query_of[state.entries.target]]),
        groups=_taken(state, mine),
        frame_rows=state.frame_rows.take(np.flatnonzero(mine[state.frame_rows.query])),
        tracks=state.tracks.take(mine[state.tracks.key >> SHIFT]),
    )
    numbering = Numbering(Interner.empty(), Targets.empty())
    object_of = np.arange(len(own)) if moving else np.where(own, np.cumsum(own) - 1, -1)
    found = renumbered(kept, numbering, object_of)
    whole = state if moving else with_own_objects(state, own, object_of)
    return replace(
        whole,
        partners=numbering.partners,
        targets=numbering.targets,
        memo=None,
        answer=found.answer,
        tick_answer=found.tick_answer,
        entries=found.entries,
        groups=found.groups,
        frame_rows=found.frame_rows,
        tracks=found.tracks,
    )


def _taken(state: State, mine: np.ndarray) -> Groups:
    keep = mine[state.targets.query[state.groups.target]]
    return Groups(target=state.groups.target[keep], value=state.groups.value[keep])


def _in_order(parts: Sequence[Entries]) -> Entries:
    """Entries of different queries as they came: by their rows of the log, those of one row by their objects."""
    whole = Entries.empty()
    for part in parts:
        whole = whole.changed(removed=np.empty(0, np.int64), added=part)
    return whole.take(np.lexsort((whole.object, whole.position)))


def _groups(parts: Sequence[Groups]) -> Groups:
    target = np.concatenate([part.target for part in parts])
    order = np.argsort(target, kind="stable")
    return Groups(
        target=target[order],
        value=np.concatenate([part.value for part in parts])[order],
    )


def _pending(states: Sequence[State], object_of: Sequence[np.ndarray]) -> Pending:
    """What happened since the last tick; a shard without queries that are judged at ticks has not kept it."""
    tick = max(state.pending.tick for state in states)
    if tick == NEVER:
        return Pending()
    objects = [
        of[state.pending.objects] for state, of in zip(states, object_of, strict=True)
    ]
    ended = [state.pending.ended for state in states]
    found, first = np.unique(np.concatenate(objects), return_index=True)
    return Pending(tick=tick, objects=found, ended=np.concatenate(ended)[first])
