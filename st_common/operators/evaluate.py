"""EVALUATE: one run of fixes against all queries of a shard (DESIGN section 2)."""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from st_common.operators import gpac
from st_common.operators.changes import CAUSES, Names, change_rows
from st_common.operators.match import Hits, LayerOf, QuerySet, compiled, match
from st_common.operators.state import Delta, State
from st_common.operators.targets import Targets
from st_common.operators.timeline import EXPIRED, FIX, GONE, Events, Rows, order

_CAUSE = {name: number for number, name in enumerate(CAUSES)}
_LEAVE_CAUSE = np.array([_CAUSE["leave"], _CAUSE["gone"], _CAUSE["expired"]])  # by kind of event


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a step counted; sums over steps and shards mean the same."""

    fixes: int = 0
    late: int = 0
    double: int = 0
    gone: int = 0
    expired: int = 0
    stays: int = 0
    leaves: int = 0
    enters: int = 0

    def __add__(self, other: "Counters") -> "Counters":
        names = self.__dataclass_fields__
        return Counters(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What of a stream's settings decides its answers."""

    lateness_us: int = 0
    silence_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run does: the delta of the state, the changes, the counters."""

    delta: Delta
    changes: pa.Table
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Rows of consecutive data segments, and the ids of objects that the state does not know yet."""

    rows: Rows
    next_segment: int
    object_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    object_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))


def evaluate(state: State, run: Run, settings: Settings, layer_of: LayerOf) -> Outcome:
    """The outcome of one run; the state is not changed (see `state.apply`)."""
    ordered = order(state, run.rows, lateness_us=settings.lateness_us, silence_us=settings.silence_us)
    events = ordered.events
    hits = _hits(compiled(state.queries), events, state, layer_of)
    cases = gpac.judge(events.object, hits.point, hits.target, state.answer)
    names = _names(state, run, hits)
    changes = change_rows(names, **_rows_of(events, cases, _every(state, names.targets)))
    last = cases.last_event
    delta = Delta(
        next_segment=run.next_segment, max_event=ordered.max_event, held=ordered.held,
        object_ids=run.object_ids, object_hashes=run.object_hashes,
        partner_ids=hits.partner_ids, partner_hashes=hits.partner_hashes,
        target_query=hits.target_query, target_partner=hits.target_partner,
        touched=cases.touched, ts=events.fix_ts[last], x=events.x[last], y=events.y[last],
        alive=(events.kind[last] == FIX).astype(np.int8), answer=cases.answer,
    )  # fmt: skip
    counters = Counters(
        fixes=len(run.rows.ts), late=ordered.late, double=ordered.double, gone=_count(events, GONE),
        expired=_count(events, EXPIRED), stays=len(cases.stays[0]), leaves=len(cases.leaves[0]),
        enters=len(cases.enters[0]),
    )  # fmt: skip
    return Outcome(delta=delta, changes=changes, counters=counters)


def _count(events: Events, kind: int) -> int:
    return int(np.count_nonzero(events.kind == kind))


def _hits(queries: QuerySet, events: Events, state: State, layer_of: LayerOf) -> Hits:
    """What the fixes among the events satisfy; an object that is gone or expired satisfies nothing."""
    fixes = np.flatnonzero(events.kind == FIX)
    x, y = events.x[fixes], events.y[fixes]
    hits = match(queries, x, y, layer_of=layer_of, targets=state.targets, partners=state.partners)
    return replace(hits, point=fixes[hits.point])


def _names(state: State, run: Run, hits: Hits) -> Names:
    return Names(
        queries=state.queries, targets=state.targets.with_new(hits.target_query, hits.target_partner),
        objects=state.objects.with_new(run.object_hashes, run.object_ids),
        partners=state.partners.with_new(hits.partner_hashes, hits.partner_ids),
    )  # fmt: skip


def _every(state: State, targets: Targets) -> np.ndarray:
    """Whether each target's query also wants each further fix of a member."""
    every = np.array([query.plan.emit == "every" for query in state.queries], bool)
    return every[targets.query] if len(targets) else np.empty(0, bool)


def _rows_of(events: Events, cases: gpac.Cases, every: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of the change rows: - where an object leaves, + where it enters, 0 on request."""
    wanted = every[cases.stays[1]] if every.any() else np.zeros(len(cases.stays[1]), bool)
    stay_event, stay_target = cases.stays[0][wanted], cases.stays[1][wanted]
    event = np.concatenate([cases.leaves[0], cases.enters[0], stay_event])
    counts = [len(cases.leaves[0]), len(cases.enters[0]), len(stay_event)]
    cause = np.repeat([-1, _CAUSE["enter"], _CAUSE["inside"]], counts)
    cause[: counts[0]] = _LEAVE_CAUSE[events.kind[cases.leaves[0]]]
    return {
        "position": events.position[event], "event_ts": events.ts[event], "fix_ts": events.fix_ts[event],
        "rank": (events.kind[event] != EXPIRED).astype(np.int8), "objects": events.object[event],
        "target": np.concatenate([cases.leaves[1], cases.enters[1], stay_target]),
        "sign": np.repeat([-1, 1, 0], counts), "cause": cause,
    }  # fmt: skip


def last_fixes_hits(state: State, queries: QuerySet, layer_of: LayerOf) -> tuple[Hits, np.ndarray]:
    """What the last fixes of all living objects satisfy now, and the object of each hit."""
    alive = np.flatnonzero(state.alive)
    hits = match(queries, state.x[alive], state.y[alive], layer_of=layer_of, targets=state.targets,
                 partners=state.partners)  # fmt: skip
    return hits, alive[hits.point]
