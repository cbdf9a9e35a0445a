"""Fixes as expressions see them: the stream's attributes, and what follows from the reading before."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.geometry.distance import metres_between
from st_common.operators.fixes import ALIVE, NEVER, Attributes, LastFixes
from st_common.operators.taken import taken
from st_common.operators.timeline import FIX, Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Fixes with the reading before each in the same stay (`before_ts` NEVER without one)."""

    object: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray
    attributes: Attributes

    def __len__(self) -> int:
        return len(self.object)

    def take(self, index: np.ndarray) -> "Readings":
        """Some of the readings, by place."""
        columns = {name: getattr(self, name)[index] for name in _ARRAYS}
        return Readings(**columns, attributes=taken(self.attributes, index))

    def elapsed_s(self) -> np.ndarray:
        """Seconds since the reading before, NaN without one (SPEC P5)."""
        known = self.before_ts != NEVER
        return np.where(known, (self.ts - np.where(known, self.before_ts, 0)) / 1e6, np.nan)

    def speed_mps(self, *, geographic: bool) -> np.ndarray:
        """Metres (or units of a plane) per second since the reading before, NaN without one."""
        if geographic:
            metres = metres_between(self.before_x, self.before_y, self.x, self.y)
        else:
            metres = np.hypot(self.x - self.before_x, self.y - self.before_y)
        speed: np.ndarray = metres / self.elapsed_s()
        return speed

    def table(self, ids: pa.Array, *, geographic: bool) -> pa.Table:
        """The columns that expressions may use; `ids` are the ids of all objects."""
        elapsed, speed = self.elapsed_s(), self.speed_mps(geographic=geographic)
        return pa.table({
            **self.attributes, "object": ids.take(pa.array(self.object)),
            "event_ts": pa.array(self.ts).cast(pa.timestamp("us")), "x": pa.array(self.x, from_pandas=True),
            "y": pa.array(self.y, from_pandas=True),
            "elapsed_s": pa.array(elapsed, from_pandas=True), "speed_mps": pa.array(speed, from_pandas=True),
        })  # fmt: skip


_ARRAYS = ("object", "ts", "x", "y", "before_ts", "before_x", "before_y")


def of_objects(fixes: LastFixes, objects: np.ndarray) -> Readings:
    """The last readings of some objects."""
    rows = fixes.take(objects)
    columns = {name: getattr(rows, name) for name in _ARRAYS if name != "object"}
    return Readings(object=objects, attributes=rows.attributes, **columns)


def of_events(fixes: LastFixes, events: Events, attributes: Attributes) -> Readings:
    """A reading per event (sorted by object and effect), given the last fixes before them all."""
    first = np.r_[True, events.object[1:] != events.object[:-1]] if len(events) else np.empty(0, bool)
    known = np.minimum(events.object, len(fixes) - 1)
    is_known = (events.object < len(fixes)) & first
    alive = ~first & np.r_[False, events.kind[:-1] == FIX] if len(events) else first
    columns = {}
    for name, filler in (("ts", NEVER), ("x", np.nan), ("y", np.nan)):
        own = getattr(events, name)
        values = np.r_[own[:1], own[:-1]]
        if is_known.any():
            values = np.where(is_known, getattr(fixes, name)[known], values)
        columns[f"before_{name}"] = (values, filler)
    if is_known.any():
        alive = np.where(is_known, fixes.status[known] == ALIVE, alive)
    return Readings(
        object=events.object, ts=events.ts, x=events.x, y=events.y,
        **{name: np.where(alive, values, filler) for name, (values, filler) in columns.items()},
        attributes=taken(attributes, events.source),
    )  # fmt: skip
