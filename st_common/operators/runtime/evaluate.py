"""EVALUATE: one run of log rows against all queries of a shard.

rows of the log -> order of time -> position filters -> events -> PHASES -> changes, delta of the state
"""

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.events.agenda import Final
from st_common.operators.events.timeline import (
    EXPIRED,
    FIX,
    GONE,
    Events,
    Ordered,
    Rows,
    order,
    padded,
)
from st_common.operators.expressions import readings
from st_common.operators.fence.phases import run_fences
from st_common.operators.incident.phases import run_incidents
from st_common.operators.matching.layer import LayerOf
from st_common.operators.matching.placing import Source
from st_common.operators.outer.phases import run_outer
from st_common.operators.position_filter.filter import Filtered, Sifted, sift
from st_common.operators.runtime.compiling import compiled
from st_common.operators.runtime.ranges import judge_ranges
from st_common.operators.runtime.ticks import run_ticks
from st_common.operators.skeleton.cache_counts import Caches, summed
from st_common.operators.state.delta import Delta
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.limits import ACCEPTED, REASONS, LimitSpans
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.part import Counters, Part, Phase
from st_common.operators.turn.touched import rows_after
from st_common.operators.turn.turn import Turn, own_objects

PHASES: tuple[Phase, ...] = (
    judge_ranges,  # regions that stand still, layers: fix by fix
    run_ticks,  # windows, travelled ways, what moves, pairs, aggregates: at ticks of event time
    run_fences,  # events at borders: fix by fix, and by the clock
    run_incidents,  # conditions that last: fix by fix, and gaps by the clock
)
"""Who is asked about a run, in this order. Each sees the state before the run and all events of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run does to a shard.

    Attributes:
        delta: what changes in the state.
        changes: rows of `SHARD_SCHEMA`, in no order (see `changes.settled`).
        counters: what was counted.
        memo: what the next run can build on; it can be found anew.
        caches: by kind of query what caches cost.
        filtered: which fixes were stored and changed nothing.
        late: int64, rows of the log with fixes of own objects that came too late, in no order.
    """

    delta: Delta
    changes: pa.Table
    counters: Counters
    memo: Any = None
    caches: Caches = field(default_factory=dict)
    filtered: Filtered = field(default_factory=Filtered)
    late: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Rows of consecutive data segments, or a move of the clock.

    Attributes:
        rows: the fixes and clock steps.
        next_segment: the segment that must come next.
        object_ids: string, ids of objects that the state does not know yet; they are numbered on from those of the
            state.
        object_hashes: uint64, their hashes.
        final: an end mark, at which every pending tick is due; None without.
        limits: by which limits fixes are filtered; None: as the state does.
    """

    rows: Rows
    next_segment: int
    object_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    object_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    final: Final | None = None
    limits: LimitSpans | None = None


def evaluate(state: State, run: Run, settings: Settings, layer_of: LayerOf) -> Outcome:
    """Judges one run of log rows against all queries of a shard.

    Args:
        state: the state before the run; it is not changed (see `delta.apply`).
        run: rows of consecutive segments, or a move of the clock.
        settings: what of the stream's settings decides answers, and which shard this is.
        layer_of: gives a layer in a version.

    Returns:
        The delta to the state, the changes of answers in no order (see `changes.settled`), and counts.
    """
    ordered = order(
        state,
        run.rows,
        lateness_us=settings.lateness_us,
        silence_us=settings.silence_us,
    )
    spans = state.limits if run.limits is None else run.limits
    sifted = sift(state, ordered, spans, settings)
    turn = _turn(state, run, sifted.ordered, settings, layer_of)
    parts = run_outer(state, turn, [phase(state, turn) for phase in PHASES])
    counters = _counters(run, sifted, turn)
    delta = Delta(
        next_segment=run.next_segment,
        raised_us=_raised_us(state, run, sifted.ordered),
        limits=None if spans == state.limits else spans,
        **_clock_after(sifted.ordered),
        **_objects_after(state, run, turn, sifted),
        **fields_of_parts(turn, parts),
    )
    late = ordered.late_position[turn.own(ordered.late)]
    outcome = outcome_of(delta, parts, counters, filtered=sifted.filtered)
    return replace(outcome, late=late)


def outcome_of(
    delta: Delta, parts: list[Part], counters: Counters, *, filtered: Filtered
) -> Outcome:
    """The outcome of a step.

    Args:
        delta: of the state.
        parts: what each phase brought, at least one.
        counters: what was counted beside the parts.
        filtered: which fixes were filtered.
    """
    tables = [table for part in parts for table in part.changes]
    memos = [part.memo for part in parts if part.memo is not None]
    return Outcome(
        delta=delta,
        changes=pa.concat_tables(tables),
        counters=reduce(add, [part.counters for part in parts], counters),
        memo=memos[0] if memos else None,
        caches=summed(part.caches for part in parts),
        filtered=filtered,
    )


def fields_of_parts(turn: Turn, parts: list[Part]) -> dict[str, Any]:
    """The fields of a delta that parts of a step fill, by name, with the partners and targets that they numbered.

    Args:
        turn: the run, all phases of which are done.
        parts: what they brought; a field, and a kind of component, is of one part alone.
    """
    fields = {name: value for part in parts for name, value in part.delta.items()}
    memories = {
        kind: change for part in parts for kind, change in part.memories.items()
    }
    partner_ids, partner_hashes = turn.numbering.new_partners()
    target_query, target_partner = turn.numbering.new_targets()
    return {
        **fields,
        "memories": memories,
        "partner_ids": partner_ids,
        "partner_hashes": partner_hashes,
        "target_query": target_query,
        "target_partner": target_partner,
    }


def _turn(
    state: State, run: Run, ordered: Ordered, settings: Settings, layer_of: LayerOf
) -> Turn:
    events = ordered.events
    objects = state.objects.with_new(run.object_hashes, run.object_ids)
    of_events = readings.of_events(state.fixes, events, ordered.attributes)
    source = Source(
        fixes=state.fixes,
        objects=objects,
        run=of_events,
        run_fixes=np.flatnonzero(events.kind == FIX),
    )
    return Turn(
        events=events,
        readings=of_events,
        clock=ordered.clock,
        objects=objects,
        queries=state.queries,
        known=compiled(state.queries, settings, source),
        settings=settings,
        layer_of=layer_of,
        numbering=Numbering(state.partners, state.targets),
        is_own=own_objects(objects, settings),
        final=run.final,
    )


def _clock_after(ordered: Ordered) -> dict[str, Any]:
    return {
        "max_event": ordered.max_event,
        "held": ordered.held,
        "follows": _follows(ordered.events),
    }


def _objects_after(
    state: State, run: Run, turn: Turn, sifted: Sifted
) -> dict[str, Any]:
    """The last fixes of objects with events, and until when others were seen, for all their fixes were filtered."""
    events = turn.events
    touched, fixes = rows_after(events, turn.readings, np.arange(len(events)))
    seen_ts = np.maximum(fixes.ts, padded(state.fixes.seen_ts, touched, NEVER))
    is_touched = np.zeros(0, bool)
    if len(sifted.seen):  # then who is touched is among them
        is_touched = np.isin(sifted.seen, touched, assume_unique=True)
        seen_ts = np.maximum(seen_ts, sifted.seen_ts[is_touched])
    return {
        "object_ids": run.object_ids,
        "object_hashes": run.object_hashes,
        "touched": touched,
        "fixes": replace(fixes, seen_ts=seen_ts),
        "seen": sifted.seen[~is_touched],
        "seen_ts": sifted.seen_ts[~is_touched],
    }


def _raised_us(state: State, run: Run, ordered: Ordered) -> int:
    """By how much the largest event time stands above all that the log says: an end mark raises it, nothing else."""
    newest = state.newest_event
    if run.final is None:
        newest = max(newest, int(run.rows.clock_max.max(initial=NEVER)))
    return ordered.max_event - newest


def _follows(events: Events) -> bool:
    """Whether all events are fixes, of each object one: so the reading before each is what the state has."""
    is_again = events.object[1:] == events.object[:-1]
    return not is_again.any() and bool((events.kind == FIX).all())


def _counters(run: Run, sifted: Sifted, turn: Turn) -> Counters:
    """What became of the fixes of own objects before they were judged."""
    ordered, filtered = sifted.ordered, sifted.filtered
    events, count = ordered.events, turn.count_own
    return Counters(
        fixes=count(run.rows.object),
        late=count(ordered.late),
        double=count(ordered.double),
        gone=count(events.object[events.kind == GONE]),
        expired=count(events.object[events.kind == EXPIRED]),
        **{
            f"filtered_{name}": count(filtered.object[filtered.reason == number])
            for number, name in enumerate(REASONS)
            if number != ACCEPTED
        },
    )
