"""Strings as dense numbers: ids of objects, ids of features."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from st_common.errors import StateError


def hashes_of(ids: pa.Array) -> np.ndarray:
    """A uint64 per id, the same in every process and for ever: it finds an object's number and decides its shard."""
    return pd.util.hash_array(ids.to_numpy(zero_copy_only=False).astype(object), categorize=False)


@dataclass(frozen=True)
class Interner:
    """Ids that have a number, which is their place in `ids`; only ever appended to."""

    ids: pa.Array
    hashes: np.ndarray

    @staticmethod
    def empty() -> "Interner":
        """An interner that knows no id."""
        return Interner(pa.array([], pa.string()), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def _index(self) -> "pd.Index[int]":
        index: pd.Index[int] = pd.Index(self.hashes)
        return index

    def find(self, hashes: np.ndarray, ids: pa.Array) -> np.ndarray:
        """The number of each id, -1 where it has none; int64[n].

        Raises:
            StateError: two ids share one hash. It is looked for at every call, so no object is ever taken for another.
        """
        found = self._index.get_indexer(pd.Index(hashes)).astype(np.int64)
        known = found >= 0
        if known.any():
            mine, theirs = self.ids.take(pa.array(found[known])), ids.filter(pa.array(known))
            if not pc.all(pc.equal(mine, theirs)).as_py():
                raise StateError("two object ids share one 64-bit hash", hint="rename one of them")
        return found

    def number_of(self, name: str) -> int:
        """The number of one id, -1 when it has none."""
        ids = pa.array([name], pa.string())
        return int(self.find(hashes_of(ids), ids)[0])

    def with_new(self, hashes: np.ndarray, ids: pa.Array) -> "Interner":
        """This interner with more ids, numbered on from `len(self)`; none of them may be known already."""
        if not len(hashes):
            return self
        return Interner(pa.concat_arrays([self.ids, ids.cast(pa.string())]), np.concatenate([self.hashes, hashes]))
