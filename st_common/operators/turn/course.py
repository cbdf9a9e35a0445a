"""The last fixes of objects over several ticks of a run, which are looked at all at once.

What an object's last fix is from one tick on is a version of the object. Versions stand in for objects wherever one
tick is looked at: as members, as focal objects, as points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from st_common.operators.expressions.readings import Readings
from st_common.operators.skeleton.world import World
from st_common.operators.state.fixes import ALIVE
from st_common.operators.state.taken import taken
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last, ranges

BEFORE = -1  # the tick of what was there before the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A tick that is due: the row of the log at which it is, its events, and all objects that something happened to.

    `also` are those of them that are looked at anew though it was before the run that something happened to them.
    """

    tick: int
    position: int
    events: np.ndarray
    also: np.ndarray
    objects: np.ndarray


class Course:
    """Versions by number, sorted by object and then by tick; columns as `Present` has them.

    `tick` is the one from which on a version holds, `until` the one from which on the next does (`ticks` without).
    `objects` (int64[n], ascending) are the objects that are looked at, `at` (int64[ticks, n]) their versions at each
    tick, `changed` (bool[ticks, n]) where something happened to them.
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
            np.maximum.accumulate(self.at, axis=0, out=self.at)
        self.first, self.new = np.flatnonzero(self.tick == BEFORE), new

    def __len__(self) -> int:
        return len(self.object)

    def columns_of(self, objects: np.ndarray) -> np.ndarray:
        """The columns of some objects, -1 for those that are not looked at: they are not alive, and stay so."""
        if not len(self.objects):
            return np.full(len(objects), -1)
        at = np.minimum(np.searchsorted(self.objects, objects), len(self.objects) - 1)
        return np.where(self.objects[at] == objects, at, -1)

    def first_of(self, objects: np.ndarray) -> np.ndarray:
        """The versions of some objects before the first tick; they are looked at."""
        first: np.ndarray = self.first[self.columns_of(objects)]
        return first

    def at_ticks(self, objects: np.ndarray, ticks: np.ndarray) -> np.ndarray:
        """The versions of objects at ticks (their places); -1 where they are not looked at."""
        column = self.columns_of(objects)
        return (
            np.where(column >= 0, self.at[ticks, column], -1)
            if len(self.objects)
            else column
        )

    def status_at(self, objects: np.ndarray, ticks: np.ndarray) -> np.ndarray:
        """The status of objects at ticks; ALIVE for -1: what is not known never ended."""
        version = self.at_ticks(objects, ticks)
        status = np.where(
            objects >= 0,
            self._fixes.status[objects] if len(self._fixes) else ALIVE,
            ALIVE,
        )
        return np.where(version >= 0, np.append(self.status, ALIVE)[version], status)

    def versions_within(
        self, objects: np.ndarray, start: np.ndarray, until: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The versions that objects (which are looked at) have from one tick to before another, and whose each is."""
        width, column = self.ticks + 2, self.columns_of(objects)
        place = self.column * width + self.tick + 1
        low = np.searchsorted(place, column * width + start + 1, side="right") - 1
        counts = np.searchsorted(place, column * width + until + 1) - low
        return np.repeat(np.arange(len(objects)), counts), ranges(low, counts)

    def readings(self, versions: np.ndarray) -> Readings:
        """Some versions as readings of their objects."""
        names = ("ts", "x", "y", "before_ts", "before_x", "before_y")
        columns = {name: getattr(self, name)[versions] for name in names}
        attributes = taken(self._fixes.attributes, self.place[versions])
        return Readings(object=self.object[versions], attributes=attributes, **columns)

    def masks(
        self, texts: Sequence[str], versions: np.ndarray, *, among: int
    ) -> np.ndarray:
        """bool[e, n]: where each expression is true of some versions; `among` so many (see `Values`)."""
        return self.values.masks(texts, self.place[versions], among=among)

    @cached_property
    def world(self) -> World:
        """The versions as objects of a world; an object's versions of other ticks are others there."""
        return World(
            x=self.x,
            y=self.y,
            alive=self.alive,
            ids=self._ids,
            space=self._turn.settings.space,
        )

    @cached_property
    def _ids(self) -> pa.Array:
        return self._turn.objects.ids.take(pa.array(self.object))


class Now:
    """One tick as `Course` has several: each object is the one version of itself, once `fixes` are taken on to there.

    Nothing is copied; `objects` are those to which something happened.
    """

    ticks = 1

    def __init__(self, fixes: Present, objects: np.ndarray) -> None:
        for name in (
            "ts",
            "x",
            "y",
            "status",
            "before_ts",
            "before_x",
            "before_y",
            "place",
        ):
            setattr(self, name, getattr(fixes, name))
        self.values, self.object = fixes.values, np.arange(len(fixes))
        self.tick, self.until = (
            np.full(len(fixes), BEFORE),
            np.ones(len(fixes), np.int64),
        )
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
        """The columns of some objects."""
        return objects

    def at_ticks(self, objects: np.ndarray, _ticks: np.ndarray) -> np.ndarray:
        """The versions of objects: themselves."""
        return objects

    def status_at(self, objects: np.ndarray, _ticks: np.ndarray) -> np.ndarray:
        """The status of objects; ALIVE for -1."""
        status: np.ndarray = np.append(self.status, ALIVE)[objects]
        return status

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
