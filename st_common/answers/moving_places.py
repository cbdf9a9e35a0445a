"""Where each object of a stream is, how fast and in which direction, as arrays that new fixes move on.

Objects are numbered in the order in which they came. Each step of time here has a number, `serial`; whoever asks for
what moved behind one that he had gets those objects alone:

    serial      1          2        3
    moved       a b c      b        d
    behind 1               b        d       behind 3: nothing
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import Space
from st_common.runs import is_first, is_last

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Names = npt.NDArray[np.object_]

_NEVER = np.iinfo(np.int64).min
_LEAST = 1024
_FILLED: dict[str, tuple[type, float]] = {
    "event_us": (np.int64, _NEVER),
    "heard_us": (np.int64, _NEVER),
    "position": (np.int64, -1),
    "serial": (np.int64, 0),
    "x": (np.float64, np.nan),
    "y": (np.float64, np.nan),
    "heading": (np.float32, np.nan),
    "speed": (np.float32, np.nan),
    "is_gone": (np.bool_, False),
    "is_hidden": (np.bool_, False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Objects that moved, and where they are now; arrays of one length n.

    Attributes:
        index: uint32[n], their numbers.
        event_us: int64[n], the event times of their last fixes, us UTC.
        x: float64[n], in the stream's coordinates; NaN of those that are gone or silent.
        y: likewise.
        heading: float32[n], degrees from north to the east; NaN where it is not known.
        speed: float32[n], metres per second, in a plane that is no CRS its units per second; NaN likewise.
    """

    index: npt.NDArray[np.uint32]
    event_us: Ints
    x: Floats
    y: Floats
    heading: npt.NDArray[np.float32]
    speed: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixes:
    """Fixes as arrays, `of` the numbers of their objects."""

    of: Ints
    position: Ints
    event_us: Ints
    x: Floats
    y: Floats
    is_gone: Bools

    def take(self, which: Ints | Bools) -> "_Fixes":
        return _Fixes(
            of=self.of[which],
            position=self.position[which],
            event_us=self.event_us[which],
            x=self.x[which],
            y=self.y[which],
            is_gone=self.is_gone[which],
        )


