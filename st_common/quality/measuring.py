"""Each measure of a stream as a whole, on one day: arrays in, one number out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.records import Reason
from st_common.quality.day_data import DayData
from st_common.quality.shape import US_PER_DAY, day_start_us
from st_common.quality.usual import Usual

EXAMPLES = 3
_FILTERED_OUT = Reason.FILTERED_OUT.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a measure is on a day.

    Attributes:
        value: the number; None when there is nothing to judge, or it could not be measured.
        why: without a value, why there is none.
        has_failed: it should have a value and could not be measured.
        against: what it was compared with, for people; "" for nothing.
        examples: what lies behind the number, a few, for people.
    """

    value: float | None = None
    why: str = ""
    has_failed: bool = False
    against: str = ""
    examples: tuple[Any, ...] = ()


Arguments = Mapping[str, Any]
Measure = Callable[[DayData, Arguments], Observed]
_NO_FIXES = Observed(why="the day has no fixes")
_NO_USUAL = Observed(why="no day before it has data to compare with")


def _against_usual(compare: Callable[[DayData, Usual, Arguments], Observed]) -> Measure:
    """A measure that compares with usual days: where there are none it has nothing to say."""

    @wraps(compare)
    def measure(data: DayData, arguments: Arguments) -> Observed:
        if data.usual is None:
            return _NO_USUAL
        return compare(data, data.usual, arguments)

    return measure


def _fixes(data: DayData, _: Arguments) -> Observed:
    return Observed(value=float(data.shape.fixes))


def _objects(data: DayData, _: Arguments) -> Observed:
    return Observed(value=float(len(data.shape.names)))


@_against_usual
def _fixes_to_usual(data: DayData, usual: Usual, _: Arguments) -> Observed:
    return Observed(
        value=data.shape.fixes / usual.fixes,
        against=usual.said,
        examples=(f"{data.shape.fixes:,} of {usual.fixes:,.0f} fixes",),
    )


@_against_usual
def _objects_to_usual(data: DayData, usual: Usual, _: Arguments) -> Observed:
    objects = len(data.shape.names)
    return Observed(
        value=objects / usual.objects,
        against=usual.said,
        examples=(f"{objects:,} of {usual.objects:,.0f} objects",),
    )


@_against_usual
def _missing_objects_share(data: DayData, usual: Usual, _: Arguments) -> Observed:
    seen = pc.is_in(usual.names, value_set=data.shape.names)
    missing = usual.names.filter(pc.invert(seen))
    return _share(len(missing), len(usual.names), _some(missing), usual.said)


@_against_usual
def _empty_hours(data: DayData, usual: Usual, _: Arguments) -> Observed:
    hours = np.flatnonzero(usual.hours & (data.shape.by_hour == 0))
    return Observed(
        value=float(len(hours)),
        against=usual.said,
        examples=tuple(
            f"{hour:02}:00 to {hour + 1:02}:00" for hour in hours[:EXAMPLES]
        ),
    )


def _longest_gap_s(data: DayData, _: Arguments) -> Observed:
    return Observed(value=data.shape.longest_gap_s)


@_against_usual
def _longest_gap_to_usual(data: DayData, usual: Usual, _: Arguments) -> Observed:
    return Observed(
        value=data.shape.longest_gap_s / usual.longest_gap_s,
        against=usual.said,
    )


@_against_usual
def _objects_with_gap_share(
    data: DayData, usual: Usual, arguments: Arguments
) -> Observed:
    place = pc.index_in(data.shape.names, value_set=usual.names)
    is_usual = place.is_valid().to_numpy(zero_copy_only=False)
    gap_s = data.shape.gap_s[is_usual]
    usual_s = usual.gap_s[place.drop_null().to_numpy()]
    allowed_s = np.maximum(usual_s * arguments["factor"], arguments["at_least_s"])
    silent = np.flatnonzero(is_usual)[gap_s > allowed_s]
    names = data.shape.names.take(pa.array(silent))
    return _share(len(silent), int(is_usual.sum()), _some(names), usual.said)


def _freshness_s(data: DayData, _: Arguments) -> Observed:
    start_us = day_start_us(data.day)
    last_us = start_us if data.shape.last_us is None else data.shape.last_us
    last = datetime.fromtimestamp(last_us / 1e6, UTC)
    return Observed(
        value=(start_us + US_PER_DAY - last_us) / 1e6,
        examples=(f"the last fix is of {last:%H:%M:%S}",) * (data.shape.fixes > 0),
    )


