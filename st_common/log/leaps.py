"""Which fixes leap too far ahead of their stream to be believed: one wrong clock does not move the time of all.

    bound 1 day         v0 12:00   v1 12:01   v2 2031    v0 12:02          v2 is ahead of the stream
    after a pause       v0 12:00   (3 days)   v1 12:00   v2 12:01          a second object agrees: believed
    one object alone    v0 12:00   (3 days)   v0 12:00   12:01  12:02  12:03    its next three fixes agree: believed

Event times are cut where they leave a gap wider than the bound; what comes behind a gap is believed where its arrival
agrees, a second object, or the next `AGREEING` fixes of its object with nobody speaking of the time before in between.
Whoever writes the log judges, once, and says in the log which rows are ahead (`formats.said_before`), so that all who
read it agree. A stream whose fixes always lie far apart is used to that: the bound is `USUAL` of its typical steps, but
no more than `WIDEST` times what the settings say.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.log.event_time import EventTime

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
AGREEING = 3
USUAL = 10
WIDEST = 30
_STEPS = 15


def most_us_of(stream: StreamSettings) -> int:
    """How far ahead a fix of a stream may be that nobody else confirms, us; 0: as far as it likes."""
    is_off = stream.max_jump_s is None or stream.columns.event_ts is None
    return 0 if is_off else max(round((stream.max_jump_s or 0) * 1e6), 1)


def judged(
    fixes: pa.Table, time: EventTime, *, arrival_us: int, most_us: int
) -> tuple[Mask, EventTime]:
    """Which fixes are ahead of their stream, and how far its time has come behind them.

    Args:
        fixes: `object` and `event_ts` (us UTC), in the order in which they came.
        time: how far the stream was before.
        arrival_us: when they came.
        most_us: how far ahead a fix may be that nobody else confirms.

    Returns:
        bool[n], and the time; its `segment` is the one before.
    """
    times = fixes["event_ts"].to_numpy()
    if not len(times):
        return np.zeros(0, bool), time
    first, last = int(times.min()), int(times.max())
    if time.high_us is not None and last - time.high_us <= most_us:
        steps = (*time.steps_us, max(last - time.high_us, 0) // len(times))
        high = max(last, time.high_us)
        moved = replace(time, high_us=high, waiting=(), steps_us=steps[-_STEPS:])
        return np.zeros(len(times), bool), moved
    if time.high_us is None and last - first <= most_us:
        steps = ((last - first) // len(times),) if last > first else ()
        return np.zeros(len(times), bool), replace(time, high_us=last, steps_us=steps)
    names = pc.cast(fixes["object"], pa.string()).combine_chunks()
    before = len(time.waiting)
    names = pa.concat_arrays(
        [pa.array([n for n, _ in time.waiting], pa.string()), names]
    )
    waited = np.array([at for _, at in time.waiting], np.int64)
    return _judged(
        np.concatenate([waited, times]), names, before, time, arrival_us, most_us
    )


def _judged(
    times: Ints,
    names: pa.Array,
    before: int,
    time: EventTime,
    arrival_us: int,
    most_us: int,
) -> tuple[Mask, EventTime]:
    """The same with those that wait in front, `before` of them."""
    objects = names.dictionary_encode().indices.to_numpy()
    bound_us = _bound(times, time.steps_us, most_us)
    levels, tops = _levels(times, time.high_us, bound_us)
    believed = max(
        _by_arrival(times, levels, arrival_us, bound_us),
        _by_second_object(levels, objects),
        _by_next_fixes(levels, objects),
    )
    is_ahead = levels > believed
    behind = np.flatnonzero(~is_ahead)
    last = int(behind[-1]) + 1 if len(behind) else 0
    waiting = np.arange(last, len(times))[-AGREEING:]
    high = int(tops[believed])
    steps = _steps(times[~is_ahead], time.high_us)
    return is_ahead[before:], replace(
        time,
        high_us=high,
        waiting=tuple(
            (str(name), int(at))
            for name, at in zip(
                names.take(pa.array(waiting)).to_pylist(), times[waiting], strict=True
            )
        ),
        steps_us=(*time.steps_us, *steps)[-_STEPS:],
    )


def _bound(times: Ints, steps_us: Sequence[int], most_us: int) -> int:
    """How wide a gap is one: most_us, or more for a stream whose fixes always lie far apart."""
    steps = np.sort([*steps_us, *np.diff(np.unique(times))])
    typical = int(steps[(len(steps) - 1) // 2]) if len(steps) else 0
    return min(max(most_us, USUAL * typical), WIDEST * most_us)


def _levels(times: Ints, high_us: int | None, bound_us: int) -> tuple[Ints, Ints]:
    """Behind how many gaps each event time stands, and the last event time before each of them.

    What is not later than the stream's time stands behind none.
    """
    low = int(times.min()) if high_us is None else high_us
    instants = np.unique(np.append(np.maximum(times, low), low))
    ends = np.flatnonzero(np.diff(instants) > bound_us)
    tops = np.append(instants[ends], instants[-1])
    return np.searchsorted(tops, times), tops


def _by_arrival(times: Ints, levels: Ints, arrival_us: int, bound_us: int) -> int:
    """The highest level at which a fix came when it says that it was made."""
    agrees = np.abs(times - arrival_us) <= bound_us
    return int(levels[agrees].max(initial=0))


def _by_second_object(levels: Ints, objects: Ints) -> int:
    """The highest level at which two objects are."""
    pairs = np.unique(np.column_stack([levels, objects]), axis=0)[:, 0]
    return int(pairs[1:][pairs[1:] == pairs[:-1]].max(initial=0))


def _by_next_fixes(levels: Ints, objects: Ints) -> int:
    """The highest level from which on an object has `AGREEING` more fixes, with no one else below in between.

    The higher a level is, the more fixes are below it: so the highest one is found by halving.
    """
    low, high = 0, int(levels.max())
    while low < high:
        middle = (low + high + 1) // 2
        if _longest_run(levels >= middle, objects) > AGREEING:
            low = middle
        else:
            high = middle - 1
    return low


def _longest_run(is_above: Mask, objects: Ints) -> int:
    """How many fixes one object has at most among those above, between two that are not."""
    runs = np.cumsum(~is_above)[is_above]
    pairs = np.column_stack([runs, objects[is_above]])
    return int(np.unique(pairs, axis=0, return_counts=True)[1].max(initial=0))


def _steps(times: Ints, high_us: int | None) -> list[int]:
    """How far the time of a stream moves by some event times, the last steps."""
    later = times if high_us is None else np.append(times[times > high_us], high_us)
    return [int(step) for step in np.diff(np.unique(later)[-_STEPS - 1 :])]
