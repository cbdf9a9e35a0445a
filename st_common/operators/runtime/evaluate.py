"""EVALUATE: one run of fixes against all queries of a shard (DESIGN section 2)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.summed import Summed
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
from st_common.operators.expressions.fields import fields_of
from st_common.operators.fence.judging import Judged, judge_fences
from st_common.operators.fence.specs import FenceSet
from st_common.operators.fence.telling import tell_fences
from st_common.operators.fence.visits import Visits
from st_common.operators.matching.layer import LayerOf
from st_common.operators.matching.match import Hits, match
from st_common.operators.matching.placing import Source
from st_common.operators.position_filter.chain import ACCEPTED, REASONS
from st_common.operators.position_filter.filter import Filtered, Sifted, sift
from st_common.operators.runtime import gpac
from st_common.operators.runtime.compiling import compiled
from st_common.operators.runtime.inner import Memo
from st_common.operators.runtime.ticks import Ticked, run_ticks
from st_common.operators.skeleton.cache_counts import Caches
from st_common.operators.state.delta import Delta
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.intern import Interner
from st_common.operators.state.limits import LimitSpans
from st_common.operators.state.memories import Changes
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import CAUSE, Names, change_rows
from st_common.operators.turn.points import points_of
from st_common.operators.turn.touched import rows_after
from st_common.operators.turn.turn import Turn

__all__ = ["Counters", "Outcome", "Run", "Settings", "evaluate"]

_LEAVE_CAUSE = np.array(
    [CAUSE["leave"], CAUSE["gone"], CAUSE["expired"]]
)  # by kind of event


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters(Summed):
    """What a step counted; sums over steps and shards mean the same.

    `fixes` to `expired` are of the shard's own objects, `stays` to `enters` are GPAC's cases of queries judged fix by
    fix. `probed` points were looked up, `matched` pairs came out of the spatial operators, before the predicates;
    `filtered_..` fixes were stored and change nothing, by reason (`filter_chain.REASONS`). `ticks` were judged,
    `touched` objects and pairs looked at there, `refills` caches filled anew, `misses` members that a cache did not
    have where none is, `cut` fixes more than a frame keeps of one object.
    """

    fixes: int = 0
    late: int = 0
    double: int = 0
    filtered_accuracy: int = 0
    filtered_speed: int = 0
    filtered_distance: int = 0
    filtered_within_accuracy: int = 0
    gone: int = 0
    expired: int = 0
    stays: int = 0
    leaves: int = 0
    enters: int = 0
    probed: int = 0
    matched: int = 0
    ticks: int = 0
    touched: int = 0
    refills: int = 0
    misses: int = 0
    cut: int = 0

    @property
    def filtered(self) -> dict[str, int]:
        """How many fixes were filtered, by reason; only those reasons that were met."""
        return filtered_of(asdict(self))


def filtered_of(counters: Mapping[str, int]) -> dict[str, int]:
    """How many fixes were filtered, by reason, of counters as a mapping; only those reasons that were met."""
    counts = {name: counters.get(f"filtered_{name}", 0) for name in REASONS}
    return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run does: the delta of the state, the changes, the counters, and what the next run can build on.

    `caches` says by kind of query what caches cost, `filtered` which fixes were stored and changed nothing.
    """

    delta: Delta
    changes: pa.Table
    counters: Counters
    memo: Memo | None = None
    caches: Caches = field(default_factory=dict)
    filtered: Filtered = field(default_factory=Filtered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Rows of consecutive data segments, and the ids of objects that the state does not know yet.

    `final` is an end mark, at which every pending tick is due. `limits` say by which limits fixes are filtered; None:
    as the state does.
    """

    rows: Rows
    next_segment: int
    object_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    object_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    final: Final | None = None
    limits: LimitSpans | None = None


def evaluate(state: State, run: Run, settings: Settings, layer_of: LayerOf) -> Outcome:
    """The outcome of one run; the state is not changed (see `delta.apply`)."""
    ordered = order(
        state,
        run.rows,
        lateness_us=settings.lateness_us,
        silence_us=settings.silence_us,
    )
    spans = state.limits if run.limits is None else run.limits
    sifted = sift(state, ordered, spans, settings)
    ordered = sifted.ordered
    events = ordered.events
    found = readings.of_events(state.fixes, events, ordered.attributes)
    objects = state.objects.with_new(run.object_hashes, run.object_ids)
    source = Source(
        fixes=state.fixes,
        objects=objects,
        run=found,
        run_fixes=np.flatnonzero(events.kind == FIX),
    )
    turn = Turn(
        events=events,
        readings=found,
        clock=ordered.clock,
        objects=objects,
        queries=state.queries,
        known=compiled(state.queries, settings, source),
        settings=settings,
        layer_of=layer_of,
        numbering=Numbering(state.partners, state.targets),
        final=run.final,
    )
    own = owned(turn.objects, settings)
    hits = _hits(turn, own)
    cases = gpac.judge(events.object, hits.point, hits.target, state.answer)
    changes = [_changes(turn, cases)]
    ticked = run_ticks(state, turn)
    fenced = None
    if len(turn.known.of(FenceSet)):
        fenced = judge_fences(state.memories[Visits], turn, own)
        changes.append(tell_fences(fenced, turn, state.fixes))
    return Outcome(
        delta=replace(
            _delta(
                run,
                ordered,
                turn,
                ticked,
                cases,
                memories=_memories(ticked, fenced),
                raised_us=_raised_us(state, run, ordered),
            ),
            limits=None if spans == state.limits else spans,
            **_seen_after(state, turn, sifted),
        ),
        changes=pa.concat_tables([*changes, *ticked.changes]),
        memo=ticked.memo,
        caches=ticked.caches,
        counters=_counters(run, sifted, own, cases, hits, ticked)
        + _counted_fences(fenced),
        filtered=sifted.filtered,
    )


def _seen_after(state: State, turn: Turn, sifted: Sifted) -> dict[str, Any]:
    """The last fixes of objects with events, and until when others were seen, for all their fixes were filtered."""
    events = turn.events
    touched, fixes = rows_after(events, turn.readings, np.arange(len(events)))
    seen_ts = np.maximum(fixes.ts, padded(state.fixes.seen_ts, touched, NEVER))
    is_touched = np.isin(sifted.seen, touched, assume_unique=True)
    if len(sifted.seen):  # then who is touched is among them
        seen_ts = np.maximum(seen_ts, sifted.seen_ts[is_touched])
    return {
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


def owned(objects: Interner, settings: Settings) -> np.ndarray | None:
    """Which objects this shard owns; None for all."""
    if settings.shards == 1:
        return None
    own: np.ndarray = objects.hashes % np.uint64(settings.shards) == settings.shard
    return own


def _hits(turn: Turn, own: np.ndarray | None) -> Hits:
    """What the fixes of own objects satisfy; an object that is gone or expired satisfies nothing."""
    events, queries = turn.events, turn.known.fixwise
    is_meant = events.kind == FIX
    fixes = np.flatnonzero(is_meant if own is None else is_meant & own[events.object])
    if queries.empty:
        return Hits(point=fixes[:0], target=fixes[:0], probed=0, matched=0)
    points = points_of(
        queries,
        turn.readings.take(fixes),
        turn.objects,
        space=turn.settings.space,
    )
    hits = match(queries, points, layer_of=turn.layer_of, numbering=turn.numbering)
    return replace(hits, point=fixes[hits.point])


def _changes(turn: Turn, cases: gpac.Cases) -> pa.Table:
    """The change rows: - where an object leaves, + where it enters, 0 on request."""
    events, numbering = turn.events, turn.numbering
    wanted = turn.known.every[numbering.targets.query[cases.stays[1]]]
    stay_event, stay_target = cases.stays[0][wanted], cases.stays[1][wanted]
    event = np.concatenate([cases.leaves[0], cases.enters[0], stay_event])
    target = np.concatenate([cases.leaves[1], cases.enters[1], stay_target])
    counts = [len(cases.leaves[0]), len(cases.enters[0]), len(stay_event)]
    sign = np.repeat([-1, 1, 0], counts)
    cause = np.repeat([-1, CAUSE["enter"], CAUSE["inside"]], counts)
    cause[: counts[0]] = _LEAVE_CAUSE[events.kind[cases.leaves[0]]]
    query = numbering.targets.query[target]
    selecting = turn.known.selecting[query]
    fields = None
    if selecting.any():
        fields = fields_of(
            turn.queries,
            turn.objects,
            query=query,
            reading=event,
            wanted=selecting,
            readings=turn.readings,
            space=turn.settings.space,
        )
    names = Names(
        queries=turn.queries,
        targets=numbering.targets,
        objects=turn.objects,
        partners=numbering.partners,
    )
    return change_rows(
        names,
        position=events.position[event],
        event_ts=events.ts[event],
        fix_ts=events.fix_ts[event],
        rank=(events.kind[event] != EXPIRED).astype(np.int8),
        objects=events.object[event],
        target=target,
        sign=sign,
        cause=cause,
        fields=fields,
    )


def _delta(
    run: Run,
    ordered: Ordered,
    turn: Turn,
    ticked: Ticked,
    cases: gpac.Cases,
    *,
    memories: Changes,
    raised_us: int,
) -> Delta:
    partner_ids, partner_hashes = turn.numbering.new_partners()
    target_query, target_partner = turn.numbering.new_targets()
    return Delta(
        next_segment=run.next_segment,
        max_event=ordered.max_event,
        raised_us=raised_us,
        held=ordered.held,
        object_ids=run.object_ids,
        object_hashes=run.object_hashes,
        partner_ids=partner_ids,
        partner_hashes=partner_hashes,
        target_query=target_query,
        target_partner=target_partner,
        answer=cases.answer,
        tick_minus=ticked.minus,
        tick_plus=ticked.plus,
        tick_answer=ticked.answer,
        follows=_follows(ordered.events),
        memories=memories,
        pending=ticked.pending,
    )


def _memories(ticked: Ticked, fenced: Judged | None) -> Changes:
    if fenced is None:
        return ticked.memories
    return {**ticked.memories, Visits: fenced.visits}


def _counted_fences(fenced: Judged | None) -> Counters:
    if fenced is None:
        return Counters()
    return Counters(
        leaves=int(np.count_nonzero(fenced.ran.exits)),
        enters=int(np.count_nonzero(fenced.ran.enters)),
        probed=fenced.hits.probed,
        matched=fenced.hits.matched,
    )


def _follows(events: Events) -> bool:
    """Whether all events are fixes, of each object one: so the reading before each is what the state has."""
    return not (events.object[1:] == events.object[:-1]).any() and (
        _count(events, FIX) == len(events)
    )


def _count(events: Events, kind: int) -> int:
    return int(np.count_nonzero(events.kind == kind))


def _counters(
    run: Run,
    sifted: Sifted,
    own: np.ndarray | None,
    cases: gpac.Cases,
    hits: Hits,
    ticked: Ticked,
) -> Counters:
    ordered, caches = sifted.ordered, ticked.caches.values()
    events, reason = ordered.events, sifted.filtered.reason

    def count(objects: np.ndarray) -> int:
        return len(objects) if own is None else int(np.count_nonzero(own[objects]))

    return Counters(
        fixes=count(run.rows.object),
        late=count(ordered.late),
        double=count(ordered.double),
        **{
            f"filtered_{name}": count(sifted.filtered.object[reason == number])
            for number, name in enumerate(REASONS)
            if number != ACCEPTED
        },
        gone=count(events.object[events.kind == GONE]),
        expired=count(events.object[events.kind == EXPIRED]),
        stays=len(cases.stays[0]),
        leaves=len(cases.leaves[0]),
        enters=len(cases.enters[0]),
        probed=hits.probed,
        matched=hits.matched,
        ticks=ticked.ticks,
        touched=ticked.touched,
        cut=ticked.cut,
        refills=sum(one.refills for one in caches),
        misses=sum(one.misses for one in caches),
    )
