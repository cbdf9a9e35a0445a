"""The last fixes of objects over several ticks of a run, which are looked at all at once.

What an object's last fix is from one tick on is a version of the object. Versions stand in for objects wherever one
tick is looked at: as members, as focal objects, as points.

    ticks            before    0     1     2
    object 7           a             b              reported a before the run, b before tick 1
    object 9           c

    version          0 (a)  1 (b)  2 (c)            at        object 7   object 9
    object             7      7      9              tick 0        0          2
    tick              -1      1     -1              tick 1        1          2
    until              1      3      3              tick 2        1          2

So a kind of query that knows one moment judges many ticks at once: a pair of two versions is looked at once, however
many ticks both last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from st_common.operators.expressions.readings import Readings
from st_common.operators.matching.extents import shapes_of
from st_common.operators.skeleton.world import World
from st_common.operators.state.fixes import ALIVE, READING
from st_common.operators.state.taken import taken
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last, ranges

BEFORE = -1  # the tick of what was there before the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A tick that is due: the row of the log at which it is, its events, and all objects that something happened to.

    Attributes:
        tick: its event time in microseconds.
        position: the row of the log after which the clock is past it.
        events: int64, places of its events among those of the run, sorted by object and effect.
        also: int64, objects that are looked at anew though it was before the run that something happened to them.
        objects: int64, ascending: those of the events, and `also`.
    """

    tick: int
    position: int
    events: np.ndarray
    also: np.ndarray
    objects: np.ndarray


