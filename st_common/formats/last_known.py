"""What was said last of an object, for each record of many objects that come interleaved."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from st_common.formats.numbers import mask
from st_common.formats.said_before import NOTHING, SaidBefore, Value
from st_common.formats.spans import Ints, Mask


class LastKnown:
    """Records in the order in which they came, by the object that each is about.

    Args:
        objects: an id for each record, any array that Arrow can make a dictionary of; a record whose id is null knows
            of no other.
        before: what was said before all of them.

    Example:
        objects   a  b  a  b  a
        said      x  .  .  y  .   ->   rows()   0 -1  0  3  0
    """

    def __init__(self, objects: pa.Array, before: SaidBefore = NOTHING) -> None:
        self._before = before
        self._objects = pa.concat_arrays([before.ids(objects.type), objects])
        codes = self._objects.dictionary_encode().indices
        self._is_known = ~np.asarray(codes.is_null().to_numpy(zero_copy_only=False))
        keys = codes.fill_null(-1).to_numpy()
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        self._first = np.searchsorted(ordered, ordered)

    def rows(self, said: Mask) -> Ints:
        """For each record the row of the last one of its object, itself included, that says something; -1 for none.

        What was said before stands in front of the records, in a row for each object.
        """
        places = np.arange(len(self._order))
        latest = np.where((said & self._is_known)[self._order], places, -1)
        latest = np.maximum.accumulate(latest) if len(latest) else latest
        rows = np.where(latest >= self._first, self._order[latest], -1)
        back = np.empty(len(rows), np.int64)
        back[self._order] = rows
        return back

    def values(self, name: str, values: pa.Array) -> pa.Array:
        """For each record the value that its object said last, null for none.

        Args:
            name: of the column.
            values: what each record says itself; null where it says nothing.
        """
        known = self._known(name, values)
        return known.slice(len(known) - len(values))

    def last(
        self, columns: Mapping[str, pa.Array]
    ) -> Mapping[str, Mapping[str, Value]]:
        """By object what it has said at the end, by the name of the column; without objects that have said nothing.

        Args:
            columns: by name what each record says itself.
        """
        if not columns:
            return {}
        at_end = pa.array(self._ends())
        names = self._objects.take(at_end).cast(pa.string()).to_pylist()
        known = [
            self._known(name, values).take(at_end).to_pylist()
            for name, values in columns.items()
        ]
        said = (_those_said(columns, values) for values in zip(*known, strict=True))
        return {name: each for name, each in zip(names, said, strict=True) if each}

    def _known(self, name: str, values: pa.Array) -> pa.Array:
        before = self._before.column(name, values.type)
        every = pa.concat_arrays([before, values])
        rows = self.rows(mask(every.is_valid()))
        return every.take(pa.array(rows, mask=rows < 0))

    def _ends(self) -> Ints:
        """The row of each object's last record."""
        ends = np.append(np.diff(self._first) > 0, True)[: len(self._first)]
        rows = self._order[ends]
        known: Ints = rows[self._is_known[rows]]
        return known


def _those_said(
    columns: Mapping[str, pa.Array], values: tuple[Value | None, ...]
) -> dict[str, Value]:
    named = zip(columns, values, strict=True)
    return {name: value for name, value in named if value is not None}