def _rejects_share(data: DayData, _: Arguments) -> Observed:
    # What the stream's settings leave out on purpose could be read.
    counts = {k: n for k, n in data.tally.rejects.items() if k != _FILTERED_OUT}
    rejects = sum(counts.values())
    if data.arrived is None:
        return Observed(
            why="the log is missing: nobody knows what arrived", has_failed=True
        )
    told = tuple(f"{count:,} {reason}" for reason, count in counts.items())
    if not rejects + data.arrived:
        return Observed(why="no record arrived on the day")
    return _share(rejects, rejects + data.arrived, told)


def _late_share(data: DayData, _: Arguments) -> Observed:
    return _share(data.tally.late, data.shape.fixes)


def _double_share(data: DayData, _: Arguments) -> Observed:
    return _share(data.tally.double, data.shape.fixes)


def _jumps_share(data: DayData, arguments: Arguments) -> Observed:
    jumps = _jumps(data, arguments["max_speed_mps"])
    places = np.flatnonzero(jumps)
    names = data.order.names.take(pa.array(np.unique(data.order.code[places])))
    return _share(len(places), data.shape.fixes, _some(names))


def _jumping_objects_share(data: DayData, arguments: Arguments) -> Observed:
    jumps = _jumps(data, arguments["max_speed_mps"])
    n = len(data.order.names)
    counts = np.bincount(data.order.code, minlength=n)
    jumped = np.bincount(data.order.code[jumps], minlength=n)
    jumping = np.flatnonzero(jumped > arguments["at_most_share"] * counts)
    return _share(len(jumping), n, _some(data.order.names.take(pa.array(jumping))))


def _jumps(data: DayData, max_speed_mps: float) -> np.ndarray:
    """Whether a fix is too far from the one before of its object; bool[n], in the order of `data.order`."""
    jumps: np.ndarray = data.implied_speeds_mps > max_speed_mps
    return jumps


def _clock_off_objects_share(data: DayData, arguments: Arguments) -> Observed:
    segment = data.fixes["segment"].to_numpy()[data.order.rows]
    if not len(data.sampled):
        return (
            _NO_FIXES
            if not len(segment)
            else Observed(
                why="the log is missing: nobody knows when fixes arrived",
                has_failed=True,
            )
        )
    place = np.minimum(np.searchsorted(data.sampled, segment), len(data.sampled) - 1)
    is_sampled = data.sampled[place] == segment
    lag_us = data.arrival_us[place[is_sampled]] - data.order.ts_us[is_sampled]
    lags = pa.table({"code": data.order.code[is_sampled], "lag_us": lag_us})
    medians = lags.group_by("code").aggregate([("lag_us", "approximate_median")])
    by_object = medians.sort_by("code")
    lag_s = by_object["lag_us_approximate_median"].to_numpy() / 1e6
    code = by_object["code"].to_numpy()
    off = np.abs(lag_s) > arguments["at_most_s"]
    names = data.order.names.take(pa.array(code[off])).to_pylist()
    told = zip(names[:EXAMPLES], lag_s[off][:EXAMPLES], strict=False)
    return _share(
        int(off.sum()), len(code), tuple(f"{name}: {lag:.0f} s" for name, lag in told)
    )


def _share(
    part: int, whole: int, examples: tuple[Any, ...] = (), against: str = ""
) -> Observed:
    if not whole:
        return _NO_FIXES
    return Observed(value=part / whole, examples=examples[:EXAMPLES], against=against)


def _some(names: pa.Array) -> tuple[Any, ...]:
    return tuple(names.slice(0, EXAMPLES).to_pylist())


MEASURED: dict[str, Measure] = {
    "fixes": _fixes,
    "fixes_to_usual": _fixes_to_usual,
    "objects": _objects,
    "objects_to_usual": _objects_to_usual,
    "missing_objects_share": _missing_objects_share,
    "empty_hours": _empty_hours,
    "longest_gap_s": _longest_gap_s,
    "longest_gap_to_usual": _longest_gap_to_usual,
    "objects_with_gap_share": _objects_with_gap_share,
    "freshness_s": _freshness_s,
    "rejects_share": _rejects_share,
    "late_share": _late_share,
    "double_share": _double_share,
    "jumps_share": _jumps_share,
    "jumping_objects_share": _jumping_objects_share,
    "clock_off_objects_share": _clock_off_objects_share,
}
"""How each measure of `contracts.measures.MEASURES` is taken."""
