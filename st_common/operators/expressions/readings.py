"""Fixes as expressions see them: the stream's attributes, and what follows from the reading before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.events.timeline import FIX, Events
from st_common.operators.state.fixes import (
    ALIVE,
    FILLERS,
    NEVER,
    READING,
    Attributes,
    LastFixes,
)
from st_common.operators.state.taken import Joined, taken
from st_common.query.fix_columns import BUILTINS
from st_common.runs import is_first, last_set, shifted, starts_of


class Points(Protocol):
    """What expressions are asked of: n rows with columns, as `Readings` has them."""

    def __len__(self) -> int:
        """How many there are."""

    def take(self, index: np.ndarray) -> "Points":
        """See `Readings.take`."""

    def column(self, name: str, ids: pa.Array, *, space: Space) -> pa.Array | None:
        """See `Readings.column`."""

    def table(
        self, ids: pa.Array, *, space: Space, texts: Sequence[str] | None = None
    ) -> pa.Table:
        """See `Readings.table`."""

    def columns(
        self, names: Sequence[str], ids: pa.Array, *, space: Space
    ) -> dict[str, pa.Array]:
        """See `Readings.columns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Fixes with the reading before each in the same stay; n of them.

    Attributes:
        object: int64[n], numbers of objects.
        ts: int64[n], event time in microseconds.
        x: float64[n], NaN of an object that ended; `y` likewise.
        before_ts: int64[n], event time of the reading before, NEVER without one.
        before_x: float64[n], where that was, NaN without one; of an object that ended the place of its last fix.
            `before_y` likewise.
        earlier_ts: int64[n], event time of the reading before that one, NEVER without one.
        earlier_x: float64[n], where that was, NaN without one. `earlier_y` likewise.
        attributes: other columns, n values each.
    """

    object: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray
    earlier_ts: np.ndarray
    earlier_x: np.ndarray
    earlier_y: np.ndarray
    attributes: Attributes

    def __len__(self) -> int:
        return len(self.object)

    def take(self, index: np.ndarray) -> "Readings":
        """Some of the readings: by place (int64) or by mask (bool[n])."""
        columns = {name: getattr(self, name)[index] for name in _ARRAYS}
        return Readings(**columns, attributes=taken(self.attributes, index))

    def placed(self) -> "Readings":
        """The same, with the last place of objects that are gone or silent."""
        nowhere = np.isnan(self.x)
        if not nowhere.any():
            return self
        return replace(
            self,
            x=np.where(nowhere, self.before_x, self.x),
            y=np.where(nowhere, self.before_y, self.y),
        )

    def elapsed_s(self) -> np.ndarray:
        """Seconds since the reading before; float64[n], NaN without one (SPEC P5)."""
        return _seconds(self.before_ts, self.ts)

    def speed_mps(self, *, space: Space) -> np.ndarray:
        """Metres (or units of a plane) per second since the reading before; float64[n], NaN without one.

        Example:
            on the plane from (0, 0) to (3, 4) in 2 s:  2.5
        """
        way = space.distance(self.before_x, self.before_y, self.x, self.y)
        speed: np.ndarray = way / self.elapsed_s()
        return speed

    def heading_deg(self, *, space: Space) -> np.ndarray:
        """In which direction the reading lies from the one before; float64[n], degrees from north to the east.

        NaN without a reading before, and for an object that has not moved since.

        Example:
            on the plane from (0, 0) to (1, 1):  45
        """
        way = space.bearing(self.before_x, self.before_y, self.x, self.y)
        return np.where(self.before_ts != NEVER, way, np.nan)

    def acceleration_mps2(self, *, space: Space) -> np.ndarray:
        """By how much the speed has changed since the reading before, by the seconds since then; float64[n].

        NaN without two readings before.

        Example:
            5 m/s, and 7 m/s 4 s later:  0.5
        """
        ends = (self.earlier_x, self.earlier_y, self.before_x, self.before_y)
        before_mps = space.distance(*ends) / _seconds(self.earlier_ts, self.before_ts)
        change_mps = self.speed_mps(space=space) - before_mps
        changed: np.ndarray = change_mps / self.elapsed_s()
        return changed

    def column(self, name: str, ids: pa.Array, *, space: Space) -> pa.Array | None:
        """One of the columns that expressions may use, but times; None for no column of that name, or more than one.

        Args:
            name: in any case.
            ids: string, the ids of all objects.
            space: by which speeds are measured.
        """
        names = [
            known
            for known in (*self.attributes, *_BUILTIN)
            if known.casefold() == name.casefold()
        ]
        # Of a name in two cases nobody can say which column is meant.
        if len(names) != 1:
            return None
        if names[0] not in _BUILTIN:
            return self.attributes[names[0]]
        return self._builtin(names[0], ids, space=space)

    def table(
        self, ids: pa.Array, *, space: Space, texts: Sequence[str] | None = None
    ) -> pa.Table:
        """The columns that expressions may use: attributes, and what every fix has (see `query.fix_columns.BUILTINS`).

        Args:
            ids: string, the ids of all objects.
            space: by which speeds are measured.
            texts: the expressions that will see the table; columns whose names occur in none are left out. By default
                all columns are there.
        """
        names = _occurring((*self.attributes, *_COLUMNS), texts)
        # One at least, which says how many rows there are.
        return pa.table(self.columns(names or ["x"], ids, space=space))

    def columns(
        self, names: Sequence[str], ids: pa.Array, *, space: Space
    ) -> dict[str, pa.Array]:
        """Some columns of `table`, by name; those that it has not are left out.

        Args:
            names: in any case; no two columns of the table differ in case alone.
            ids: string, the ids of all objects.
            space: by which speeds are measured.
        """
        wanted = {name.casefold() for name in names}
        builtin = {
            name: self._builtin(name, ids, space=space)
            for name in _COLUMNS
            if name in wanted
        }
        own = [
            name
            for name in self.attributes
            if name.casefold() in wanted and name not in _COLUMNS
        ]
        return {name: self.attributes[name] for name in own} | builtin

    def _builtin(self, name: str, ids: pa.Array, *, space: Space) -> pa.Array:
        """A column that every fix has."""
        if name == "object":
            return ids.take(pa.array(self.object))
        if name == "event_ts":
            return pa.array(self.ts).cast(pa.timestamp("us"))
        if name == "elapsed_s":
            values = self.elapsed_s()
        elif name == "speed_mps":
            values = self.speed_mps(space=space)
        elif name == "heading_deg":
            values = self.heading_deg(space=space)
        elif name == "acceleration_mps2":
            values = self.acceleration_mps2(space=space)
        else:
            values = getattr(self, name)
        return pa.array(values, from_pandas=True)


_COLUMNS = tuple(BUILTINS)
_BUILTIN = tuple(name for name in _COLUMNS if name != "event_ts")
_ARRAYS = ("object", *READING)


def _seconds(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The seconds between two times in microseconds; float64[n], NaN where the one before is NEVER."""
    known = before != NEVER
    return np.where(known, (after - np.where(known, before, 0)) / 1e6, np.nan)


def _occurring(names: Iterable[str], texts: Sequence[str] | None) -> list[str]:
    """The names that occur in expressions, in any case, or as a part of something else; all of them without any."""
    if texts is None:
        return list(names)
    said = " ".join(texts).casefold().replace('""', '"')
    return [name for name in names if name.casefold() in said]


def joined(one: Readings, other: Readings) -> Readings:
    """The readings of both, those of the second behind the first.

    Args:
        one: the first.
        other: the second; an attribute that one of them lacks is null there.
    """
    columns = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])
        for name in _ARRAYS
    }
    attributes = Joined(one.attributes, len(one), other.attributes, len(other))
    return Readings(**columns, attributes=attributes)


def of_objects(fixes: LastFixes, objects: np.ndarray) -> Readings:
    """The last readings of some objects (int64[n], all of them known)."""
    rows = fixes.take(objects)
    columns = {name: getattr(rows, name) for name in _ARRAYS if name != "object"}
    return Readings(object=objects, attributes=rows.attributes, **columns)


def of_all(fixes: LastFixes) -> Readings:
    """The last readings of all known objects, by their numbers: the columns as they are, without a copy."""
    columns = {name: getattr(fixes, name) for name in _ARRAYS if name != "object"}
    return Readings(
        object=np.arange(len(fixes)), attributes=fixes.attributes, **columns
    )


def of_events(fixes: LastFixes, events: Events, attributes: Attributes) -> Readings:
    """A reading per event, in the order of the events.

    Of an event that ends a stay it is what is known of the object still: the attributes of its last fix, and where that
    was as the place before, without a time.

    Args:
        fixes: the last fixes before them all.
        events: sorted by object and effect.
        attributes: of fixes, by the `source` of events.
    """
    is_fix, before = events.kind == FIX, _before(fixes, events)
    kept, goes_on = before.alive | ~is_fix, is_fix & before.alive
    columns = {
        "before_ts": np.where(goes_on, before.ts, NEVER),
        "before_x": np.where(kept, before.x, np.nan),
        "before_y": np.where(kept, before.y, np.nan),
    }
    return Readings(
        object=events.object,
        ts=events.fix_ts,
        x=events.x,
        y=events.y,
        **columns,
        **_earlier(fixes, events, before.place, goes_on, columns),
        attributes=_attributes(fixes, events, attributes, before.place),
    )


def _earlier(
    fixes: LastFixes,
    events: Events,
    place: np.ndarray,
    goes_on: np.ndarray,
    columns: dict[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """What was before the reading before each event: that reading's own, from the run or from before it.

    Args:
        fixes: the last fixes before the events.
        events: sorted by object and effect.
        place: int64[n], the fix before each among the events, -1 for one from before the run.
        goes_on: bool[n], the fixes that have a reading before.
        columns: what was before each event.
    """
    here = np.flatnonzero(goes_on & (place >= 0))
    old = np.flatnonzero(goes_on & (place < 0))
    out = {}
    for name, values in columns.items():
        column = np.full_like(values, FILLERS[name])
        column[here] = values[place[here]]
        column[old] = getattr(fixes, name)[events.object[old]]
        out[name.replace("before", "earlier")] = column
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """Per event the last fix of its object before it: its `place` among the events, -1 for one from before the run.

    `alive`: no event ended the stay since. What is not known is NEVER and NaN.
    """

    place: np.ndarray
    alive: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray


def _before(fixes: LastFixes, events: Events) -> _Before:
    count, is_fix = len(events), events.kind == FIX
    first = is_first(events.object)
    newest = shifted(last_set(is_fix), -1)  # of any object
    place = np.where(newest >= starts_of(first), newest, -1)
    old = np.flatnonzero((place < 0) & (events.object < len(fixes)))
    who = events.object[old]
    lives = fixes.status[who] == ALIVE
    alive = ~first & shifted(is_fix, first=False)
    alive[old] |= lives & first[old]
    columns = {}
    for name, filler in (("ts", NEVER), ("x", np.nan), ("y", np.nan)):
        values = (
            np.where(place >= 0, getattr(events, name)[place], filler)
            if count
            else getattr(events, name)
        )
        own = getattr(fixes, name)[who]
        values[old] = (
            own
            if name == "ts"
            else np.where(lives, own, getattr(fixes, f"before_{name}")[who])
        )
        columns[name] = values
    return _Before(place=place, alive=alive, **columns)


def _attributes(
    fixes: LastFixes, events: Events, attributes: Attributes, place: np.ndarray
) -> Attributes:
    """The attributes of each event's fix: of one that ends a stay those of the last fix before it."""
    ends = np.flatnonzero(events.kind != FIX)
    if not len(ends):
        return taken(attributes, events.source)
    source, here = events.source.copy(), ends[place[ends] >= 0]
    source[here] = events.source[place[here]]
    old = ends[(place[ends] < 0) & (events.object[ends] < len(fixes))]
    rows = next(
        (len(column) for column in attributes.values()), int(source.max(initial=-1)) + 1
    )
    both = Joined(
        attributes, rows, taken(fixes.attributes, events.object[old]), len(old)
    )
    source[np.setdiff1d(ends, here)] = -1
    source[old] = rows + np.arange(len(old))
    return taken(both, source)
