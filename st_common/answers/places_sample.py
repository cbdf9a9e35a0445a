"""Where fixes of an interval lie: some of them, evenly chosen, however many there are."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from st_common import tables
from st_common.asking import asking
from st_common.config.home import Home
from st_common.history.stored import FILTERED, has_filtered

_SAMPLE = "SELECT x, y FROM places USING SAMPLE reservoir({most} ROWS) REPEATABLE (1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesSample:
    """Places of some fixes, in no order; arrays of one length n.

    Attributes:
        x: float64[n], in the coordinates of the stream.
        y: likewise.
        count: how many fixes of the interval have a place.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    count: int


def places_sample(
    home: Home, stream: str, *, since: datetime, until: datetime, most: int
) -> PlacesSample:
    """Places of archived fixes of an interval, each of them as likely as any other; all where there are few.

    Fixes that a position filter took out and those of objects that were gone are none of them.

    Args:
        home: where the archive lies.
        stream: whose.
        since: the first time, with a time zone.
        until: the time to stop before.
        most: so many places.
    """
    path = home.table("positions", stream)
    if not tables.exists(path):
        nothing = np.empty(0)
        return PlacesSample(x=nothing, y=nothing, count=0)
    when, day = pc.field("event_ts"), pc.field("event_date")
    wanted = (when >= since) & (when < until) & ~pc.field("gone")
    first, last = (one.astimezone(UTC).date() for one in (since, until))
    wanted &= (day >= first) & (day <= last)
    wanted &= pc.field("x").is_valid() & pc.field("y").is_valid()
    if has_filtered(path):
        wanted &= pc.field(FILTERED).is_null()
    fixes = tables.dataset(path).filter(wanted)
    with asking() as connection:
        connection.register("places", fixes)
        rows = connection.sql(_SAMPLE.format(most=int(most))).to_arrow_table()
    return PlacesSample(
        x=rows["x"].to_numpy(), y=rows["y"].to_numpy(), count=fixes.count_rows()
    )
