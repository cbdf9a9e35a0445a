"""Control rows about the log itself: its clock, its end, and places at which engines give out their state."""

import json

from st_common.capture.log import Log, Segment


def write_clock(log: Log, ts: int, *, arrival_us: int) -> Segment:
    """Says that the event time `ts` (us UTC) has come, though no fix said so: for a live feed that is idle."""
    return log.append(json.dumps({"op": "clock", "ts": ts}).encode() + b"\n", arrival_us=arrival_us, clock=True)


def write_end(log: Log, *, arrival_us: int) -> Segment:
    """Says that a finite stream has ended: what is held for the sake of lateness is released (DESIGN section 3)."""
    return log.append(b'{"op": "end"}\n', arrival_us=arrival_us, control=True)


def write_export(log: Log, *, arrival_us: int) -> Segment:
    """Asks an engine with shards for a copy of their states right after this row; it changes nothing else."""
    return log.append(b'{"op": "export"}\n', arrival_us=arrival_us, control=True)
