"""Features by a key: the fid, the kind or a tag of stored things (SPEC P3, G9: a join of a stream with a table)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIndex:
    """Features by a key, as a table of starts; features without a key are left out.

        keys of features 0 .. 3: a, b, null, a   ->   keys a, b; start 0, 2, 3; features 0, 3, 1

    Attributes:
        keys: string[k], distinct.
        start: int64[k + 1], where the features of each key begin.
        features: int64, the numbers of features, key by key, ascending in each.
    """

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
        """Pairs of a value and a feature with that key.

            b, a, null, c in the index above   ->   places 0, 1, 1 and features 1, 0, 3

        Args:
            values: n texts; null matches nothing.

        Returns:
            The places of the values and the numbers of the features, int64, sorted by both.
        """
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
