"""How the measures of a stream went over the days, as lines to be drawn."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from st_common import tables
from st_common.config.home import Home

DAYS = 28
_WIDTH, _HEIGHT = 140.0, 28.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One measure over some days, the oldest first.

    Attributes:
        days: those that have a value.
        values: of each of them.
    """

    days: tuple[date, ...] = ()
    values: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def said(self) -> str:
        """The first, the last and the extremes, for people."""
        if not self.values:
            return ""
        low, high = min(self.values), max(self.values)
        span = f"{self.days[0]} to {self.days[-1]}"
        return f"{span}: {low:.4g} to {high:.4g}, last {self.values[-1]:.4g}"

    @property
    def places(self) -> list[tuple[float, float]]:
        """Each day's place in a picture of 140 by 28: x by the date, y by the value, the largest at the top."""
        x = np.array([(day - self.days[0]).days for day in self.days], float)
        y = np.array(self.values)
        wide, high = np.ptp(x) or 1.0, np.ptp(y) or 1.0
        x, y = x / wide * _WIDTH, _HEIGHT - (y - y.min()) / high * _HEIGHT
        return list(zip(x.round(1).tolist(), y.round(1).tolist(), strict=True))

    @property
    def line(self) -> str:
        """The places as the points of a line in SVG."""
        return " ".join(f"{x},{y}" for x, y in self.places)

    @property
    def last(self) -> tuple[float, float]:
        """The place of the last day."""
        return self.places[-1]


Trends = defaultdict[tuple[str, str], Trend]


def trends_of(home: Home, labels: Sequence[str], until: date) -> Trends:
    """How the rules of some tables went in the four weeks up to a day, from the table `quality`.

    Args:
        home: where it lies.
        labels: what the findings call the tables, such as `data/taxis`.
        until: the last day (UTC).

    Returns:
        By label and rule; an empty one for any other. Days on which there was nothing to judge are left out.
    """
    path = home.table("quality")
    trends: Trends = defaultdict(Trend)
    if not labels or not tables.exists(path):
        return trends
    rows = tables.read(
        path,
        columns=["date", "table", "rule", "observed"],
        filters=[
            ("date", ">", until - timedelta(days=DAYS)),
            ("date", "<=", until),
            ("table", "in", list(labels)),
        ],
    ).sort_by("date")
    together = rows.filter(rows["observed"].is_valid()).group_by(
        ["table", "rule"], use_threads=False
    )
    for each in together.aggregate(
        [("date", "list"), ("observed", "list")]
    ).to_pylist():
        trends[each["table"], each["rule"]] = Trend(
            days=tuple(each["date_list"]), values=tuple(each["observed_list"])
        )
    return trends
