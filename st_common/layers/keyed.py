"""Features by a key: the fid, the kind or a tag of stored things (SPEC P3, G9: a join of a stream with a table)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIndex:
    """The features in the order of their keys; features without one are left out."""

    keys: pa.Array
    start: Ints
    features: Ints

    @staticmethod
    def of(values: pa.Array) -> "KeyIndex":
        """The index of texts, one per feature, null for none."""
        known = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        encoded = values.take(pa.array(known)).cast(pa.string()).dictionary_encode()
        code = encoded.indices.to_numpy(zero_copy_only=False)
        start = np.zeros(len(encoded.dictionary) + 1, np.int64)
        np.cumsum(np.bincount(code, minlength=len(encoded.dictionary)), out=start[1:])
        return KeyIndex(
            keys=encoded.dictionary,
            start=start,
            features=known[np.argsort(code, kind="stable")],
        )

    def find(self, values: pa.Array) -> tuple[Ints, Ints]:
        """Pairs of a value (its place) and a feature with that key, sorted by both; null has none."""
        key = pc.index_in(values.cast(pa.string()), self.keys, skip_nulls=True)
        place = np.flatnonzero(pc.is_valid(key).to_numpy(zero_copy_only=False))
        code = key.take(pa.array(place)).to_numpy(zero_copy_only=False).astype(np.int64)
        count = self.start[code + 1] - self.start[code]
        offset = np.arange(int(count.sum())) - np.repeat(
            np.cumsum(count) - count, count
        )
        return np.repeat(place, count), self.features[
            np.repeat(self.start[code], count) + offset
        ]
