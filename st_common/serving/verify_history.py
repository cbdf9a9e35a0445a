"""All that happened on a stream: the events of its objects and its clock, from the table `positions`."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from st_common import tables
from st_common.controls.rows import Clock as ClockRow
from st_common.controls.rows import End
from st_common.home import Home
from st_common.levels.stored import FILTERED, has_filtered
from st_common.position import position_of
from st_common.serving.verify_events import (
    LATER,
    Clock,
    Times,
    clock_of,
    events_of,
)
from st_common.serving.verify_expressions import ATTRIBUTE
from st_common.serving.verify_members import Lookup
from st_common.serving.verify_registered import Controls
from st_common.settings import StreamSettings

_PLAIN = ["segment", "row", "event_ts", "object", "x", "y", "gone"]
_TYPES = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that happened to the objects of a stream, its clock, and how many metres a unit of its plane is."""

    home: Home
    events: pd.DataFrame
    clock: Clock
    times: Times
    of: Lookup
    unit_m: float

    @property
    def last_tick(self) -> int:
        """The last tick that was judged: one that the clock is past, or one at an end mark."""
        due = self.events[self.events["due"] != LATER]
        last = int(due["tick"].max()) if len(due) else 0
        tick_us = self.times.tick_us
        return max(last, (self.clock.now - 1) // tick_us * tick_us)

    def before(self, position: int, event_us: int) -> "History":
        """What had happened before a row of the log, or before a time."""
        is_before = (self.events["effect"] < position) | (
            self.events["event"] < event_us
        )
        events = self.events[is_before]
        is_judged = (events["due"] < position) | (events["tick"] < event_us)
        due = events["due"].where(is_judged, LATER)
        return replace(
            self, events=events.assign(due=due), clock=self.clock.until(position)
        )


def _fixes_before(home: Home, stream: StreamSettings, end: int) -> pd.DataFrame:
    """The archived fixes before a position in the order of the log, attributes with the prefix `ATTRIBUTE`."""
    path = home.table("positions", stream.name)
    knows_filtered = has_filtered(path)
    columns = [*_PLAIN, *stream.attributes, *([FILTERED] if knows_filtered else [])]
    stored = tables.read(path, columns=columns)
    event_us = stored["event_ts"].cast(pa.int64())
    plain = stored.select(_PLAIN).set_column(2, "ts", event_us).to_pandas()
    own = stored.select(list(stream.attributes)).to_pandas(types_mapper=_TYPES.get)
    fixes = plain.join(own.add_prefix(ATTRIBUTE))
    fixes["is_filtered"] = (
        stored[FILTERED].is_valid().to_numpy() if knows_filtered else False
    )
    fixes["position"] = position_of(
        fixes["segment"].to_numpy(np.int64), fixes["row"].to_numpy(np.int64)
    )
    before = fixes[fixes["position"] < end].astype({"gone": bool})
    ordered: pd.DataFrame = before.sort_values("position", kind="stable")
    return ordered


def history_of(
    home: Home, stream: StreamSettings, controls: Controls, end: int
) -> History:
    """What the table `positions` and the control rows tell of a stream before the position `end`."""
    fixes = _fixes_before(home, stream, end)
    times = times_of(stream)
    clock = clock_of(fixes, marks_of(controls), times)
    of = Lookup(attributes=tuple(stream.attributes), space=stream.space)
    return History(
        home=home,
        events=events_of(fixes, clock, times),
        clock=clock,
        times=times,
        of=of,
        unit_m=stream.unit_m,
    )


def times_of(stream: StreamSettings) -> Times:
    """A stream's settings of time."""
    return Times(
        lateness_us=round(stream.lateness_s * 1e6),
        tick_us=round(stream.tick_s * 1e6),
        space=stream.space,
        window_rows=stream.window_rows,
        silence_us=None if stream.silence_s is None else round(stream.silence_s * 1e6),
    )


def marks_of(controls: Controls) -> pd.DataFrame:
    """The control rows that move the clock, as `clock_of` takes them."""
    marks = [
        (at, row.ts_us if isinstance(row, ClockRow) else 0, isinstance(row, End))
        for at, row in controls
        if isinstance(row, ClockRow | End)
    ]
    table = pd.DataFrame(marks, columns=["position", "ts", "is_end"])
    return table.astype({"position": np.int64, "ts": np.int64, "is_end": bool})
