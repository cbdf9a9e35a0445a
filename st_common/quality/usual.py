"""What is usual for a day of a stream: the same weekday in the four weeks before, else the day before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.home import Home
from st_common.ops.history import days_of
from st_common.quality.shape import Shape, ordered, shape_of

WEEKS = 4


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


def days_to_compare(days: Sequence[date], day: date) -> list[date]:
    """The days that say what is usual for one: the same weekday in the four weeks before, else the day before.

        four Saturdays before it have data    those four
        three have                            the newest day before it that has data, yesterday as a rule
        nothing before it has                 none

    Args:
        days: the days that have data.
        day: the one that is compared.
    """
    weeks = [day - timedelta(weeks=each) for each in range(1, WEEKS + 1)]
    before = [each for each in days if each < day]
    if set(weeks) <= set(before):
        return weeks
    return [max(before)] if before else []


def usual_of(home: Home, stream: str, day: date) -> Usual | None:
    """What is usual for a day of a stream, from the table `positions`; None when no day before it has data.

    Args:
        home: where the tables lie.
        stream: the stream.
        day: the day (UTC).
    """
    path = home.table("positions", stream)
    compared = days_to_compare(days_of(path), day)
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
    return usual_among(shapes, _said(compared, day))


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
    ).combine_chunks()
    gap_s = kept["gap_s_approximate_median"].to_numpy()
    return kept["name"].combine_chunks(), gap_s


def _said(compared: Sequence[date], day: date) -> str:
    if len(compared) == WEEKS:
        return f"the median of {WEEKS} {day:%A}s"
    return f"{compared[0]}, for not all {WEEKS} {day:%A}s before have data"


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
