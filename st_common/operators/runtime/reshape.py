"""The states of a stream's shards as one, and one as those of other shards: what a reshard does (docs/adr/0011).

Everything that a shard remembers belongs to an object or to a query:

    what                              goes to the shard of
    last fixes, held, pending         every shard that follows all objects, and the object's; with guests also
                                      a shard whose queries at ticks name it
    answers fix by fix                the object
    answers at ticks                  the query (see `compiling.owners`); of pairs that are spread the first object
    components                        the object or the query, as their layout says

Shards that follow all objects get all fixes, so that what they know of objects is the same, but for those that they
have forgotten. Partners and targets are numbered by each shard for itself: they go over by their names, and
those that nothing names any more stay behind.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.errors import StateError
from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique
from st_common.operators.runtime.compiling import is_spread, owners
from st_common.operators.runtime.reshape_objects import (
    DAMAGED,
    with_all_objects,
    with_known_objects,
    with_own_objects,
)
from st_common.operators.state.component import NONE, Component, Numbers
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.intern import Interner, shards_of, with_those_that_share
from st_common.operators.state.memories import Memories
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import Pending, State
from st_common.operators.state.targets import NO_PARTNER, Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """What a state remembers by the numbers of objects and targets."""

    answer: np.ndarray
    tick_answer: np.ndarray
    memories: Memories


def joined(
    states: Sequence[State], *, following: Collection[int], guests: bool = False
) -> State:
    """The one state that has everything of the states of all shards at one place of the log.

    Its queries are dealt to no shard: whoever splits it says where they go.

    Args:
        states: Of every shard, by its number.
        following: The shards that follow all objects; the others know their own alone.
        guests: These know guests, too.

    Raises:
        StateError: the states are not of one place of the log, or do not know the same.
    """
    live = [_without_dropped(state) for state in states]
    _check(live)
    whole, object_of = _with_objects(live, following, guests=guests)
    numbering = Numbering(Interner.empty(), Targets.empty())
    parts = [
        renumbered(state, numbering, of)
        for state, of in zip(live, object_of, strict=True)
    ]
    return replace(
        whole,
        queries=_dealt_to_none(whole.queries),
        partners=numbering.partners,
        targets=numbering.targets,
        memo=None,
        answer=unique(np.concatenate([part.answer for part in parts])),
        tick_answer=unique(np.concatenate([part.tick_answer for part in parts])),
        memories=Memories.joined([part.memories for part in parts]),
        pending=pending_of(live, object_of),
    )


def _dealt_to_none(queries: Queries) -> Queries:
    dealt = {n: one for n, one in enumerate(queries) if one.dealt is not None}
    if not dealt:
        return queries
    return queries.with_changed({n: replace(q, dealt=None) for n, q in dealt.items()})


def _with_objects(
    states: Sequence[State], following: Collection[int], *, guests: bool
) -> tuple[State, list[np.ndarray]]:
    """One state with the objects of all, and by shard the new numbers of its objects.

    Who follows all comes first: what the others know is among that, but for what was forgotten.
    """
    if not following:
        whole, object_of = with_all_objects(_of_own(states) if guests else states)
        if not guests:
            return whole, object_of
        whole, object_of = with_known_objects([whole, *states])
        return whole, object_of[1:]
    order = sorted(range(len(states)), key=lambda shard: shard not in following)
    whole, object_of = with_known_objects([states[shard] for shard in order])
    by_shard = dict(zip(order, object_of, strict=True))
    return whole, [by_shard[shard] for shard in range(len(states))]


def _of_own(states: Sequence[State]) -> list[State]:
    """The states of shards with their own objects alone; what names others is left as it is."""
    out = []
    for shard, state in enumerate(states):
        own = _shard_of(state, len(states)) == shard
        out.append(with_own_objects(state, own, _numbers_of(own)))
    return out


def _shard_of(state: State, shards: int) -> np.ndarray:
    """The shard of each object; int64[objects]."""
    return shards_of(state.objects.hashes, shards)


def _numbers_of(kept: np.ndarray) -> np.ndarray:
    """The new number of each object (bool) that is kept, `NONE` of the others; int64."""
    return np.where(kept, np.cumsum(kept) - 1, NONE)


def split(
    state: State, *, shards: int, following: Collection[int], guests: bool = False
) -> list[State]:
    """The states of so many shards that together know what one knew, by their numbers; the opposite of `joined`.

    Args:
        state: the one state of a stream at a place of the log.
        shards: how many there shall be.
        following: those that follow all objects; the others get their own alone.
        guests: they get those that their queries at ticks name as well; who is near these they ask others for.
    """
    shard_of = _shard_of(state, shards)
    return [
        _part(
            state,
            shard_of,
            shard,
            shards,
            moving=shard in following,
            guests=guests,
        )
        for shard in range(shards)
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
            and state.limits == first.limits
        ):
            raise StateError(
                "the shards do not know the same queries, layers and clock",
                hint=DAMAGED,
            )


def _without_dropped(state: State) -> State:
    """The state without queries that were dropped: shards forget them at different places (see `retire`)."""
    return with_queries(state, used_queries(state, used_targets(state)))


def used_targets(state: State) -> np.ndarray:
    """The targets that answers and components name; bool[targets]."""
    used = np.zeros(len(state.targets), bool)
    for numbers in (
        state.answer & MASK,
        state.tick_answer >> SHIFT,
        state.memories.numbers(Numbers.TARGETS),
    ):
        used[numbers] = True
    return used


def used_queries(state: State, targets: np.ndarray) -> np.ndarray:
    """The queries that live, or that targets or components name; bool[queries].

    Args:
        state: the state.
        targets: bool[targets], those that are used.
    """
    used = np.array([query.live for query in state.queries], bool)
    used[state.targets.query[targets]] = True
    used[state.memories.numbers(Numbers.QUERIES)] = True
    return used


def with_queries(state: State, kept: np.ndarray) -> State:
    """The state with some of its queries, numbered anew.

    Args:
        state: the state.
        kept: bool[queries]; nothing may name the others.
    """
    if kept.all():
        return state
    query_of = np.where(kept, np.cumsum(kept) - 1, NONE)
    queries = zip(state.queries, kept, strict=True)
    return replace(
        state,
        queries=Queries(query for query, is_kept in queries if is_kept),
        targets=Targets(query_of[state.targets.query], state.targets.partner),
        memories=state.memories.renumbered({Numbers.QUERIES: query_of}),
    )


def renumbered(state: State, numbering: Numbering, object_of: np.ndarray) -> _Answers:
    """What a state remembers, with other numbers of targets, partners and objects.

    Args:
        state: the state.
        numbering: gives targets and partners their new numbers, by name.
        object_of: int64[objects], the new number of each object, `NONE` for one that nothing names.
    """
    of_targets = np.flatnonzero(used_targets(state))
    partner_of = _partners(state, numbering, of_targets)
    target_of = np.full(len(state.targets), NONE)
    target_of[of_targets] = numbering.targets_of(
        state.targets.query[of_targets], partner_of[state.targets.partner[of_targets]]
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
        memories=state.memories.renumbered(
            {
                Numbers.OBJECTS: object_of,
                Numbers.TARGETS: target_of,
                Numbers.PARTNERS: partner_of[:-1],
            }
        ),
    )


def _partners(state: State, numbering: Numbering, of_targets: np.ndarray) -> np.ndarray:
    """The numbers that partners have in a numbering, of those that are named; the last one is for none."""
    named = np.concatenate(
        [state.targets.partner[of_targets], state.memories.numbers(Numbers.PARTNERS)]
    )
    named = unique(named[named != NO_PARTNER])
    partner_of = np.full(len(state.partners) + 1, NO_PARTNER)
    partner_of[named] = numbering.known_partners_of(
        state.partners.ids.take(pa.array(named)), state.partners.hashes[named]
    )
    return partner_of


def part_of(state: State, shard: int, shards: int) -> State:
    """What one of some shards has of a state, all of whose objects it knows; see `split`.

    Args:
        state: the one state of a stream.
        shard: the number of the shard.
        shards: how many there are.
    """
    return _part(state, _shard_of(state, shards), shard, shards, moving=True)


def _part(
    state: State,
    shard_of: np.ndarray,
    shard: int,
    shards: int,
    *,
    moving: bool,
    guests: bool = False,
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
        memories=state.memories.taken(lambda one: _goes(one, state, own, mine)),
    )
    numbering = Numbering(Interner.empty(), Targets.empty())
    if guests and mine.any():
        named = named_at_ticks(kept)
        own = own | with_those_that_share(named, state.objects.hashes)
    # Who follows all objects knows them by the numbers that they have.
    object_of = np.arange(len(own)) if moving else _numbers_of(own)
    kept_objects = renumbered(kept, numbering, object_of)
    whole = state if moving else with_own_objects(state, own, object_of)
    return replace(
        whole,
        partners=numbering.partners,
        targets=numbering.targets,
        memo=None,
        answer=kept_objects.answer,
        tick_answer=kept_objects.tick_answer,
        memories=kept_objects.memories,
    )


def named_at_ticks(state: State) -> np.ndarray:
    """Which objects the answers at ticks of a shard name, or its operators; bool[objects]."""
    named = np.zeros(len(state.objects), bool)
    named[state.tick_answer & MASK] = True
    named[state.memories.numbers(Numbers.OBJECTS)] = True
    return named


def _goes(
    one: Component, state: State, own: np.ndarray, mine: np.ndarray
) -> np.ndarray:
    """Which rows of a component belong to a shard, by its objects or by its queries (bool each); bool[rows]."""
    if one.LAYOUT.owner is Numbers.OBJECTS:
        return np.asarray(own[one.numbers_of_rows(Numbers.OBJECTS)])
    return np.asarray(mine[queries_of_rows(one, state.targets)])


def queries_of_rows(one: Component, targets: Targets) -> np.ndarray:
    """The number of the query that each row of a component is about; int64[n].

    Args:
        one: a component with a column of queries or of targets.
        targets: what its targets are.
    """
    if one.has_numbers(Numbers.QUERIES):
        return one.numbers_of_rows(Numbers.QUERIES)
    queries: np.ndarray = targets.query[one.numbers_of_rows(Numbers.TARGETS)]
    return queries


def pending_of(states: Sequence[State], object_of: Sequence[np.ndarray]) -> Pending:
    """What happened since the last tick; a shard without queries that are judged at ticks has not kept it.

    Args:
        states: of one place of the log.
        object_of: for each of the states int64[its objects], the numbers that these get.
    """
    tick = max(state.pending.tick for state in states)
    if tick == NEVER:
        return Pending()
    objects = [
        of[state.pending.objects] for state, of in zip(states, object_of, strict=True)
    ]
    ended = [state.pending.ended for state in states]
    distinct, first = np.unique(np.concatenate(objects), return_index=True)
    return Pending(tick=tick, objects=distinct, ended=np.concatenate(ended)[first])