class Course:
    """Versions by number, sorted by object and then by tick; columns as `Present` has them.

    Args:
        turn: the run.
        fixes: the last fixes before the first of the ticks.
        moments: the ticks, ascending.
        members: int64, objects that are looked at though nothing happened to them and they may not be alive. Others are
            looked at when they are alive or something happened to them.

    Attributes:
        object: int64[v], whose version each is.
        tick: int64[v], the place of the tick from which on it holds, `BEFORE` for what was there before the first.
        until: int64[v], the tick from which on the next version holds, `ticks` without one.
        objects: int64[n], ascending, the objects that are looked at.
        at: int64[ticks, n], their versions at each tick.
        changed: bool[ticks, n], where something happened to them.
        first: int64[n], their versions before the first tick.
    """

    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    status: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray

    def __init__(
        self, turn: Turn, fixes: Present, moments: Sequence[Moment], members: np.ndarray
    ) -> None:
        event, event_tick = _joined([moment.events for moment in moments])
        also, also_tick = _joined([moment.also for moment in moments])
        events = turn.events.object[event]
        # An object that is not alive, is no member, and does nothing stays out of all answers: it has no version.
        wanted = fixes.alive.copy()
        wanted[events], wanted[also], wanted[members] = True, True, True
        self.ticks, self.objects = len(moments), np.flatnonzero(wanted)
        here, nothing = len(self.objects), np.full(len(also), -1)
        who = np.concatenate([self.objects, also, events])
        tick = np.concatenate([np.full(here, BEFORE), also_tick, event_tick])
        after = np.concatenate([np.full(here, -1), nothing, event])
        order = np.lexsort(
            (tick, who)
        )  # stable: of one tick, events come last, in their order
        who, tick, after = who[order], tick[order], after[order]
        last = is_last(who, tick)
        self.object, self.tick = who[last], tick[last]
        for name, column in fixes.columns_after(self.object, after[last]).items():
            setattr(self, name, column)
        self.alive = self.status == ALIVE
        self.values = fixes.values
        self._fixes, self._turn = fixes, turn
        self._lay_out()

    place: np.ndarray

    def _lay_out(self) -> None:
        number = np.arange(len(self.object))
        self.column = np.cumsum(self.tick == BEFORE) - 1
        follows = np.append(self.tick[1:] != BEFORE, False)[: len(number)]
        self.until = np.where(
            follows, np.append(self.tick[1:], 0)[: len(number)], self.ticks
        )
        self.follows = follows
        new = np.flatnonzero(self.tick != BEFORE)
        self.changed = np.zeros((self.ticks, len(self.objects)), bool)
        self.changed[self.tick[new], self.column[new]] = True
        self.at = np.zeros((self.ticks, len(self.objects)), np.int64)
        if self.ticks:
            self.at[0] = number[self.tick == BEFORE]
            self.at[self.tick[new], self.column[new]] = new
            # Versions of an object are numbered by tick: the newest so far has the greatest number.
            np.maximum.accumulate(self.at, axis=0, out=self.at)
        self.first, self.new = np.flatnonzero(self.tick == BEFORE), new

    def __len__(self) -> int:
        return len(self.object)

    def columns_of(self, objects: np.ndarray) -> np.ndarray:
        """The columns of some objects in `at` and `changed`; int64, -1 for an object that is not looked at.

        Who is not looked at is not alive, and stays so over all ticks.
        """
        if not len(self.objects):
            return np.full(len(objects), -1)
        at = np.minimum(np.searchsorted(self.objects, objects), len(self.objects) - 1)
        return np.where(self.objects[at] == objects, at, -1)

    def first_of(self, objects: np.ndarray) -> np.ndarray:
        """The versions of some objects before the first tick; int64. All of the objects must be looked at."""
        first: np.ndarray = self.first[self.columns_of(objects)]
        return first

    def at_ticks(self, objects: np.ndarray, ticks: np.ndarray) -> np.ndarray:
        """The version of each object at a tick; int64[n], -1 where the object is not looked at.

        Args:
            objects: int64[n].
            ticks: int64[n], the place of the tick for each.
        """
        column = self.columns_of(objects)
        return (
            np.where(column >= 0, self.at[ticks, column], -1)
            if len(self.objects)
            else column
        )

    def status_at(self, objects: np.ndarray, ticks: np.ndarray) -> np.ndarray:
        """The status of each object at a tick; int8[n]: ENDED, ALIVE or SILENT.

        Args:
            objects: int64[n]; -1 gives ALIVE, for what is not known never ended.
            ticks: int64[n], the place of the tick for each.
        """
        version = self.at_ticks(objects, ticks)
        status = np.where(
            objects >= 0,
            self._fixes.status[objects] if len(self._fixes) else ALIVE,
            ALIVE,
        )
        return np.where(version >= 0, np.append(self.status, ALIVE)[version], status)

    def all_alive(self, objects: np.ndarray) -> bool:
        """Whether some objects (-1: not known) and all that are looked at are alive at all ticks."""
        known = objects[objects >= 0]
        return bool(self.alive.all() and (self._fixes.status[known] == ALIVE).all())

    def versions_within(
        self, objects: np.ndarray, start: np.ndarray, until: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The versions that objects have in spans of ticks.

        Args:
            objects: int64[n], all of them looked at.
            start: int64[n], the first tick of each span; `BEFORE` counts in what was there before all.
            until: int64[n], the tick before which it ends; behind `start`.

        Returns:
            Two int64 arrays: the place of the span that each version is of, and the version; by span, then by tick.

        Example:
            with the drawing above, object 7 from 1 to 3 and object 9 from -1 to 2:  places [0, 1], versions [1, 2]
        """
        # Object and tick as one number, 0 for BEFORE: then a single search finds where each span begins and ends.
        width, column = self.ticks + 2, self.columns_of(objects)
        place = self.column * width + self.tick + 1
        # At its start a span has the last version that begins there or before.
        low = np.searchsorted(place, column * width + start + 1, side="right") - 1
        counts = np.searchsorted(place, column * width + until + 1) - low
        return np.repeat(np.arange(len(objects)), counts), ranges(low, counts)

    def readings(self, versions: np.ndarray) -> Readings:
        """Some versions as readings of their objects, for expressions; a row for each of int64[n] versions."""
        columns = {name: getattr(self, name)[versions] for name in READING}
        attributes = taken(self._fixes.attributes, self.place[versions])
        return Readings(object=self.object[versions], attributes=attributes, **columns)

    def masks(
        self, texts: Sequence[str], versions: np.ndarray, *, among: int
    ) -> np.ndarray:
        """Where each expression is true of some versions; bool[e, n], false where it is null or fails.

        Args:
            texts: e expressions as canonical SQL.
            versions: int64[n].
            among: how many expressions are asked of these fixes in all, by which `Values` decides how to ask.
        """
        return self.values.masks(texts, self.place[versions], among=among)

    def shapes_of(self, versions: np.ndarray) -> np.ndarray:
        """The geometries of some versions, where elements are shapes; object[n]."""
        return shapes_of(self.readings(versions))

    @cached_property
    def world(self) -> World:
        """The versions as objects of a world; versions of one object are several objects there, with the same id."""
        return World(
            x=self.x,
            y=self.y,
            alive=self.alive,
            ids=self._ids,
            space=self._turn.settings.space,
            shapes_of=self.shapes_of,
        )

    @cached_property
    def _ids(self) -> pa.Array:
        return self._turn.objects.ids.take(pa.array(self.object))


class Now:
    """One tick as `Course` has several: each object is the one version of itself, once `fixes` are taken on to there.

    Nothing is copied, so it is worth it where a run has a single tick.

    Args:
        fixes: the last fixes, which `advance` has taken on to the tick.
        objects: int64, those to which something happened.
    """

    ticks = 1

    def __init__(self, fixes: Present, objects: np.ndarray) -> None:
        for name in (*READING, "status", "place"):
            setattr(self, name, getattr(fixes, name))
        self.values, self.object = fixes.values, np.arange(len(fixes))
        self.tick, self.until = (
            np.full(len(fixes), BEFORE),
            np.ones(len(fixes), np.int64),
        )
        self.shapes_of = fixes.shapes_of
        self.tick[objects] = 0
        self.changed = (self.tick == 0)[None]

    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    status: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray
    place: np.ndarray

    def columns_of(self, objects: np.ndarray) -> np.ndarray:
        """The columns of some objects: their numbers."""
        return objects

    def at_ticks(self, objects: np.ndarray, _ticks: np.ndarray) -> np.ndarray:
        """The versions of objects: themselves."""
        return objects

    def status_at(self, objects: np.ndarray, _ticks: np.ndarray) -> np.ndarray:
        """The status of objects; ALIVE for -1."""
        status: np.ndarray = np.append(self.status, ALIVE)[objects]
        return status

    def all_alive(self, objects: np.ndarray) -> bool:
        """Whether all of some objects (-1: not known) are alive."""
        return bool((np.append(self.status, ALIVE)[objects] == ALIVE).all())

    def versions_within(
        self, objects: np.ndarray, _start: np.ndarray, _until: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The place of each object and its version: what it was before is not asked about."""
        return np.arange(len(objects)), objects


def _joined(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all parts, and of each which part it is of."""
    return np.concatenate(parts), np.repeat(
        np.arange(len(parts)), [len(part) for part in parts]
    )
