"""The last fixes of all objects at the ticks of a run: changed in place, from tick to tick."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.operators.expressions import readings
from st_common.operators.expressions.readings import Readings
from st_common.operators.expressions.values import Values
from st_common.operators.matching.extents import shapes_of
from st_common.operators.state.fixes import (
    ALIVE,
    ENDED,
    FILLERS,
    READING,
    SILENT,
    LastFixes,
)
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.taken import Attributes, Joined, taken
from st_common.operators.turn.lookups import Lookups
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last

_STATUS = np.array([ALIVE, ENDED, SILENT], np.int8)  # by kind of event
_SHOWN = {name: filler for name, filler in FILLERS.items() if name != "seen_ts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some fixes that expressions are asked about; n of them, answers in their order.

    Attributes:
        values: what evaluates expressions, each once for a fix.
        place: int64[n], where the fixes stand (see `Present`).
        object: int64[n], whose they are.
    """

    values: Values
    place: np.ndarray
    object: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    def numbers(self, text: str) -> np.ndarray:
        """The values of an expression as float64[n], NaN for null."""
        return self.values.numbers(text, self.place)

    def texts(self, text: str) -> tuple[np.ndarray, pa.Array]:
        """The values of an expression as texts: int64[n], places among the texts that come with it, -1 for null."""
        return self.values.texts(text, self.place)

    def partners(self, text: str, numbering: Numbering, *, null: str) -> np.ndarray:
        """The values of an expression as numbers of partners; int64[n].

        Args:
            text: the expression.
            numbering: gives numbers; a text that was never a partner gets one.
            null: the text that stands for fixes without a value.
        """
        return self.values.partners(text, self.place, numbering, null=null)

    def groups(self, text: str, numbering: Numbering) -> np.ndarray:
        """The groups that an expression makes, as numbers of partners; int64[n]. The group of null is named NULL."""
        return self.values.partners(
            text, self.place, numbering, null="NULL", form="group"
        )

    def known(self, text: str) -> np.ndarray:
        """Where an expression is not null; bool[n]."""
        return self.values.known(text, self.place)


class Present:
    """The last fixes of all objects that a run knows, by object: first those from before the run.

    They are changed in place by `advance`, from tick to tick; see `Course` for many ticks at once.

    Args:
        fixes: the last fixes before the run.
        turn: the run, whose objects may be more.

    Attributes:
        ts: int64[n] microseconds; `x`, `y`, `status`, `before_ts`, `before_x`, `before_y`, `earlier_ts`, `earlier_x`,
            `earlier_y` are as in `LastFixes`.
        alive: bool[n], where `status` is ALIVE.
        place: int64[n], where the last fix of each object stands: its number for one from before the run, after those
            the events of the run; -1 without one.
        values: evaluates expressions over the fixes at such places.
        lookups: finds numbers of focal objects, targets and partners.
    """

    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    status: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray
    earlier_ts: np.ndarray
    earlier_x: np.ndarray
    earlier_y: np.ndarray

    def __init__(self, fixes: LastFixes, turn: Turn) -> None:
        known, total = len(fixes), len(turn.objects)
        for name, filler in _SHOWN.items():
            column = getattr(fixes, name)
            setattr(
                self,
                name,
                np.concatenate([column, np.full(total - known, filler, column.dtype)]),
            )
        self.alive = self.status == ALIVE
        self.place = np.where(np.arange(total) < known, np.arange(total), -1)
        self._turn, self._known, self._status = turn, known, _STATUS[turn.events.kind]
        self._after = turn.readings
        # Put together when somebody asks: most runs evaluate no expression.
        self._attributes = Joined(
            fixes.attributes, known, turn.readings.attributes, len(turn.events)
        )
        self.lookups = Lookups(turn.objects, turn.numbering)
        self.values = Values(
            readings.of_all(fixes),
            self._after,
            self._attributes,
            turn.objects,
            space=turn.settings.space,
        )

    def __len__(self) -> int:
        return len(self.ts)

    def advance(self, events: np.ndarray) -> None:
        """Takes the last fixes on to after some events of the run.

        Args:
            events: int64, places of events, sorted by object and effect. Of an object the last one counts.
        """
        objects = self._turn.events.object[events]
        last = events[is_last(objects)]
        who = self._turn.events.object[last]
        for name in READING:
            getattr(self, name)[who] = getattr(self._after, name)[last]
        self.status[who] = self._status[last]
        self.alive[who] = self._status[last] == ALIVE
        self.place[who] = self._known + last

    @property
    def attributes(self) -> Attributes:
        """The attributes of the fixes at all places."""
        return self._attributes

    def columns_after(
        self, objects: np.ndarray, events: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The last fixes of some objects, each after an event of the run; by name of the column, and their `place`.

        Args:
            objects: int64[m].
            events: int64[m], the place of the event; -1: the last fix as it is now.
        """
        old = np.flatnonzero(events < 0)
        columns = {name: getattr(self._after, name) for name in READING} | {
            "status": self._status
        }
        out = {}
        for name, column in columns.items():
            values = (
                column[events] if len(column) else np.empty(len(events), column.dtype)
            )
            # An event of -1 has read any row: here comes the last fix as it is now.
            values[old] = getattr(self, name)[objects[old]]
            out[name] = values
        place = self._known + events
        place[old] = self.place[objects[old]]
        return {**out, "place": place}

    def at_ticks(self, objects: np.ndarray, _ticks: np.ndarray) -> np.ndarray:
        """The row of each object, whatever tick: it is the one up to which the last fixes are known."""
        return objects

    def readings(self, objects: np.ndarray) -> Readings:
        """The last readings of some objects, for expressions; a row for each of int64[n] objects."""
        columns = {name: getattr(self, name)[objects] for name in READING}
        return Readings(
            object=objects,
            attributes=taken(self._attributes, self.place[objects]),
            **columns,
        )

    def shapes_of(self, objects: np.ndarray) -> np.ndarray:
        """The geometries of some objects, where elements are shapes; object[n]."""
        return shapes_of(self.readings(objects))

    def sample(self, objects: np.ndarray) -> Sample:
        """The last fixes of some objects (int64[n]), to be asked about."""
        return Sample(values=self.values, place=self.place[objects], object=objects)

    def sample_of_events(self, events: np.ndarray) -> Sample:
        """The fixes of some events of the run (int64[n], their places), to be asked about."""
        return Sample(
            values=self.values,
            place=self._known + events,
            object=self._turn.events.object[events],
        )

    def masks(
        self, texts: Sequence[str], objects: np.ndarray, *, among: int
    ) -> np.ndarray:
        """Where each expression is true of the last fixes of some objects; bool[e, n].

        Args:
            texts: e expressions as canonical SQL.
            objects: int64[n].
            among: how many expressions are asked of these fixes in all (see `Values`).
        """
        return self.values.masks(texts, self.place[objects], among=among)
