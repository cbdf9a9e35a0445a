"""What a state need not remember: objects that left and are named by nothing, dropped queries, and their numbers.

What follows is the same with and without it, wherever it is done: a fix that could be judged by the last one of a
forgotten object is late whatever is known of it (see `timeline`), and no change depends on numbers.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import SHIFT, unique
from st_common.operators.runtime.reshape import (
    named_at_ticks,
    renumbered,
    used_queries,
    used_targets,
    with_queries,
)
from st_common.operators.runtime.reshape_objects import with_own_objects
from st_common.operators.state.component import NONE, Numbers
from st_common.operators.state.fixes import ALIVE, NEVER
from st_common.operators.state.intern import Interner, Sought, with_those_that_share
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import Pending, State
from st_common.operators.state.targets import NO_PARTNER, Targets

LEAST = 1_000  # objects, queries, targets or partners: less is not worth the work
_SHARE = 8  # nor is less than an eighth of them


@dataclass(frozen=True, slots=True, kw_only=True)
class _Used:
    """Which objects, queries, targets and partners something names, or may; bool each."""

    objects: np.ndarray
    queries: np.ndarray
    targets: np.ndarray
    partners: np.ndarray

    def worth(self, least: int) -> bool:
        """Whether there is enough that nothing names."""
        spare = [
            (int(np.count_nonzero(~used)), len(used))
            for used in (self.objects, self.queries, self.targets, self.partners)
        ]
        return any(
            count > max(least, total // _SHARE if least else 0)
            for count, total in spare
        )


def retired(state: State, settings: Settings, *, least: int = LEAST) -> State:
    """The state without what nothing names (SPEC S4); the same one when that is little.

    Without lateness and silence no object is forgotten: a fix to come may be judged by its last one, however old that
    is.

    Args:
        state: the state; it is not changed.
        settings: by which time objects are forgotten, and the key of hashes.
        least: what is worth the work: more than so many objects, queries, targets or partners, and more than an eighth
            of them; 0: any.
    """
    used = _used(state.of_key(settings.id_key), settings)
    if not used.worth(least):
        return state
    return _with(state, used, settings)


def without_objects(state: State, spare: np.ndarray, settings: Settings) -> State:
    """The state without some of its objects, numbered anew; queries keep their numbers.

    Args:
        state: the state; it is not changed.
        spare: bool[objects], those that go; no answer and no operator may name them. What happened to them in the open
            tick is forgotten.
        settings: the key of hashes.
    """
    targets = used_targets(state)
    used = _Used(
        objects=~spare,
        queries=np.ones(len(state.queries), bool),
        targets=targets,
        partners=_named_partners(state, targets),
    )
    return _with(state.of_key(settings.id_key), used, settings)


def _with(state: State, used: _Used, settings: Settings) -> State:
    """The state with what is used alone, numbered anew."""
    object_of = np.where(used.objects, np.cumsum(used.objects) - 1, NONE)
    kept, pending = with_queries(state, used.queries), state.pending
    is_kept = used.objects[pending.objects]
    numbering = Numbering(
        replace(Interner.empty(), key=settings.id_key), Targets.empty()
    )
    renumbered_state = renumbered(kept, numbering, object_of)
    return replace(
        with_own_objects(kept, used.objects, object_of),
        pending=Pending(
            tick=pending.tick,
            objects=object_of[pending.objects[is_kept]],
            ended=pending.ended[is_kept],
        ),
        partners=numbering.partners,
        targets=numbering.targets,
        memo=None,
        answer=renumbered_state.answer,
        tick_answer=renumbered_state.tick_answer,
        memories=renumbered_state.memories,
    )


def _used(state: State, settings: Settings) -> _Used:
    targets = used_targets(state)
    objects = _named(state, targets) | ~_forgotten(state, settings)
    if settings.hosted:
        objects = with_those_that_share(objects, state.objects.hashes)
    return _Used(
        objects=objects,
        queries=used_queries(state, targets),
        targets=targets,
        partners=_named_partners(state, targets),
    )


def _named_partners(state: State, targets: np.ndarray) -> np.ndarray:
    """Which partners a target that is used names, or a memory: what groups showed is another text after each change."""
    numbers = [state.targets.partner[targets], state.memories.numbers(Numbers.PARTNERS)]
    used = np.unique(np.concatenate(numbers))
    named = np.zeros(len(state.partners), bool)
    named[used[used != NO_PARTNER]] = True
    return named


def _forgotten(state: State, settings: Settings) -> np.ndarray:
    """Which objects have left and lie so far back that no fix to come is judged by their last one; bool[objects]."""
    fixes = state.fixes
    left = fixes.status != ALIVE
    if state.max_event == NEVER or not (
        settings.lateness_us or settings.silence_us is not None
    ):
        return np.zeros(len(left), bool)
    clock = state.max_event - settings.lateness_us
    # A fix of before it is late, whatever is known of its object (see `timeline`).
    horizon = clock if settings.lateness_us else clock - (settings.silence_us or 0)
    forgotten: np.ndarray = left & (fixes.seen_ts < horizon)
    return forgotten


def _named(state: State, targets: np.ndarray) -> np.ndarray:
    """Which objects stand in an answer, a window, a frame, what is held or pending, or are gone with or joined."""
    named = named_at_ticks(state)
    for numbers in (
        state.answer >> SHIFT,
        state.pending.objects,
        state.held.object,
    ):
        named[numbers] = True
    partners = unique(state.targets.partner[targets])
    partners = partners[partners != NO_PARTNER]
    focals = {
        focal for query in state.queries if query.live for focal in query.plan.focals
    }
    for names in (
        state.partners.ids.take(pa.array(partners)),
        pa.array(sorted(focals), pa.string()),
    ):
        places = state.objects.places_of(Sought(names))
        named[places[places >= 0]] = True
    return named
