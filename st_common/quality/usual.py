"""What is usual for a day of a stream: four good days of the same weekday, else the newest good day before."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.operations.history import days_of
from st_common.quality.finding import AS_PROMISED, CAN_BE_CHECKED, data_label
from st_common.quality.shape import Shape, ordered, shape_of

WEEKS = 4
_BACK = 8  # weeks: so old may a day be that says what is usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What is usual for a day.

    Attributes:
        said: what the day is compared with, for people.
        fixes: the median of their fixes.
        objects: the median of their objects.
        longest_gap_s: the median of their longest times without any fix.
        hours: whether at least half of them have fixes in an hour; bool[24].
        names: the objects that at least half of them have, m of them.
        gap_s: the median of an object's longest time between two fixes; float64[m].
    """

    said: str
    fixes: float
    objects: float
    longest_gap_s: float
    hours: np.ndarray
    names: pa.Array
    gap_s: np.ndarray


def days_to_compare(
    days: Sequence[date], day: date, bad: Collection[date] = ()
) -> list[date]:
    """The days that say what is usual for one: good ones of eight weeks, of the same weekday if there are four.

        four good Saturdays before it          the newest four
        three                                  the newest good day before it, yesterday as a rule
        no good day in eight weeks             the newest day before it: what lasts so long is usual
        nothing before it                      none

    Args:
        days: the days that have data.
        day: the one that is compared.
        bad: days whose data broke a promise; a day that is compared with them would look like a good one.
    """
    before = sorted(each for each in days if each < day)
    oldest = day - timedelta(weeks=_BACK)
    good = [each for each in before if each >= oldest and each not in bad]
    alike = [each for each in good if each.weekday() == day.weekday()]
    if len(alike) >= WEEKS:
        return alike[-WEEKS:]
    return (good or before)[-1:]


def usual_of(home: Home, stream: str, day: date) -> Usual | None:
    """What is usual for a day of a stream, from the table `positions`; None when no day before it has data.

    Args:
        home: where the table lies.
        stream: the stream.
        day: the day (UTC).
    """
    path = home.table("positions", stream)
    bad = bad_days(home, stream)
    compared = days_to_compare(days_of(path), day, bad)
    if not compared:
        return None
    shapes = []
    for each in compared:
        fixes = tables.read(
            path,
            columns=["object", "event_ts"],
            filters=[("event_date", "=", each)],
        )
        shapes.append(shape_of(each, ordered(fixes)))
    return usual_among(shapes, _said(compared, day, bad))


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
        ("rule", "not in", [CAN_BE_CHECKED, AS_PROMISED]),
    ]
    return set(tables.read(path, columns=["date"], filters=broken)["date"].to_pylist())


def usual_among(shapes: Sequence[Shape], said: str) -> Usual:
    """What is usual among some days.

    Args:
        shapes: of the days, at least one.
        said: what they are, for people.
    """
    by_hour = np.array([shape.by_hour for shape in shapes])
    names, gap_s = _usual_objects(shapes)
    return Usual(
        said=said,
        fixes=_median([shape.fixes for shape in shapes]),
        objects=_median([len(shape.names) for shape in shapes]),
        longest_gap_s=_median([shape.longest_gap_s for shape in shapes]),
        hours=(by_hour > 0).mean(axis=0) >= 0.5,
        names=names,
        gap_s=gap_s,
    )


def _usual_objects(shapes: Sequence[Shape]) -> tuple[pa.Array, np.ndarray]:
    """The objects that at least half of the days have, and the median of their longest gaps."""
    every = pa.table(
        {
            "name": pa.concat_arrays([shape.names for shape in shapes]),
            "gap_s": np.concatenate([shape.gap_s for shape in shapes]),
        }
    )
    by_name = every.group_by("name").aggregate(
        [("gap_s", "count"), ("gap_s", "approximate_median")]
    )
    kept = by_name.filter(
        pa.compute.greater_equal(by_name["gap_s_count"], len(shapes) / 2)
    ).sort_by("name")
    gap_s = kept["gap_s_approximate_median"].combine_chunks().to_numpy()
    return kept["name"].combine_chunks(), gap_s


def _said(compared: Sequence[date], day: date, bad: Collection[date]) -> str:
    if len(compared) == WEEKS:
        return f"the median of {WEEKS} {day:%A}s"
    why = f"not {WEEKS} {day:%A}s of the {_BACK} weeks before have good data"
    if compared[0] in bad:
        why = f"no day of the {_BACK} weeks before has good data, nor has this one"
    return f"{compared[0]}, for {why}"


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
