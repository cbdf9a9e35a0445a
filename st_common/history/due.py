"""Where in the log a snapshot is due: which fix brings the clock past a multiple of the time between snapshots."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from st_common.config.home import Home
from st_common.history.stored import fixes, parts
from st_common.operators.state.fixes import NEVER

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def multiple_us(clock_us: int, every_us: int) -> int:
    """The first multiple that a clock is not past: the time of a snapshot of what that clock has seen.

        every 3600: clock 3600 -> 3600, clock 3601 -> 7200, clock 0 -> 0

    Args:
        clock_us: a time, us UTC.
        every_us: the time between two multiples, which are counted from 1970.
    """
    return -(-clock_us // every_us) * every_us


def due(
    home: Home,
    stream: str,
    *,
    start: int,
    end: int,
    highest_us: int | None,
    lateness_us: int,
    every_us: int,
) -> Iterator[int]:
    """The places in the log at which a snapshot is due, ascending.

    Such a place is that of the first fix whose event time, less the lateness, is past a multiple of `every_us`; one
    that is past several is due once. So it depends on the fixes in the log alone, not on when or how they were read.

        event times (minutes)  50  58  62  61  130  131      every 60, no lateness
        due at                          *        *           62 is past 60; 130 is past 120

    Args:
        home: where the table of positions lies.
        stream: whose.
        start: the position to begin at, behind the last snapshot; 0 without one.
        end: the position to stop before; all fixes before it must be archived.
        highest_us: the largest event time before `start`; None when there is no fix before it.
        lateness_us: the stream's.
        every_us: the time between two snapshots.

    Yields:
        Positions from `start` up to `end`, not included.
    """
    highest = NEVER if highest_us is None else highest_us
    for low, high in parts(home.table("positions", stream), start, end):
        rows = fixes(
            home,
            stream,
            low,
            high,
            ("event_ts",),
            *_past(highest, lateness_us, every_us),
            accepted=False,
        )
        if not len(rows):
            continue
        rows = rows.sort_by("position")
        highs = np.maximum.accumulate(
            np.r_[highest, rows["event_ts"].cast(pa.int64()).to_numpy()]
        )
        known = (
            highs[:-1] != NEVER
        )  # the very first fix sets the clock and passes nothing
        number = (
            # Rounded up, so that it grows when the clock goes past a multiple, and not when it reaches one.
            -(-(highs[known.argmax() :] - lateness_us) // every_us)
            if known.any()
            else highs[:0]
        )
        yield from rows["position"].to_numpy()[known][np.diff(number) > 0].tolist()
        highest = int(highs[-1])


def _past(
    highest_us: int, lateness_us: int, every_us: int
) -> list[tuple[str, str, datetime]]:
    """Filters for the fixes that are past the next multiple: those before it are not read."""
    if highest_us == NEVER:
        return []
    multiple = multiple_us(highest_us - lateness_us, every_us)
    return [("event_ts", ">", _EPOCH + timedelta(microseconds=multiple + lateness_us))]
