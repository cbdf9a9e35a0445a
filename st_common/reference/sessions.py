"""Sessions: what each object did since it paused (SPEC W3).

With a pause of 10 s and ticks of 1 s:

        fix          a    b    c              d
        time, s      0    7    15             31
        at 20 s      [----------              the session of a, b and c is open
        at 26 s                  ]            it is over: no fix came for more than 10 s

A fix that is known only after the tick at which a session was over begins a new one, whenever it was.
"""

import numpy as np

from st_common.reference.metric import Bools, Ints
from st_common.reference.travelled import Ways, owners


def in_session(
    pause_s: float, ways: Ways, rows: Bools, *, now: int, tick_us: int
) -> Bools:
    """Which fixes are of a session that is open at a tick. bool[n].

    Args:
        pause_s: a session is over when no fix came for longer than this.
        ways: fixes that are known by then, n of them.
        rows: bool[n], those that count.
        now: the event time of the tick in microseconds.
        tick_us: the time between two ticks.
    """
    pause_us, place = round(1e6 * pause_s), np.flatnonzero(rows)
    is_open = np.zeros(len(rows), np.bool_)
    if not len(place):
        return is_open
    event_us, tick = ways.event_us[place], ways.tick[place]
    over = np.maximum(((event_us + pause_us) // tick_us + 1) * tick_us, tick)
    is_same = np.diff(owners(ways.ids)[place]) == 0
    goes_on = is_same & (np.diff(event_us) <= pause_us) & (tick[1:] <= over[:-1])
    session = np.append(0, np.cumsum(~goes_on))
    newest = _newest(session, event_us)
    is_open[place] = now - newest[session] <= pause_us
    return is_open


def _newest(session: Ints, event_us: Ints) -> Ints:
    """The time of the newest fix of each session. i64[sessions]."""
    newest = np.full(session[-1] + 1, np.iinfo(np.int64).min)
    np.maximum.at(newest, session, event_us)
    return newest
