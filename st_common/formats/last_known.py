"""What was said last of an object, for each record of many objects that come interleaved."""

import numpy as np
import pyarrow as pa

from st_common.formats.spans import Ints, Mask


class LastKnown:
    """Records in the order in which they came, by the object that each is about.

    Args:
        objects: an id for each record, any array that Arrow can make a dictionary of; a record whose id is null knows
            of no other.

    Example:
        objects   a  b  a  b  a
        said      x  .  .  y  .   ->   rows()   0 -1  0  3  0
    """

    def __init__(self, objects: pa.Array) -> None:
        codes = objects.dictionary_encode().indices
        self._is_known = ~np.asarray(codes.is_null().to_numpy(zero_copy_only=False))
        keys = codes.fill_null(-1).to_numpy()
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        self._first = np.searchsorted(ordered, ordered)

    def rows(self, said: Mask) -> Ints:
        """For each record the row of the last one of its object, itself included, that says something; -1 for none."""
        places = np.arange(len(self._order))
        latest = np.where((said & self._is_known)[self._order], places, -1)
        latest = np.maximum.accumulate(latest) if len(latest) else latest
        rows = np.where(latest >= self._first, self._order[latest], -1)
        back = np.empty(len(rows), np.int64)
        back[self._order] = rows
        return back

    def values(self, values: pa.Array, said: Mask) -> pa.Array:
        """For each record the value that its object said last; null for none."""
        rows = self.rows(said)
        return values.take(pa.array(rows, mask=rows < 0))
