"""Which fixes are filtered before any operator sees them: known badly, implausible, or nothing new (SPEC X11).

It is the last thing that happens to fixes on their way from the log: what is late or double is decided before, and what
is filtered refreshes the silence of its object and moves the clock, but is no event. A *stay* of an object lasts until
it is gone or silent; its first fix has none before it to be judged beside. What says that an object is gone is never
filtered. Each fix is held against the last accepted one of its stay, in the order of event time where the stream has
lateness: in the order of arrival, arrival would decide answers. It is judged by the limits of its own row of the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.events.timeline import EXPIRED, FIX, Events, Ordered, padded
from st_common.operators.position_filter.chain import Chain, judged
from st_common.operators.state.fixes import ALIVE, NEVER, Attributes
from st_common.operators.state.limits import (
    ACCEPTED,
    ACCURACY,
    SPEED,
    LimitColumns,
    LimitSpans,
    limit_columns,
    may_filter,
    span_of,
)
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.runs import is_first, shifted


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The fixes of a run that were filtered; n of them.

    Attributes:
        position: int64[n], their rows of the log.
        object: int64[n].
        reason: int8[n], see `limits.REASONS`.
        value: float64[n], what was too much or too little: metres of accuracy, metres per second, or metres that it had
            moved.
    """

    position: np.ndarray = field(default_factory=_ints)
    object: np.ndarray = field(default_factory=_ints)
    reason: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    value: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.position)

    def take(self, index: np.ndarray) -> "Filtered":
        """Some of them, by place."""
        return Filtered(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )


def joined(parts: Sequence[Filtered]) -> Filtered:
    """What several runs (at least one) filtered, in the order of the log."""
    names = Filtered.__dataclass_fields__
    filtered = Filtered(
        **{
            name: np.concatenate([getattr(one, name) for one in parts])
            for name in names
        }
    )
    return filtered.take(np.argsort(filtered.position, kind="stable"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """What is left of the events of a run.

    Attributes:
        ordered: the events that are left.
        filtered: the fixes that are not.
        seen: int64, ascending, the objects of all fixes of the run; empty where nothing can be filtered.
        seen_ts: int64, the time of each one's newest fix, in microseconds.
    """

    ordered: Ordered
    filtered: Filtered = field(default_factory=Filtered)
    seen: np.ndarray = field(default_factory=_ints)
    seen_ts: np.ndarray = field(default_factory=_ints)


def sift(
    state: State, ordered: Ordered, spans: LimitSpans, settings: Settings
) -> Sifted:
    """The events of a run without the fixes that its limits filter, each judged beside the last accepted of its object.

    Args:
        state: the state before the run.
        ordered: the events in order of effect.
        spans: which limits hold from which place in the log on; a fix is judged by those of its own row.
        settings: the space and the unit of coordinates.

    Returns:
        What is left, what was filtered and why, and until when objects were seen by filtered fixes.
    """
    events = ordered.events
    fixes = np.flatnonzero(events.kind == FIX)
    span = span_of(spans, ordered.origin[events.source[fixes]])
    if not len(fixes) or not may_filter(spans, span):
        return Sifted(ordered=ordered)
    stays = _Stays(state, events)
    chain, event = _chain(state, ordered, stays, fixes, span, spans, settings)
    # What has no event was accepted before the run.
    said, beside = judged(chain, event < 0)
    kept, fix_ts = stays.after(chain, event, said)
    seen, seen_ts = _seen(state, events)
    return Sifted(
        ordered=replace(ordered, events=replace(events, fix_ts=fix_ts).take(kept)),
        filtered=_filtered(ordered, chain, event, said, beside),
        seen=seen,
        seen_ts=seen_ts,
    )


class _Stays:
    """The stays of a run's events: `of` numbers the one of each event, rising.

    `living` are objects whose stay began before the run, `stay` the numbers of those.
    """

    def __init__(self, state: State, events: Events) -> None:
        objects = events.object
        first = is_first(objects)
        # A stay begins with an object's first event, and behind each event that ends one.
        begins = first | shifted(events.kind != FIX, first=False)
        self._events, self.of = events, np.cumsum(begins) - 1
        own = np.flatnonzero(first)
        lives = padded(state.fixes.status, objects[own], filler=-1) == ALIVE
        self.living, self.stay = objects[own[lives]], self.of[own[lives]]

    def after(
        self, chain: Chain, event: np.ndarray, said: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which events stay events, and by which fix each is judged: who expires by the last that was accepted.

        A stay of which no fix was accepted has not begun, so it does not end by silence either.
        """
        last_ts = np.full(int(self.of[-1]) + 1, NEVER)
        accepted = np.flatnonzero(said == ACCEPTED)
        last_ts[chain.stay[accepted]] = chain.ts[accepted]  # the last one stands
        is_expiry = self._events.kind == EXPIRED
        kept = ~is_expiry | (last_ts[self.of] != NEVER)
        kept[event[said != ACCEPTED]] = False
        return kept, np.where(is_expiry, last_ts[self.of], self._events.fix_ts)


def _chain(  # noqa: PLR0917 - what a run has, put together
    state: State,
    ordered: Ordered,
    stays: _Stays,
    fixes: np.ndarray,
    span: np.ndarray,
    spans: LimitSpans,
    settings: Settings,
) -> tuple[Chain, np.ndarray]:
    """The last accepted fixes of objects that are there, and the fixes of the run; the event of each (the former: -1).

    The former stand in front of the fixes of their stays, with the limits from before there were any.
    """
    events, old = ordered.events, state.fixes
    known, limits = stays.living, limit_columns(spans)
    stay = np.concatenate([stays.stay, stays.of[fixes]])
    # Stable: the last accepted fix stands in front of the fixes of its stay.
    order = np.argsort(stay, kind="stable")

    def both(before: np.ndarray, now: np.ndarray) -> np.ndarray:
        joined: np.ndarray = np.concatenate([before, now])[order]
        return joined

    none = np.zeros(len(known), np.int64)
    last_m = _accuracies(limits, old.attributes, known)
    now_m = _accuracies(limits, ordered.attributes, events.source[fixes])
    chain = Chain(
        stay=stay[order],
        ts=both(old.ts[known], events.ts[fixes]),
        x=both(old.x[known], events.x[fixes]),
        y=both(old.y[known], events.y[fixes]),
        span=both(none, span),
        accuracy_m=np.stack(list(map(both, last_m, now_m))),
        limits=limits,
        space=settings.space,
        unit_m=settings.unit_m,
    )
    return chain, both(none - 1, fixes)


def _accuracies(
    limits: LimitColumns, attributes: Attributes, rows: np.ndarray
) -> list[np.ndarray]:
    """How good some fixes are by each of the limits; metres, NaN where that is not known or negative."""
    accuracies = []
    for one in limits.of:
        metres = np.full(len(rows), np.nan)
        if one.accuracy is not None and one.accuracy in attributes:
            values = pc.cast(attributes[one.accuracy].take(pa.array(rows)), "float64")
            metres = values.to_numpy(zero_copy_only=False) * one.accuracy_unit_m
        accuracies.append(np.where(metres >= 0, metres, np.nan))
    return accuracies


def _seen(state: State, events: Events) -> tuple[np.ndarray, np.ndarray]:
    """The objects of events, sorted, and the newest fix that was seen of each: in the run, or before it."""
    seen, first = np.unique(events.object, return_index=True)
    own = np.where(events.kind == EXPIRED, NEVER, events.ts)
    newest = np.maximum.reduceat(own, first)
    return seen, np.maximum(newest, padded(state.fixes.seen_ts, seen, NEVER))


def _filtered(
    ordered: Ordered,
    chain: Chain,
    event: np.ndarray,
    said: np.ndarray,
    beside: np.ndarray,
) -> Filtered:
    """The fixes of a chain that are not accepted, in the order of the log."""
    events = ordered.events
    out = np.flatnonzero(said != ACCEPTED)
    position = ordered.origin[events.source[event[out]]]
    by_row = np.argsort(position, kind="stable")
    out = out[by_row]
    return Filtered(
        position=position[by_row],
        object=events.object[event[out]],
        reason=said[out],
        value=_values(chain, out, said[out], beside[out]),
    )


def _values(
    chain: Chain, fix: np.ndarray, reason: np.ndarray, beside: np.ndarray
) -> np.ndarray:
    """What was too much or too little of filtered fixes, by the reason."""
    values = chain.accuracy(fix, chain.span[fix])
    moved = np.flatnonzero(reason != ACCURACY)
    metres = chain.metres(beside[moved], fix[moved])
    seconds = (chain.ts[fix[moved]] - chain.ts[beside[moved]]) / 1e6
    values[moved] = np.where(reason[moved] == SPEED, metres / seconds, metres)
    return values
