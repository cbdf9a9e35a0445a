"""Each measure of a stream as a whole, on one day: arrays in, one number out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from st_common.runs import is_first, is_last

EXAMPLES = 3
_MOVING = 0.1  # of an hour's fixes: where fewer move it is no hour of movement
_EXPECTED_MOVES = 10.0  # of fewer it says little that none came
_STILL = 0.1  # of the moves expected
_NEARLY = 1e-6  # of the last decimal: what is left of a decimal number as a double
_ODD = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio, which spreads bits well
_FILTERED_OUT = Reason.FILTERED_OUT.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a measure is on a day.

    Attributes:
        value: the number; None when there is nothing to judge, or it could not be measured.
        why: without a value, why there is none.
        has_failed: it should have a value and could not be measured.
        against: what it was compared with, for people; "" for nothing.
        usual: the same in short.
        examples: what lies behind the number, a few, for people.
    """

    value: float | None = None
    why: str = ""
    has_failed: bool = False
    against: str = ""
    usual: str = ""
    examples: tuple[Any, ...] = ()


Arguments = Mapping[str, Any]
Measure = Callable[[DayData, Arguments], Observed]
_NO_FIXES = Observed(why="the day has no fixes")
NO_USUAL = Observed(why="no day of its kind before it has data to compare with")


def _against_usual(compare: Callable[[DayData, Usual, Arguments], Observed]) -> Measure:
    """A measure that compares with usual days: where there are none it has nothing to say."""

    @wraps(compare)
    def measure(data: DayData, arguments: Arguments) -> Observed:
        if data.usual is None:
            return NO_USUAL
        compared = compare(data, data.usual, arguments)
        return replace(compared, against=data.usual.said, usual=data.usual.name)

    return measure


def _fixes(data: DayData, _: Arguments) -> Observed:
    return Observed(value=float(data.shape.fixes))


def _objects(data: DayData, _: Arguments) -> Observed:
    return Observed(value=float(len(data.shape.names)))


@_against_usual
def _fixes_to_usual(data: DayData, usual: Usual, _: Arguments) -> Observed:
    return Observed(
        value=data.shape.fixes / usual.fixes,
        examples=(f"{data.shape.fixes:,} of {usual.fixes:,.0f} fixes",),
    )


@_against_usual
def _objects_to_usual(data: DayData, usual: Usual, _: Arguments) -> Observed:
    objects = len(data.shape.names)
    return Observed(
        value=objects / usual.objects,
        examples=(f"{objects:,} of {usual.objects:,.0f} objects",),
    )


@_against_usual
def _missing_objects_share(data: DayData, usual: Usual, _: Arguments) -> Observed:
    seen = pc.is_in(usual.names, value_set=data.shape.names)
    missing = usual.names.filter(pc.invert(seen))
    return _share(len(missing), len(usual.names), _some(missing))


@_against_usual
def _empty_hours(data: DayData, usual: Usual, _: Arguments) -> Observed:
    hours = np.flatnonzero(usual.hours & (data.shape.by_hour == 0))
    return Observed(
        value=float(len(hours)),
        examples=_clock_hours(hours),
    )


@_against_usual
def _still_hours(data: DayData, usual: Usual, _: Arguments) -> Observed:
    expected = usual.moving * data.shape.by_hour
    is_told = (usual.moving >= _MOVING) & (expected >= _EXPECTED_MOVES)
    still = np.flatnonzero(is_told & (data.shape.moves_by_hour < _STILL * expected))
    return Observed(value=float(len(still)), examples=_clock_hours(still))


def _clock_hours(hours: np.ndarray) -> tuple[str, ...]:
    return tuple(f"{hour:02}:00 to {hour + 1:02}:00" for hour in hours[:EXAMPLES])


@_against_usual
def _frozen_objects_share(
    data: DayData, usual: Usual, arguments: Arguments
) -> Observed:
    place = pc.index_in(data.shape.names, value_set=usual.names)
    is_usual = place.is_valid().to_numpy(zero_copy_only=False)
    place = place.drop_null().to_numpy()
    movers = usual.is_mover[place]
    # Who reports less than usual may be at rest: it is no fault, and other rules see it.
    fewest = np.maximum(usual.counts[place] / 2, arguments["at_least_fixes"])
    is_frozen = (data.shape.moves[is_usual] == 0) & (
        data.shape.counts[is_usual] >= fewest
    )
    frozen = np.flatnonzero(is_usual)[movers & is_frozen]
    names = data.shape.names.take(pa.array(frozen))
    if not movers.any():
        return Observed(why="no object of the day is known to move")
    return _share(len(frozen), int(movers.sum()), _some(names))


