"""Control rows that capture itself writes into a log."""

import json

from st_common.capture.log import Log, Segment


def write_clock(log: Log, ts: int, *, arrival_us: int) -> Segment:
    """Says that the event time `ts` (us UTC) has come, though no fix said so: for a live feed that is idle."""
    return log.append(json.dumps({"op": "clock", "ts": ts}).encode() + b"\n", arrival_us=arrival_us, control=True)


def write_end(log: Log, *, arrival_us: int) -> Segment:
    """Says that a finite stream has ended: what is held for the sake of lateness is released (DESIGN section 3)."""
    return log.append(b'{"op": "end"}\n', arrival_us=arrival_us, control=True)
