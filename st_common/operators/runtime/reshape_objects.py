"""The objects of a reshard: what shards know of them as one, or of some of them alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from st_common.errors import StateError
from st_common.operators.state.fixes import ALIVE, LastFixes
from st_common.operators.state.intern import Interner
from st_common.operators.state.state import Held, Pending, State
from st_common.operators.state.taken import joined_attributes

DAMAGED = "the state of a shard is damaged, or of another time"
"""The hint of an error that no reshard should meet."""

_HELD = ("position", "object", "ts", "x", "y", "gone")


def with_known_objects(states: Sequence[State]) -> tuple[State, list[np.ndarray]]:
    """The first state with the objects that any of the states knows: each shard forgets objects for itself.

    Args:
        states: of shards at one place of the log, the first of which follows all objects.

    Returns:
        The state, and for each of the states int64[its objects], the new numbers of these.

    Raises:
        StateError: what two of them know of an object that is there differs.
    """
    whole, object_of = states[0], [np.arange(len(states[0].objects))]
    for state in states[1:]:
        number = whole.objects.find(state.objects.hashes, state.objects.ids)
        # What the shards before have forgotten comes behind what they know.
        new = np.flatnonzero(number < 0)
        fixes = _newest_fixes(whole.fixes, state.fixes, number)
        number[new] = len(whole.objects) + np.arange(len(new))
        object_of.append(number)
        whole = replace(
            whole,
            fixes=joined_fixes([fixes, state.fixes.take(new)]),
            objects=whole.objects.with_new(
                state.objects.hashes[new], state.objects.ids.take(pa.array(new))
            ),
        )
    return whole, object_of


def _newest_fixes(fixes: LastFixes, others: LastFixes, number: np.ndarray) -> LastFixes:
    """The last fixes of objects, from another shard where it remembers of one that left what this one forgot.

    `number` says which object each of the others is, -1 for none.
    """
    theirs = np.flatnonzero(number >= 0)
    mine = number[theirs]
    differs = (fixes.seen_ts[mine] != others.seen_ts[theirs]) | (
        fixes.status[mine] != others.status[theirs]
    )
    is_there = (fixes.status[mine] == ALIVE) | (others.status[theirs] == ALIVE)
    if (differs & is_there).any():
        raise StateError("the shards do not know the same of objects", hint=DAMAGED)
    newer = np.flatnonzero(others.seen_ts[theirs] > fixes.seen_ts[mine])
    # `with_rows` takes objects in their order.
    newer = newer[np.argsort(mine[newer])]
    return (
        fixes.with_rows(mine[newer], others.take(theirs[newer]), total=len(fixes))
        if len(newer)
        else fixes
    )


def with_all_objects(states: Sequence[State]) -> tuple[State, list[np.ndarray]]:
    """The first state with the objects of all, one shard's after the other's.

    Args:
        states: of shards that get the fixes of their own objects alone, at one place of the log.

    Returns:
        The state, and for each of the states int64[its objects], the new numbers of these.
    """
    starts = np.cumsum([0, *(len(state.objects) for state in states[:-1])])
    object_of = [
        start + np.arange(len(state.objects))
        for start, state in zip(starts, states, strict=True)
    ]
    objects = Interner.empty()
    for state in states:
        objects = objects.with_new(state.objects.hashes, state.objects.ids)
    held = [
        replace(state.held, object=of[state.held.object])
        for state, of in zip(states, object_of, strict=True)
    ]
    fixes = joined_fixes([state.fixes for state in states])
    return replace(
        states[0], objects=objects, held=joined_held(held), fixes=fixes
    ), object_of


def with_own_objects(state: State, own: np.ndarray, object_of: np.ndarray) -> State:
    """A state with some of its objects, numbered anew; answers and components are left as they are.

    Args:
        state: the state.
        own: bool[objects], those that are kept.
        object_of: int64[objects], their new numbers.
    """
    numbers = np.flatnonzero(own)
    held = _held_rows(state.held, np.flatnonzero(own[state.held.object]))
    is_own = own[state.pending.objects]
    pending, ended = state.pending.objects[is_own], state.pending.ended[is_own]
    tick = state.pending.tick
    return replace(
        state,
        objects=Interner(
            state.objects.ids.take(pa.array(numbers)), state.objects.hashes[own]
        ),
        fixes=state.fixes.take(numbers),
        held=replace(held, object=object_of[held.object]),
        pending=Pending(tick=tick, objects=object_of[pending], ended=ended)
        if len(pending)
        else Pending(),
    )


def joined_fixes(parts: Sequence[LastFixes]) -> LastFixes:
    """Last fixes of different objects, one part behind the other; attributes are null where a part lacks one."""
    columns = {
        name: np.concatenate([getattr(one, name) for one in parts])
        for name in LastFixes().columns()
    }
    return LastFixes(
        **columns,
        attributes=joined_attributes([(len(one), one.attributes) for one in parts]),
    )


def joined_held(parts: Sequence[Held]) -> Held:
    """Held fixes of different shards in log order."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _HELD
    }
    attributes = joined_attributes([(len(part), part.attributes) for part in parts])
    return _held_rows(
        Held(**columns, attributes=attributes),
        np.argsort(columns["position"], kind="stable"),
    )


def _held_rows(held: Held, rows: np.ndarray) -> Held:
    index = pa.array(rows)
    return Held(
        **{name: getattr(held, name)[rows] for name in _HELD},
        attributes={
            name: values.take(index) for name, values in held.attributes.items()
        },
    )
