"""The last reading of every object, and the one before it (GPAC section 3.1, SPEC G3)."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.state.codec import flat_attributes
from st_common.operators.state.taken import Attributes, taken

__all__ = [
    "ALIVE",
    "ENDED",
    "FILLERS",
    "NEVER",
    "READING",
    "SILENT",
    "Attributes",
    "LastFixes",
]

NEVER = np.iinfo(np.int64).min  # event time of an object or a clock that saw no fix
ENDED, ALIVE, SILENT = (
    0,
    1,
    2,
)  # status of an object: gone or never seen, alive, silent for too long

FILLERS: dict[str, float] = {
    "ts": NEVER,
    "x": np.nan,
    "y": np.nan,
    "status": ENDED,
    "before_ts": NEVER,
    "before_x": np.nan,
    "before_y": np.nan,
    "earlier_ts": NEVER,
    "earlier_x": np.nan,
    "earlier_y": np.nan,
    "seen_ts": NEVER,
}
READING = tuple(name for name in FILLERS if name not in ("status", "seen_ts"))
"""The columns that are of a reading: it, the one before, and the one before that."""


def _grown(values: np.ndarray, filler: float, more: int) -> np.ndarray:
    """A copy of a column, with some more rows of what stands for nothing."""
    if not more:
        return values.copy()
    return np.concatenate([values, np.full(more, filler, values.dtype)])


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFixes:
    """Columns with a row per object; its number is its place.

    Attributes:
        ts: int64, event time of the last used fix in microseconds, NEVER without one.
        x: float64, where that was; NaN after the object left. `y` likewise.
        status: int8: ENDED (gone, or never seen), ALIVE or SILENT.
        before_ts: int64, event time of the reading before it in the same stay, NEVER without one.
        before_x: float64, where that was, NaN without one; of an object that ended it is the place of its last fix,
            with no time. `before_y` likewise.
        earlier_ts: int64, event time of the reading before that one in the same stay, NEVER without one.
        earlier_x: float64, where that was, NaN without one. `earlier_y` likewise.
        seen_ts: int64, event time of the newest fix that was seen, later than `ts` when that one was filtered (SPEC
            X11).
        attributes: those of the last used fix: Arrow arrays that may hold nulls.
    """

    ts: np.ndarray = field(default_factory=_ints)
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    y: np.ndarray = field(default_factory=lambda: np.empty(0))
    status: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    before_ts: np.ndarray = field(default_factory=_ints)
    before_x: np.ndarray = field(default_factory=lambda: np.empty(0))
    before_y: np.ndarray = field(default_factory=lambda: np.empty(0))
    earlier_ts: np.ndarray = field(default_factory=_ints)
    earlier_x: np.ndarray = field(default_factory=lambda: np.empty(0))
    earlier_y: np.ndarray = field(default_factory=lambda: np.empty(0))
    seen_ts: np.ndarray = field(default_factory=_ints)
    attributes: Attributes = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ts)

    def columns(self) -> dict[str, np.ndarray]:
        """The columns that are NumPy arrays, by name."""
        return {name: getattr(self, name) for name in FILLERS}

    def to_arrays(self) -> dict[str, Any]:
        """All columns for a blob, by names that begin with `fixes/`."""
        attributes = {
            f"fixes/{name}": values for name, values in self.attributes.items()
        }
        columns = {f"fixes/{name}": values for name, values in self.columns().items()}
        return columns | flat_attributes(attributes)

    def with_rows(
        self, objects: np.ndarray, rows: "LastFixes", *, total: int
    ) -> "LastFixes":
        """These fixes with other rows for some objects.

        Args:
            objects: int64[k], ascending, each once.
            rows: k rows, the last fix of each of these.
            total: how many objects there are then; those that have no row yet get that of an object never seen.
        """
        if len(objects) == total:  # everybody reported: nothing of before is left
            return self._replaced(rows)
        new = total - len(self)
        columns = {}
        for name, filler in FILLERS.items():
            grown = _grown(getattr(self, name), filler, new)
            grown[objects] = getattr(rows, name)
            columns[name] = grown
        return LastFixes(
            **columns, attributes=self._attributes_with(objects, rows.attributes, total)
        )

    def _replaced(self, rows: "LastFixes") -> "LastFixes":
        """The rows of all objects in the place of these; attributes that only these have are null."""
        attributes = {
            name: rows.attributes[name]
            if name in rows.attributes
            else pa.nulls(len(rows), self.attributes[name].type)
            for name in {**self.attributes, **rows.attributes}
        }
        columns = {
            name: getattr(rows, name).astype(values.dtype, copy=False)
            for name, values in self.columns().items()
        }
        return LastFixes(**columns, attributes=attributes)

    def with_seen(self, objects: np.ndarray, seen_ts: np.ndarray) -> "LastFixes":
        """These fixes, where of some objects (int64[k]) a newer one was seen than the last used, at `seen_ts`."""
        if not len(objects):
            return self
        seen = self.seen_ts.copy()
        seen[objects] = seen_ts
        return replace(self, seen_ts=seen)

    def _attributes_with(
        self, objects: np.ndarray, rows: Attributes, total: int
    ) -> Attributes:
        if not rows and (not self.attributes or total == len(self)):
            return self.attributes
        # Arrow arrays cannot be written in place: old and new rows stand one behind the other, and are taken in order.
        place = np.arange(total)
        place[objects] = total + np.arange(len(objects))
        index = pa.array(place)
        out = {}
        for name in {**self.attributes, **rows}:
            kind = (rows if name in rows else self.attributes)[name].type
            mine = self.attributes.get(name, pa.nulls(len(self), kind)).cast(
                kind, safe=False
            )
            fresh = rows.get(name, pa.nulls(len(objects), kind))
            out[name] = pa.concat_arrays(
                [mine, pa.nulls(total - len(mine), kind), fresh]
            ).take(index)
        return out

    @staticmethod
    def nothing_before() -> dict[str, Any]:
        """The columns of the two readings before, without a row."""
        return {
            f"{which}_{name}": _ints() if name == "ts" else np.empty(0)
            for which in ("before", "earlier")
            for name in ("ts", "x", "y")
        }

    def before(self, objects: np.ndarray) -> dict[str, Any]:
        """The columns of the two readings before, of objects that report now: their last fix, if their stay goes on.

        Args:
            objects: int64[k]; unknown ones (numbers from `len(self)` on) too.

        Returns:
            `before_ts`, `before_x`, `before_y`, `earlier_ts` and so on; NEVER and NaN for who is unknown or not there.
        """
        # An unknown object reads the last row here, and is left out by `stays`.
        known = np.minimum(objects, len(self) - 1)
        stays = (
            (objects < len(self)) & (self.status[known] == ALIVE)
            if len(self)
            else np.zeros(len(objects), bool)
        )
        out = {}
        for name, filler in (("ts", NEVER), ("x", np.nan), ("y", np.nan)):
            for now, then in ((name, "before"), (f"before_{name}", "earlier")):
                values = getattr(self, now)
                column = np.full(len(objects), filler, values.dtype)
                column[stays] = values[known[stays]]
                out[f"{then}_{name}"] = column
        return out

    def take(self, objects: np.ndarray) -> "LastFixes":
        """The rows of some objects (int64[k], or a mask)."""
        columns = {name: values[objects] for name, values in self.columns().items()}
        return LastFixes(**columns, attributes=taken(self.attributes, objects))
