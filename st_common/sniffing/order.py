"""What the order of event times means for those who bring them: what a replay mends, and what a feed needs."""

import math

import numpy as np
import pyarrow as pa

from st_common.capture.event_time import EventTime
from st_common.capture.files import wall_clock
from st_common.capture.leaps import judged, most_us_of
from st_common.settings import StreamSettings


def notes_of_order(
    fixes: pa.Table, stream: StreamSettings, *, is_file: bool
) -> list[str]:
    """That event times go back, and that some leap ahead of all others.

    Args:
        fixes: `object` and `event_ts`, in the order in which they stand.
        stream: the settings; one without times has no order.
        is_file: they stand in a file, which a replay sorts; else a feed brings them.
    """
    if stream.columns.event_ts is None or not len(fixes):
        return []
    times = fixes["event_ts"].to_numpy()
    is_ahead, leaps = _leaping(fixes, stream)
    return [*_going_back(times[~is_ahead], stream, is_file=is_file), *leaps]


def _going_back(
    times: np.ndarray, stream: StreamSettings, *, is_file: bool
) -> list[str]:
    behind_us = np.maximum.accumulate(times) - times
    late = int((behind_us > round(stream.lateness_s * 1e6)).sum())
    if not late:
        return []
    needed_s = math.ceil(int(behind_us.max()) / 1e6)
    what = f"{late:,} of {len(times):,} fixes stand behind newer ones"
    if is_file:
        return [
            f"{what}: fairway replay sorts the file; a feed of them needs lateness_s = {needed_s}"
        ]
    return [f"{what}, and may be late: this feed needs lateness_s = {needed_s}"]


def _leaping(fixes: pa.Table, stream: StreamSettings) -> tuple[np.ndarray, list[str]]:
    """Which fixes a replay would not believe, and what is said of them."""
    is_ahead = np.zeros(len(fixes), bool)
    most_us = most_us_of(stream)
    if not most_us:
        return is_ahead, []
    order = np.argsort(fixes["event_ts"].to_numpy(), kind="stable")
    by_time = fixes.select(["object", "event_ts"]).take(pa.array(order))
    found, _ = judged(by_time, EventTime(), arrival_us=wall_clock(), most_us=most_us)
    if not found.any():
        return is_ahead, []
    is_ahead[order[found]] = True
    (first,) = by_time.filter(pa.array(found)).slice(0, 1).to_pylist()
    at = np.datetime64(first["event_ts"], "us").astype("datetime64[s]")
    return is_ahead, [
        f"{int(found.sum()):,} leap more than max_jump_s = {stream.max_jump_s:g} ahead of all others, "
        f"as {first['object']!r} does to {at}Z: a replay rejects them, ahead_of_stream"
    ]
