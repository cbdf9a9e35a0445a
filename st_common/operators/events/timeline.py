"""From rows of the log to the order in which they take effect: late, double, held, expired (docs/how-it-works.md)."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from st_common.operators.state.fixes import ALIVE, NEVER, Attributes
from st_common.operators.state.state import Held, State
from st_common.runs import highest_before, is_first, is_last

LAST = np.iinfo(np.int64).max

FIX, GONE, EXPIRED = 0, 1, 2  # kinds of an event


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Fixes of one shard in log order, and the clock steps of all fixes of the stream.

    Attributes:
        position: int64[n], places in the log, ascending.
        object: int64[n], numbers of objects.
        ts: int64[n], event time in microseconds.
        x: float64[n]; `y` likewise.
        gone: int8[n], 1 where the object has left.
        clock_position: int64[c], the places at which the largest event time grows, ascending.
        clock_max: int64[c], to what.
        attributes: other columns, n values each.
    """

    position: np.ndarray
    object: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    gone: np.ndarray
    clock_position: np.ndarray
    clock_max: np.ndarray
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """What happens to the shard's objects, sorted by object and then by order of effect; n of them.

    Attributes:
        position: int64[n], the row of the log at which it takes effect.
        object: int64[n].
        ts: int64[n], its event time in microseconds.
        fix_ts: int64[n], that of the fix that it is judged by; of an expiry the last fix of the object.
        x: float64[n], NaN but for fixes; `y` likewise.
        kind: int8[n]: FIX, GONE or EXPIRED.
        source: int64[n], the place of its attributes among `Ordered.attributes`, -1 for EXPIRED.
    """

    position: np.ndarray
    object: np.ndarray
    ts: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    kind: np.ndarray
    source: np.ndarray

    @staticmethod
    def empty() -> "Events":
        """No events."""
        ints, floats = np.empty(0, np.int64), np.empty(0)
        return Events(
            position=ints,
            object=ints,
            ts=ints,
            fix_ts=ints,
            x=floats,
            y=floats,
            kind=ints.astype(np.int8),
            source=ints,
        )

    def __len__(self) -> int:
        return len(self.position)

    def take(self, index: np.ndarray) -> "Events":
        """Some of the events, by place or by mask."""
        return Events(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock as a step function: it is `value[i]` from right after row `position[i]` on; before, `value[0]`.

        position    -1     1     2     5         the drawing of the package: lateness 10 s
        value     NEVER    0    12    30

    Attributes:
        position: int64[c], ascending, -1 first.
        value: int64[c], event times in microseconds, rising.
    """

    position: np.ndarray
    value: np.ndarray

    def before(self, position: np.ndarray) -> np.ndarray:
        """The clock just before rows of the log; int64[n]. In the drawing: before rows 1, 2, 5 it is NEVER, 0, 12."""
        value: np.ndarray = self.value[
            np.searchsorted(self.position, position, side="left") - 1
        ]
        return value

    def first_past(self, ts: np.ndarray) -> np.ndarray:
        """The row after which the clock is past each time (strictly), `LAST` where it is not yet; int64[n].

        In the drawing: times 11, 12, 29, 30 are passed after rows 2, 5, 5, and not yet.
        """
        at = np.searchsorted(self.value, ts, side="right")
        return np.append(self.position, LAST)[at]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """The events of a run, their attributes, what stays held, and the clock.

    Attributes:
        events: what takes effect, sorted by object and effect.
        attributes: of fixes, by the `source` of events.
        origin: int64, by `source` the row of the log where a fix stands, not where it takes effect.
        held: fixes that wait on; None without lateness.
        clock: over the run.
        max_event: the largest event time after the run.
        late: int64, the objects of fixes that came too late, one entry for each fix.
        late_position: int64, their rows of the log.
        double: int64, the objects of fixes of a time that was there already; the first one counts.
    """

    events: Events
    attributes: Attributes
    origin: np.ndarray
    held: Held | None
    clock: Clock
    max_event: int
    late: np.ndarray
    late_position: np.ndarray
    double: np.ndarray


def clock_of(state: State, rows: Rows, lateness_us: int) -> tuple[Clock, int]:
    """The clock over a run, and the largest event time after it. The clock never goes back.

    Args:
        state: the state before the run.
        rows: its fixes and clock steps.
        lateness_us: how far the clock stands behind the largest event time.
    """
    position = np.concatenate([[-1], rows.clock_position])
    highest = np.maximum.accumulate(np.concatenate([[state.max_event], rows.clock_max]))
    value = np.where(highest == NEVER, NEVER, highest - lateness_us)
    return Clock(position=position, value=value), int(highest[-1])


def order(
    state: State, rows: Rows, *, lateness_us: int, silence_us: int | None
) -> Ordered:
    """The events of a run of log rows, in their order of effect; a drawing is in the package's docstring.

    With no lateness every fix newer than the last of its object is used at its own row. With lateness, fixes are held
    until the clock has passed them and are used in order of event time, so that arrival order does not matter (SPEC
    X2).

    Args:
        state: the state before the run.
        rows: fixes in the order of the log, and what the log's clock says.
        lateness_us: how far the clock stands behind the largest event time.
        silence_us: after how long without a fix an object leaves; None: never.

    Returns:
        Events sorted by object and effect, what is held on, and the objects of late and double fixes.
    """
    clock, max_event = clock_of(state, rows, lateness_us)
    attributes, origin = rows.attributes, rows.position
    if lateness_us:
        fixes, known, held, late, double = _released(state, rows, clock)
        late_object, late_position = rows.object[late], rows.position[late]
        attributes, origin = known.attributes, known.position
    else:
        held, immediate = None, _immediate(rows)
        fixes, late, double = _newer(state, immediate, clock, silence_us)
        late_object, late_position = immediate.object[late], immediate.position[late]
    if silence_us is not None:
        fixes = _with_expiries(state, fixes, clock, silence_us)
    return Ordered(
        events=fixes,
        attributes=attributes,
        origin=origin,
        held=held,
        clock=clock,
        max_event=max_event,
        late=late_object,
        late_position=late_position,
        double=double,
    )


def _events(fixes: Held | Rows, index: np.ndarray, position: np.ndarray) -> Events:
    gone = fixes.gone[index] != 0
    # Added to coordinates: who is gone is nowhere, all others stay.
    nan = np.where(gone, np.nan, 0.0)
    return Events(
        position=position,
        object=fixes.object[index],
        ts=fixes.ts[index],
        fix_ts=fixes.ts[index],
        x=fixes.x[index] + nan,
        y=fixes.y[index] + nan,
        kind=np.where(gone, GONE, FIX).astype(np.int8),
        source=index,
    )


def _immediate(rows: Rows) -> Events:
    index = np.argsort(rows.object, kind="stable")
    return _events(rows, index, rows.position[index])


def _newer(
    state: State, events: Events, clock: Clock, silence_us: int | None
) -> tuple[Events, np.ndarray, np.ndarray]:
    """Only the events that are newer than all earlier ones of their object; which are late; objects of double ones.

    Those are late as well that come when their object would be silent already: so nothing has to be known of an object
    once it is silent (see `retire`).
    """
    none = events.object[:0]
    stale = np.zeros(len(events), bool)
    if silence_us is not None:
        stale = events.ts + silence_us < clock.before(events.position)
    if not len(events):
        return events, stale, none
    before = highest_before(
        events.object, events.ts, padded(state.fixes.seen_ts, events.object, NEVER)
    )
    newer = (events.ts > before) & ~stale
    if newer.all():
        return events, stale, none
    late, double = stale | (events.ts < before), ~stale & (events.ts == before)
    return events.take(newer), late, events.object[double]


def padded(values: np.ndarray, index: np.ndarray, filler: float) -> np.ndarray:
    """`values[index]`, with `filler` where `index` is past the end: for objects that the state does not know yet.

    Args:
        values: a column by number of object.
        index: int64[n], from 0 on.
        filler: a value of the column's type.
    """
    known = index < len(values)
    if known.all():
        out: np.ndarray = values[index]
        return out
    out = np.full(len(index), filler, values.dtype)
    out[known] = values[index[known]]
    return out


def _released(
    state: State, rows: Rows, clock: Clock
) -> tuple[Events, Held, Held, np.ndarray, np.ndarray]:
    """What the clock has come to, all fixes that it is of, those that wait on; late rows, objects of double ones."""
    on_time = rows.ts >= clock.before(rows.position)
    held = _joined(state.held, rows, on_time)
    by_object = np.lexsort((held.position, held.ts, held.object))
    is_new = is_first(held.object[by_object], held.ts[by_object])
    single = by_object[is_new]
    release = clock.first_past(held.ts[single])
    due = release != LAST
    # Sorted by object and time is sorted by object and order of effect: the clock passes earlier times earlier.
    events = _events(held, single[due], release[due])
    waiting = np.sort(single[~due])
    index = pa.array(waiting)
    still = Held(
        **{name: getattr(held, name)[waiting] for name in _HELD},
        attributes={
            name: values.take(index) for name, values in held.attributes.items()
        },
    )
    double = held.object[by_object[~is_new]]
    return events, held, still, ~on_time, double


_HELD = ("position", "object", "ts", "x", "y", "gone")


def _joined(held: Held, rows: Rows, on_time: np.ndarray) -> Held:
    """What was held and what came on time; an attribute that one of them lacks is null there."""
    columns = {
        name: np.concatenate([getattr(held, name), getattr(rows, name)[on_time]])
        for name in _HELD
    }
    count, mask, attributes = int(np.count_nonzero(on_time)), pa.array(on_time), {}
    for name in {**held.attributes, **rows.attributes}:
        kind = (rows.attributes if name in rows.attributes else held.attributes)[
            name
        ].type
        old = held.attributes.get(name, pa.nulls(len(held), kind)).cast(
            kind, safe=False
        )
        new = (
            rows.attributes[name].filter(mask)
            if name in rows.attributes
            else pa.nulls(count, kind)
        )
        attributes[name] = pa.concat_arrays([old, new])
    return Held(**columns, attributes=attributes)


def _with_expiries(
    state: State, events: Events, clock: Clock, silence_us: int
) -> Events:
    """The events, with an EXPIRED one where an object was silent for longer than `silence_us` (SPEC G7)."""
    alive = np.flatnonzero(_ending(state, events, clock, silence_us))
    objects = np.concatenate([alive, events.object])
    last = np.concatenate([state.fixes.seen_ts[alive], events.ts])
    used = np.concatenate([state.fixes.ts[alive], events.fix_ts])
    since = np.concatenate([np.full(len(alive), -1), events.position])
    is_fix = np.concatenate([np.ones(len(alive), bool), events.kind == FIX])
    by_object = np.lexsort((last, objects))
    objects, last, used, is_fix, since = (
        column[by_object] for column in (objects, last, used, is_fix, since)
    )
    ends = is_last(objects)
    following = np.where(ends, LAST, np.roll(last, -1))
    following_at = np.where(ends, LAST, np.roll(since, -1))
    end = last + silence_us
    # A fix that comes after the row that ended its object's stay does not keep it, however old it is.
    position = np.maximum(clock.first_past(end), since)
    comes_too_late = (following > end) | (following_at > position)
    expires = is_fix & (position != LAST) & comes_too_late
    nan = np.full(int(expires.sum()), np.nan)
    expired = Events(
        position=position[expires],
        object=objects[expires],
        ts=end[expires],
        fix_ts=used[expires],
        x=nan,
        y=nan,
        kind=np.full(len(nan), EXPIRED, np.int8),
        source=np.full(len(nan), -1),
    )
    return _merged(events, expired)


def _ending(state: State, events: Events, clock: Clock, silence_us: int) -> np.ndarray:
    """Which objects may end their stay in this run: they report, or the clock passes their end; bool[objects]."""
    fixes = state.fixes
    alive = fixes.status == ALIVE
    reports = np.zeros(len(fixes), bool)
    reports[events.object[events.object < len(fixes)]] = True
    due = np.zeros(len(fixes), bool)
    due[alive] = fixes.seen_ts[alive] + silence_us < clock.value[-1]
    ending: np.ndarray = alive & (reports | due)
    return ending


def _merged(events: Events, expired: Events) -> Events:
    both = Events(
        **{
            name: np.concatenate([getattr(events, name), getattr(expired, name)])
            for name in Events.__dataclass_fields__
        }
    )
    return both.take(np.lexsort((both.ts, both.position, both.object)))
