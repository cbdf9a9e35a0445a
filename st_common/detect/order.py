"""What the order of event times means for those who bring them: what a replay mends, and what a feed needs."""

import math

import numpy as np
import pyarrow as pa

from st_common.config.stream import StreamSettings
from st_common.log.event_time import EventTime
from st_common.log.leaps import judged, most_us_of
from st_common.replay.files import wall_clock
from st_common.runs import highest_before


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
    is_ahead, leaps = _leaping(fixes, stream)
    believed = fixes.filter(pa.array(~is_ahead))
    going_back = _in_file if is_file else _late
    return [*going_back(believed, stream), *leaps]


def _in_file(fixes: pa.Table, stream: StreamSettings) -> list[str]:
    """That a replay sorts the file, and how late its last record would be as a feed."""
    times = fixes["event_ts"].to_numpy()
    behind_us = np.maximum.accumulate(times) - times
    behind = int((behind_us > round(stream.lateness_s * 1e6)).sum())
    if not behind:
        return []
    return [
        f"{behind:,} of {len(times):,} fixes stand behind newer ones: fairway replay sorts the file; "
        f"a feed of them needs lateness_s = {_seconds(behind_us)}"
    ]


def _late(fixes: pa.Table, stream: StreamSettings) -> list[str]:
    """How many fixes of a feed are late: behind the watermark, or, without one, behind their own object's last fix."""
    times = fixes["event_ts"].to_numpy()
    behind_us = np.maximum.accumulate(times) - times
    if stream.lateness_s:
        is_late = behind_us > round(stream.lateness_s * 1e6)
    else:
        is_late = _behind_own(fixes)
        if stream.silence_s is not None:
            is_late |= behind_us > round(stream.silence_s * 1e6)
    if not is_late.any():
        return []
    return [
        f"{int(is_late.sum()):,} of {len(times):,} fixes came too late: "
        f"this feed needs lateness_s = {_seconds(behind_us[is_late])}"
    ]


def _behind_own(fixes: pa.Table) -> np.ndarray:
    """Which fixes are older than the last one of their object."""
    times = fixes["event_ts"].to_numpy()
    names = fixes["object"].combine_chunks().cast(pa.string()).dictionary_encode()
    codes = names.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    never = np.full(len(order), np.iinfo(np.int64).min)
    is_late = np.zeros(len(order), bool)
    is_late[order] = times[order] < highest_before(codes[order], times[order], never)
    return is_late


def _seconds(us: np.ndarray) -> int:
    return math.ceil(int(us.max()) / 1e6)


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
