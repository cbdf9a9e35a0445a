"""What streams that are fed by others wait for: the times to which these are asked to come (docs/adr/0106).

    streams/police/awaited/both.json    {"us": 1700000000000000}    `both` waits until `police` has come so far

An engine whose feed is live and quiet writes a clock row when something waits for a time; this waits outside of it.
"""

from pathlib import Path

from st_common.operations.records import read_record, write_record

_FOLDER = "awaited"


def write_awaited(folder: Path, waiting: str, event_us: int) -> None:
    """Asks a stream to come to an event time, in place of what was asked before.

    Args:
        folder: that of the stream that is asked.
        waiting: the name of the stream that waits.
        event_us: the time, us UTC.
    """
    path = folder / _FOLDER / f"{waiting}.json"
    if (read_record(path) or {}).get("us") != event_us:
        write_record(path, {"us": event_us})


def awaited_us(folder: Path, clock_us: int) -> int | None:
    """The first event time that other streams wait for and that a clock has not come to, us UTC; None for none.

    Args:
        folder: that of the stream that is asked.
        clock_us: its clock, us UTC.
    """
    records = (read_record(path) for path in folder.glob(f"{_FOLDER}/*.json"))
    times = [int(record["us"]) for record in records if record is not None]
    return min((us for us in times if us > clock_us), default=None)
