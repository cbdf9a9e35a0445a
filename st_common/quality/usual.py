"""What is usual for a day of a stream: good days of the same weekday, else of the same kind, before it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_stream_contract
from st_common.errors import ContractError
from st_common.operations.history import days_of
from st_common.quality.finding import AS_PROMISED, CAN_BE_CHECKED, data_label
from st_common.quality.shape import (
    Level,
    Shape,
    level_of,
    moved,
    ordered,
    shape_of,
)

WEEKS = 4
_FEWEST = 3  # days of a weekday that are believed without others: one of them may have been a holiday
_BACK = 8  # weeks: so old may a day be that says what is usual
_SATURDAY, _SUNDAY = 5, 6
_UNLIKE = 0.25  # of a day's fixes, at other hours than usual or not there: then it may be a holiday


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What is usual for a day.

    Attributes:
        days: those that say so.
        said: what the day is compared with, for people.
        name: the same in short: `a usual Saturday`.
        fixes: the median of their fixes.
        objects: the median of their objects.
        longest_gap_s: the median of their longest times without any fix.
        by_hour: the median of their fixes in each hour; float64[24].
        hours: whether at least half of them have fixes in an hour; bool[24].
        moving: the smallest share of an hour's fixes that moved on any of them; float64[24], 0 for hours without.
        known: the objects that any of them has.
        names: the objects that at least half of them have, m of them.
        gap_s: the median of an object's longest time between two fixes; float64[m].
        counts: the median of an object's fixes on days that have it; float64[m].
        is_mover: whether an object moved on each of the days that have it, two at least; bool[m].
    """

    days: tuple[date, ...]
    said: str
    name: str
    fixes: float
    objects: float
    longest_gap_s: float
    by_hour: np.ndarray
    hours: np.ndarray
    moving: np.ndarray
    known: pa.Array
    names: pa.Array
    gap_s: np.ndarray
    counts: np.ndarray
    is_mover: np.ndarray


def days_to_compare(
    days: Sequence[date], day: date, bad: Collection[date] = ()
) -> list[date]:
    """The days that say what is usual for one: good ones of eight weeks, of the same weekday if there are three.

        four good Tuesdays before it          the newest four
        three                                 these
        fewer                                 the newest four days from Monday to Friday; of Saturdays those there are
        no good day in eight weeks            the newest day of its kind: what lasts so long is usual
        nothing of its kind before it         none

    Args:
        days: the days that have data.
        day: the one that is compared.
        bad: days whose data broke a promise; a day that is compared with them would look like a good one.
    """
    before = sorted(each for each in days if each < day and _kind(each) == _kind(day))
    oldest = day - timedelta(weeks=_BACK)
    good = [each for each in before if each >= oldest and each not in bad]
    alike = [each for each in good if each.weekday() == day.weekday()]
    if len(alike) >= _FEWEST:
        return alike[-WEEKS:]
    return good[-WEEKS:] or before[-1:]


def _kind(day: date) -> int:
    """Days from Monday to Friday are of one kind, Saturdays and Sundays each of their own."""
    return 0 if is_working(day.weekday()) else day.weekday()


def is_working(weekday: int) -> bool:
    """Whether a weekday, 0 for Monday, is one from Monday to Friday."""
    return weekday < _SATURDAY


def usual_of(home: Home, stream: str, day: date, shape: Shape) -> Usual | None:
    """What is usual for a day of a stream, from the table `positions`.

    A day that is unlike its own weekday and as a Sunday, or a Saturday, is compared with these: a public holiday.

    Args:
        home: where the table lies.
        stream: the stream.
        day: the day (UTC).
        shape: of the day.

    Returns:
        None when no day of its kind before it has data.
    """
    path = home.table("positions", stream)
    stored, bad = days_of(path), bad_days(home, stream)
    compared = days_to_compare(stored, day, bad)
    if not compared:
        return None
    usual = _usual_on(path, compared, _said(compared, day, bad), _name(compared))
    if not shape.fixes or _unlike(shape, usual) < _UNLIKE:
        return usual
    rests = [
        as_rest
        for weekday in (_SATURDAY, _SUNDAY)
        if weekday != day.weekday()
        and (as_rest := _usual_rest(path, stored, day, weekday, bad))
    ]
    nearest = min(rests, key=partial(_unlike, shape), default=usual)
    return nearest if _unlike(shape, nearest) < _UNLIKE else usual


def _usual_rest(
    path: Path, stored: Sequence[date], day: date, weekday: int, bad: Collection[date]
) -> Usual | None:
    """What is usual for a Saturday or a Sunday, as before a day of another weekday; None without any."""
    rests = [each for each in stored if each.weekday() == weekday and each < day]
    following = day + timedelta(days=(weekday - day.weekday()) % 7)
    good = days_to_compare(rests, following, bad)
    if not good:
        return None
    said = f"{_several(good)}, for it is as one of these: a holiday?"
    return _usual_on(path, good, said, _name(good))


def _unlike(shape: Shape, usual: Usual) -> float:
    """How much of a day's fixes, or of the usual ones, has no counterpart in the same hour of the other."""
    apart = np.abs(shape.by_hour - usual.by_hour).sum()
    return float(apart / max(shape.fixes, usual.by_hour.sum(), 1))


