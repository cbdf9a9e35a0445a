"""Control rows about the log itself: its clock, its end, and places at which engines give out their state."""

import json

from st_common.capture.log import Log, Segment


def write_clock(
    log: Log, ts: int, *, arrival_us: int, delay_us: int | None = None
) -> Segment:
    """Says that the event time `ts` (us UTC) has come, though no fix said so: for a feed that is quiet.

    `delay_us` keeps by which delay of the feed an engine that owns the stream found the time; None when another says
    the time.
    """
    row = {"op": "clock", "ts": ts} | (
        {} if delay_us is None else {"delay_us": delay_us}
    )
    return log.append(
        json.dumps(row).encode() + b"\n", arrival_us=arrival_us, clock=True
    )


def write_end(log: Log, *, arrival_us: int) -> Segment:
    """Says that a finite stream has ended: what is held for the sake of lateness is released (DESIGN section 3)."""
    return log.append(b'{"op": "end"}\n', arrival_us=arrival_us, control=True)


def write_export(log: Log, *, arrival_us: int) -> Segment:
    """Asks an engine with shards for a copy of their states right after this row; it changes nothing else."""
    return log.append(b'{"op": "export"}\n', arrival_us=arrival_us, control=True)


def may_say(payload: bytes, word: str) -> bool:
    """Whether `word` may be a name or a text in the JSON of a control segment; if not, it is certain that it is none.

    So who looks for rows of one kind need not decode a million others. JSON has a word as it is, or with backslashes.
    """
    return f'"{word}"'.encode() in payload or b"\\" in payload
