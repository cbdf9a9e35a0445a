"""The last fixes of objects over several ticks of a run, which are looked at all at once.

What an object's last fix is from one tick on is a version of the object. Versions stand in for objects wherever one
tick is looked at: as members, as focal objects, as points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from st_common.operators.fixes import ALIVE
from st_common.operators.present import Present
from st_common.operators.readings import Readings
from st_common.operators.taken import taken
from st_common.operators.turn import Turn
from st_common.operators.world import World

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

    def __init__(self, turn: Turn, fixes: Present, moments: Sequence[Moment], members: np.ndarray) -> None:
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
        order = np.lexsort((tick, who))  # stable: of one tick, events come last, in their order
        who, tick, after = who[order], tick[order], after[order]
        last = np.append((who[1:] != who[:-1]) | (tick[1:] != tick[:-1]), True) if len(who) else np.empty(0, bool)
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
        self.until = np.where(follows, np.append(self.tick[1:], 0)[: len(number)], self.ticks)
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

    def readings(self, versions: np.ndarray) -> Readings:
        """Some versions as readings of their objects."""
        names = ("ts", "x", "y", "before_ts", "before_x", "before_y")
        columns = {name: getattr(self, name)[versions] for name in names}
        attributes = taken(self._fixes.attributes, self.place[versions])
        return Readings(object=self.object[versions], attributes=attributes, **columns)

    def masks(self, texts: Sequence[str], versions: np.ndarray) -> np.ndarray:
        """bool[e, n]: where each expression is true of some versions."""
        return self.values.masks(texts, self.place[versions])

    @cached_property
    def world(self) -> World:
        """The versions as objects of a world; an object's versions of other ticks are others there."""
        return World(x=self.x, y=self.y, alive=self.alive, ids=self._ids, geographic=self._turn.settings.geographic,
                     masks=np.ones((1, len(self)), bool))  # fmt: skip

    @cached_property
    def _ids(self) -> pa.Array:
        return self._turn.objects.ids.take(pa.array(self.object))


def _joined(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all parts, and of each which part it is of."""
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
