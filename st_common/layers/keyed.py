"""Features by a key: the fid, the kind or a tag of stored things (SPEC P3, G9: a join of a stream with a table)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

_FEWER = 16
"""A search for each text costs less than a table of all keys where there are so many times fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIndex:
    """Features by a key, as a table of starts; features without a key are left out.

        keys of features 0 .. 3: b, a, null, b   ->   keys a, b; start 0, 1, 3; features 1, 0, 3

    Attributes:
        keys: string[k], distinct and ascending.
        texts: object[k], the same, for a search.
        start: int64[k + 1], where the features of each key begin.
        features: int64, the numbers of features, key by key, ascending in each.
    """

    keys: pa.Array
    texts: npt.NDArray[np.object_]
    start: Ints
    features: Ints

    @staticmethod
    def of(values: pa.Array) -> "KeyIndex":
        """The index of texts, one per feature, null for none."""
        known = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        encoded = values.take(pa.array(known)).cast(pa.string()).dictionary_encode()
        # By their bytes, which is the order of Python's texts, too.
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        code = rank[encoded.indices.to_numpy(zero_copy_only=False)]
        start = np.zeros(len(order) + 1, np.int64)
        np.cumsum(np.bincount(code, minlength=len(order)), out=start[1:])
        keys = encoded.dictionary.take(pa.array(order))
        return KeyIndex(
            keys=keys,
            texts=keys.to_numpy(zero_copy_only=False),
            start=start,
            features=known[np.argsort(code, kind="stable")],
        )

    def find(self, values: pa.Array) -> tuple[Ints, Ints]:
        """Pairs of a value and a feature with that key.

            a, b, null, c in the index above   ->   places 0, 1, 1 and features 1, 0, 3

        Args:
            values: n texts; null matches nothing.

        Returns:
            The places of the values and the numbers of the features, int64, sorted by both.
        """
        # Each different value is looked for once.
        encoded = values.cast(pa.string()).dictionary_encode()
        of_value = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        code = np.append(self._codes(encoded.dictionary), -1)[of_value]
        place = np.flatnonzero(code >= 0)
        code = code[place]
        count = self.start[code + 1] - self.start[code]
        offset = np.arange(int(count.sum())) - np.repeat(
            np.cumsum(count) - count, count
        )
        return np.repeat(place, count), self.features[
            np.repeat(self.start[code], count) + offset
        ]

    def _codes(self, asked: pa.Array) -> Ints:
        """The place of each text among the keys, -1 where it is none."""
        if len(asked) * _FEWER > len(self.keys):
            places = pc.fill_null(pc.index_in(asked, self.keys), -1)
            return np.asarray(places.to_numpy(zero_copy_only=False), np.int64)
        texts = asked.to_numpy(zero_copy_only=False)
        at = np.searchsorted(self.texts, texts)
        is_key = np.zeros(len(at), np.bool_)
        within = np.flatnonzero(at < len(self.texts))
        is_key[within] = self.texts[at[within]] == texts[within]
        return np.where(is_key, at, -1)