@_against_usual
def _new_objects_share(data: DayData, usual: Usual, _: Arguments) -> Observed:
    is_known = pc.is_in(data.shape.names, value_set=usual.known)
    new = data.shape.names.filter(pc.invert(is_known))
    return _share(len(new), len(data.shape.names), _some(new))


def _twin_objects_share(data: DayData, arguments: Arguments) -> Observed:
    n = len(data.shape.names)
    places = np.flatnonzero(data.is_moved)
    code, ts_us = data.order.code[places], data.order.ts_us[places]
    x, y = (data.fixes[name].to_numpy()[data.order.rows[places]] for name in ("x", "y"))
    once = is_first(code, ts_us)  # a fix that is there twice is no twin of itself
    places, code = places[once], code[once]
    key = _mixed(ts_us[once], x[once].view(np.int64), y[once].view(np.int64))
    order = np.argsort(key)
    is_alone = is_first(key[order]) & is_last(key[order])
    twin = np.zeros(len(key), bool)
    twin[order] = ~is_alone
    moves = np.bincount(code, minlength=n)
    alike = np.bincount(code[twin], minlength=n)
    is_moving = moves >= arguments["at_least_fixes"]
    is_twin = is_moving & (alike >= arguments["at_least_share"] * moves)
    if not is_moving.any():
        return Observed(why="no object of the day moved so often")
    twins = data.shape.names.take(pa.array(np.flatnonzero(is_twin)))
    return _share(int(is_twin.sum()), int(is_moving.sum()), _some(twins))


def _mixed(*columns: np.ndarray) -> np.ndarray:
    """One number for each row, the same for equal rows alone, but for once in 2^64; uint64[n]."""
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        key = (key ^ column.view(np.uint64)) * _ODD
        key ^= key >> np.uint64(29)
    return key


def _longest_gap_s(data: DayData, _: Arguments) -> Observed:
    return Observed(value=data.shape.longest_gap_s)


@_against_usual
def _longest_gap_to_usual(data: DayData, usual: Usual, _: Arguments) -> Observed:
    return Observed(
        value=data.shape.longest_gap_s / usual.longest_gap_s,
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
    return _share(len(silent), int(is_usual.sum()), _some(names))


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


def _rounded_share(data: DayData, arguments: Arguments) -> Observed:
    places = [data.fixes[name].to_numpy() for name in ("x", "y")]
    placed = [place[np.isfinite(place)] for place in places]
    if len({len(place) for place in placed}) > 1:
        both = np.isfinite(places[0]) & np.isfinite(places[1])
        placed = [place[both] for place in places]
    is_rounded = have_at_most(placed, int(arguments["decimals"]))
    some = np.flatnonzero(is_rounded)[:EXAMPLES]
    examples = tuple(f"{placed[0][at]:g}, {placed[1][at]:g}" for at in some)
    return _share(int(is_rounded.sum()), len(is_rounded), examples)


def have_at_most(places: Sequence[np.ndarray], decimals: int) -> np.ndarray:
    """Whether both coordinates of each place can be written with no more than so many decimals; bool[n].

        8.54, 47.37      2 and 3 decimals: yes
        8.54, 47.3712    3 decimals: no

    Args:
        places: x and y, finite, float64[n] each.
        decimals: how many.
    """
    are_short = np.ones(len(places[0]), bool)
    for place in places:
        scaled = place * 10.0**decimals
        are_short &= np.abs(scaled - np.rint(scaled)) < _NEARLY
    return are_short


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


def _share(part: int, whole: int, examples: tuple[Any, ...] = ()) -> Observed:
    if not whole:
        return _NO_FIXES
    return Observed(value=part / whole, examples=examples[:EXAMPLES])


def _some(names: pa.Array) -> tuple[Any, ...]:
    return tuple(names.slice(0, EXAMPLES).to_pylist())


MEASURED: dict[str, Measure] = {
    "fixes": _fixes,
    "fixes_to_usual": _fixes_to_usual,
    "objects": _objects,
    "objects_to_usual": _objects_to_usual,
    "missing_objects_share": _missing_objects_share,
    "new_objects_share": _new_objects_share,
    "twin_objects_share": _twin_objects_share,
    "empty_hours": _empty_hours,
    "still_hours": _still_hours,
    "frozen_objects_share": _frozen_objects_share,
    "longest_gap_s": _longest_gap_s,
    "longest_gap_to_usual": _longest_gap_to_usual,
    "objects_with_gap_share": _objects_with_gap_share,
    "freshness_s": _freshness_s,
    "rejects_share": _rejects_share,
    "late_share": _late_share,
    "double_share": _double_share,
    "jumps_share": _jumps_share,
    "jumping_objects_share": _jumping_objects_share,
    "rounded_share": _rounded_share,
    "clock_off_objects_share": _clock_off_objects_share,
}
"""How each measure of `contracts.measures.MEASURES` is taken."""
