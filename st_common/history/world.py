"""The last fix of every object."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.runs import firsts

_STAMP = pa.timestamp("us", tz="UTC")
LAST = pa.schema(
    [
        ("position", pa.int64()),
        ("event_ts", _STAMP),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("gone", pa.bool_()),
        ("object", pa.string()),
    ]
)
END = np.iinfo(np.int64).max
"""A place behind all others."""

COLUMNS = tuple(name for name in LAST.names if name != "position")


def last_fixes(*parts: pa.Table) -> pa.Table:
    """Of all fixes the last of each object by event time, sorted by object.

    Of fixes of one object and time the first in the log counts, as everywhere. What says that an object is gone is a
    fix like others: the object stays in the result, with `gone`.

    Args:
        *parts: tables with the columns of `LAST`, in any order; fixes may overlap.

    Returns:
        Rows of `LAST`, one per object.
    """
    return LastFixes.of(LAST.empty_table(), *parts).before(END)


@dataclass
class LastFixes:
    """The last fix of every object, as of one place in the log after another.

    Attributes:
        rows: fixes in any order; those before all others come first.
        object: int64[n], the number of the object of each: they are numbered in the order of their names.
        order: int64[m], the others, in the order of the log.
        position: int64[m], their places.
        last: int64[objects], the row of the last fix of each; -1 where none has come yet.
    """

    rows: pa.Table
    object: np.ndarray
    event_us: np.ndarray
    order: np.ndarray
    position: np.ndarray
    last: np.ndarray
    _at: int = 0

    @staticmethod
    def of(before: pa.Table, *after: pa.Table) -> "LastFixes":
        """The last fixes before a place, to go on with the fixes behind it.

        Args:
            before: rows of `LAST`, one per object, in any order.
            *after: fixes with the columns of `LAST`, in any order.
        """
        parts = [part.select(LAST.names).cast(LAST) for part in after if len(part)]
        rows = pa.concat_tables([before, *parts]).combine_chunks()
        object_, count = _numbered(rows["object"])
        last = np.full(count, -1)
        last[object_[: len(before)]] = np.arange(len(before))
        position = rows["position"].to_numpy()[len(before) :]
        order = np.argsort(position, kind="stable")
        event_us = rows["event_ts"].cast(pa.int64()).to_numpy()
        return LastFixes(
            rows, object_, event_us, order + len(before), position[order], last
        )

    def before(self, place: int) -> pa.Table:
        """The last fix of each object before a place, which is not before that of the last call.

        Returns:
            Rows of `LAST`, one per object that has come, sorted by object.
        """
        start, self._at = self._at, int(np.searchsorted(self.position, place))
        rows = self.order[start : self._at]
        # The sort is stable: of fixes of one time the first in the log stays in front.
        rows = rows[np.lexsort((-self.event_us[rows], self.object[rows]))]
        rows = rows[firsts(self.object[rows])]
        known = self.last[self.object[rows]]
        newer = (known < 0) | (self.event_us[rows] > self.event_us[known])
        self.last[self.object[rows[newer]]] = rows[newer]
        return self.rows.take(pa.array(self.last[self.last >= 0]))


def _numbered(names: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """The number of each name, in the order of the names, and how many there are."""
    coded = pc.dictionary_encode(names).combine_chunks()
    rank = pc.rank(coded.dictionary).to_numpy().astype(np.int64) - 1
    return rank[coded.indices.to_numpy()], len(rank)