class MovingPlaces:
    """The last fix of every object, by event time; of fixes of one object and time the first in the log counts.

    Args:
        space: what coordinates mean.
        unit_m: how many metres a unit of a plane is.
        silence_us: an object that was not heard of for so long is hidden; None: never.
    """

    def __init__(
        self, space: Space, *, unit_m: float = 1.0, silence_us: int | None = None
    ) -> None:
        self._space, self._unit_m, self._silence_us = space, unit_m, silence_us
        self._index = pd.Index([], dtype=object)
        self._columns: dict[str, npt.NDArray[Any]] = {
            name: np.full(_LEAST, fill, kind) for name, (kind, fill) in _FILLED.items()
        }
        self.serial = 0
        self.newest_us: int | None = None
        self._now_us = _NEVER

    def __len__(self) -> int:
        return len(self._index)

    @property
    def shown(self) -> int:
        """How many objects are there: neither gone nor silent."""
        return len(self) - int(np.count_nonzero(self._of("is_hidden")))

    @property
    def names(self) -> Names:
        """The names of the objects, by their numbers."""
        return np.asarray(self._index, object)

    def number_of(self, name: str) -> int | None:
        """The number of an object; None where it was never seen."""
        number = int(self._index.get_indexer(pd.Index([name], dtype=object))[0])
        return None if number < 0 else number

    def place_of(self, number: int) -> tuple[float, float] | None:
        """X and y of an object; None where it is hidden."""
        columns = self._columns
        if columns["is_hidden"][number]:
            return None
        return float(columns["x"][number]), float(columns["y"][number])

    def last_of(self, number: int) -> tuple[int, int]:
        """Where in the log the last fix of an object stands, and its event time, us UTC."""
        columns = self._columns
        return int(columns["position"][number]), int(columns["event_us"][number])

    def positions_of(self, numbers: npt.NDArray[np.uint32]) -> Ints:
        """Where in the log the last fixes of some objects stand; int64, in their order."""
        positions: Ints = self._columns["position"][numbers]
        return positions

    def take(self, rows: pa.Table, accepted: Bools | None = None) -> None:
        """Moves objects on to fixes that stand later in the log than those before.

        Args:
            rows: columns position, event_ts (int64 us, or a timestamp), x, y, gone and object.
            accepted: bool[n], False of fixes that only say that an object is there; None: all count.
        """
        if not len(rows):
            return
        self.serial += 1
        fixes = self._fixes(rows)
        np.maximum.at(self._of("heard_us"), fixes.of, fixes.event_us)
        fixes = _ordered(fixes if accepted is None else fixes.take(accepted))
        fixes = fixes.take(fixes.event_us > self._of("event_us")[fixes.of])
        if len(fixes.of):
            self._advance(fixes)
            newest_us = int(fixes.event_us.max())
            self.newest_us = max(newest_us, self.newest_us or newest_us)
            self._now_us = max(newest_us, self._now_us)
        self._hide()

    def pass_to(self, clock_us: int) -> None:
        """Hides who is silent at an event time that has come without a fix, us UTC; one before now changes nothing."""
        if clock_us <= self._now_us:
            return
        self._now_us = clock_us
        self.serial += 1
        self._hide()

    def _of(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name][: len(self._index)]

    def _fixes(self, rows: pa.Table) -> _Fixes:
        names = pc.dictionary_encode(rows["object"].cast(pa.string())).combine_chunks()
        numbers = self._numbers(np.asarray(names.dictionary.to_pandas(), object))
        return _Fixes(
            of=numbers[names.indices.to_numpy()],
            position=rows["position"].to_numpy(),
            event_us=rows["event_ts"].cast(pa.int64()).to_numpy(),
            x=rows["x"].to_numpy(),
            y=rows["y"].to_numpy(),
            is_gone=rows["gone"].to_numpy(),
        )

    def _numbers(self, names: Names) -> Ints:
        """The numbers of some names, each given once; new ones get the next."""
        numbers = self._index.get_indexer(pd.Index(names, dtype=object)).astype(
            np.int64
        )
        new = numbers < 0
        if new.any():
            numbers[new] = len(self._index) + np.arange(int(new.sum()))
            self._index = self._index.append(pd.Index(names[new], dtype=object))
            self._grow()
        return numbers

    def _grow(self) -> None:
        room = len(self._columns["x"])
        if len(self._index) <= room:
            return
        more = max(len(self._index), 2 * room) - room
        for name, (kind, fill) in _FILLED.items():
            self._columns[name] = np.concatenate(
                [self._columns[name], np.full(more, fill, kind)]
            )

    def _advance(self, fixes: _Fixes) -> None:
        """Puts each object at the last of its fixes, and finds how it came there from the one before."""
        ends = np.flatnonzero(is_last(fixes.of))
        last, before = fixes.take(ends), np.maximum(ends - 1, 0)
        has_before = ~is_first(fixes.of)[ends]
        columns = self._columns
        before_us = np.where(
            has_before, fixes.event_us[before], columns["event_us"][last.of]
        )
        x0 = np.where(has_before, fixes.x[before], columns["x"][last.of])
        y0 = np.where(has_before, fixes.y[before], columns["y"][last.of])
        self._turn(last, before_us, x0, y0)
        for name in ("event_us", "position", "x", "y", "is_gone"):
            columns[name][last.of] = getattr(last, name)
        columns["serial"][last.of] = self.serial

    def _turn(self, last: _Fixes, before_us: Ints, x0: Floats, y0: Floats) -> None:
        """Speed and direction; who stands still goes on to look where he looked."""
        known = before_us != _NEVER
        passed_s = np.where(known, last.event_us - before_us, 1) / 1e6
        per_x, per_y = self._space.scale((last.y + y0) / 2)
        along_x = self._space.shortest(last.x - x0) * per_x * self._unit_m
        along_y = (last.y - y0) * per_y * self._unit_m
        way = np.hypot(along_x, along_y)
        heading = np.degrees(np.arctan2(along_x, along_y)) % 360.0
        columns = self._columns
        held = columns["heading"][last.of]
        columns["heading"][last.of] = np.where(known & (way > 0), heading, held)
        columns["speed"][last.of] = np.where(known, way / passed_s, np.nan)

    def _hide(self) -> None:
        """Hides who is gone or silent, shows who is back, and notes both as moves."""
        hidden = self._of("is_gone").copy()
        if self._silence_us is not None and self._now_us != _NEVER:
            hidden |= self._of("heard_us") < self._now_us - self._silence_us
        turned = hidden != self._of("is_hidden")
        self._of("serial")[turned] = self.serial
        self._of("is_hidden")[:] = hidden

    def moved(self, since: int = -1) -> Moved:
        """The objects that moved behind a serial number, in the order of their numbers; copies.

        Args:
            since: -1: all that can be seen.
        """
        hidden = self._of("is_hidden")
        wanted = ~hidden if since < 0 else self._of("serial") > since
        index = np.flatnonzero(wanted)
        lost = hidden[index]
        return Moved(
            index=index.astype(np.uint32),
            event_us=self._of("event_us")[index],
            x=np.where(lost, np.nan, self._of("x")[index]),
            y=np.where(lost, np.nan, self._of("y")[index]),
            heading=self._of("heading")[index],
            speed=self._of("speed")[index],
        )


def _ordered(fixes: _Fixes) -> _Fixes:
    """Fixes by object and event time, of those of one time the first in the log."""
    fixes = fixes.take(np.lexsort((fixes.position, fixes.event_us, fixes.of)))
    return fixes.take(is_first(fixes.of, fixes.event_us))