def _usual_on(path: Path, days: Sequence[date], said: str, name: str) -> Usual:
    shapes = []
    for each in days:
        fixes = tables.read(
            path,
            columns=["object", "event_ts", "x", "y"],
            filters=[("event_date", "=", each)],
        )
        order = ordered(fixes)
        shapes.append(shape_of(each, order, moved(order, fixes)))
    return usual_among(shapes, days, said, name)


def usual_level(
    home: Home, stream: str, days: Sequence[date], column: str
) -> Level | None:
    """The medians of the levels of an attribute on some days.

    Args:
        home: where the table `positions` lies.
        stream: the stream.
        days: its days (UTC).
        column: the attribute.

    Returns:
        None where no day has values of it.
    """
    path = home.table("positions", stream)
    if column not in tables.dataset(path).schema.names:
        return None
    values = [
        tables.read(path, columns=[column], filters=[("event_date", "=", each)])
        for each in days
    ]
    levels = [found for each in values if (found := level_of(each[column]))]
    if not levels:
        return None
    return Level(
        mean=_median([each.mean for each in levels]),
        spread=_median([each.spread for each in levels]),
        low=min(each.low for each in levels),
    )


def bad_days(home: Home, stream: str) -> set[date]:
    """The days whose data broke a rule of severity error when they were judged last; from the table `quality`.

    Args:
        home: where the table lies.
        stream: the stream.
    """
    path = home.table("quality")
    if not tables.exists(path):
        return set()
    broken = [
        ("table", "=", data_label(stream)),
        ("severity", "=", "error"),
        ("passed", "=", False),
        ("rule", "not in", [CAN_BE_CHECKED, AS_PROMISED, *_of_few(home, stream)]),
    ]
    return set(tables.read(path, columns=["date"], filters=broken)["date"].to_pylist())


def _of_few(home: Home, stream: str) -> list[str]:
    """The rules on single objects.

    Were their days bad, an object that rests now and then would break them for good: on all days that remain it moves.
    """
    try:
        contract = load_stream_contract(stream, home.root)
    except ContractError:
        return []
    rules = contract.rules if contract is not None else ()
    return [rule.name for rule in rules if rule.measured.is_of_few]


def usual_among(
    shapes: Sequence[Shape], days: Sequence[date], said: str, name: str
) -> Usual:
    """What is usual among some days.

    Args:
        shapes: of the days, at least one.
        days: the days.
        said: what they are, for people.
        name: the same in short.
    """
    by_hour = np.array([shape.by_hour for shape in shapes])
    moves = np.array([shape.moves_by_hour for shape in shapes])
    return Usual(
        days=tuple(days),
        said=said,
        name=name,
        fixes=_median([shape.fixes for shape in shapes]),
        objects=_median([len(shape.names) for shape in shapes]),
        longest_gap_s=_median([shape.longest_gap_s for shape in shapes]),
        by_hour=np.median(by_hour, axis=0),
        hours=(by_hour > 0).mean(axis=0) >= 0.5,
        moving=(moves / np.maximum(by_hour, 1)).min(axis=0),
        **_usual_objects(shapes),
    )


def _usual_objects(shapes: Sequence[Shape]) -> dict[str, Any]:
    """What a `Usual` says of objects: those that any day has, and of those that at least half of the days have."""
    every = pa.table(
        {
            "name": pa.concat_arrays([shape.names for shape in shapes]),
            "gap_s": np.concatenate([shape.gap_s for shape in shapes]),
            "count": np.concatenate([shape.counts for shape in shapes]),
            "moves": np.concatenate([shape.moves for shape in shapes]),
        }
    )
    by_name = every.group_by("name").aggregate(
        [
            ("gap_s", "count"),
            ("gap_s", "approximate_median"),
            ("count", "approximate_median"),
            ("moves", "min"),
        ]
    )
    kept = by_name.filter(
        pa.compute.greater_equal(by_name["gap_s_count"], len(shapes) / 2)
    ).sort_by("name")
    return {
        "known": by_name["name"].combine_chunks(),
        "names": kept["name"].combine_chunks(),
        "gap_s": kept["gap_s_approximate_median"].to_numpy(),
        "counts": kept["count_approximate_median"].to_numpy(),
        "is_mover": (kept["moves_min"].to_numpy() > 0)
        & (kept["gap_s_count"].to_numpy() > 1),
    }


def _said(compared: Sequence[date], day: date, bad: Collection[date]) -> str:
    said = _several(compared)
    if len(compared) >= _FEWEST and compared[0].weekday() == day.weekday():
        return said
    why = f"not {_FEWEST} {day:%A}s of the {_BACK} weeks before have good data"
    if compared[0] in bad:
        why = f"no day of the {_BACK} weeks before has good data, nor has this one"
    return f"{said}, for {why}"


def _several(days: Sequence[date]) -> str:
    if len(days) == 1:
        return f"{days[0]}"
    if len({each.weekday() for each in days}) == 1:
        return f"the median of {len(days)} {days[0]:%A}s"
    return f"the median of {len(days)} days from {days[0]} to {days[-1]}"


def _name(days: Sequence[date]) -> str:
    if len(days) == 1:
        return f"{days[0]:%A} {days[0]}"
    of_one = len({each.weekday() for each in days}) == 1
    return f"a usual {days[0]:%A}" if of_one else "a usual working day"


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
