"""Strings as dense numbers: ids of objects, ids of features."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.stream import PUBLIC_ID_KEY
from st_common.operators.arrays.keys import is_in, unique

_LEAST_LARGE = 4096


def hashes_of(ids: pa.Array, key: str = PUBLIC_ID_KEY) -> np.ndarray:
    """A hash of each id; uint64[n]. It finds an object's number and decides its shard.

    Args:
        ids: string[n]. Two ids may share a hash: see `Interner.find`.
        key: 16 ASCII characters; the same key gives the same hashes in every process, for ever (SipHash). A stream's
            own key keeps others from choosing ids that all fall to one shard.
    """
    return _siphash(ids.to_numpy(zero_copy_only=False).astype(object), key)


def shards_of(hashes: np.ndarray, shards: int) -> np.ndarray:
    """The shard of what has each hash; int64[n]. It is the same in every process, and for ever.

    Args:
        hashes: uint64[n], see `hashes_of`.
        shards: how many shards there are.
    """
    return (hashes % np.uint64(shards)).astype(np.int64)


def with_those_that_share(chosen: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The chosen ones (bool[n]) and all others whose hash (uint64[n]) one of them has; bool[n].

    Shards ask each other for hashes: what they ask for must come, stay and go together.
    """
    wanted = unique(hashes[chosen])
    left = np.flatnonzero(~chosen)
    together: np.ndarray = chosen.copy()
    together[left] = is_in(hashes[left], wanted)
    return together


def _siphash(texts: np.ndarray, key: str) -> np.ndarray:
    return pd.util.hash_array(texts, hash_key=key, categorize=False)


@dataclass(frozen=True)
class Sought:
    """Ids that are looked for again and again, as those of focal objects; they are hashed once for each key."""

    ids: pa.Array
    _hashes: dict[str, np.ndarray] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.ids)

    def hashes(self, key: str) -> np.ndarray:
        """The hash of each id under a key; uint64[n], see `hashes_of`."""
        if key not in self._hashes:
            self._hashes[key] = hashes_of(self.ids, key)
        return self._hashes[key]


@dataclass(frozen=True, slots=True)
class _Places:
    """The numbers from `start` to `end` by their hashes. Of those that share one the first is found.

    `repeated` are the others, and `numbers` the first ones; None when they are all there are.
    """

    start: int
    end: int
    index: "pd.Index[int]"
    numbers: np.ndarray | None
    repeated: np.ndarray

    @classmethod
    def of(cls, hashes: np.ndarray, start: int, end: int) -> Self:
        index: pd.Index[int] = pd.Index(hashes[start:end])
        if index.is_unique:
            return cls(start, end, index, None, np.empty(0, np.int64))
        again = index.duplicated()
        numbers = start + np.flatnonzero(~again)
        return cls(start, end, index[~again], numbers, start + np.flatnonzero(again))

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The first number of each hash, -1 without one."""
        at = self.index.get_indexer(pd.Index(hashes)).astype(np.int64)
        if self.numbers is not None:
            return np.append(self.numbers, -1)[at]
        return (
            at + self.start
            if self.start == 0
            else np.where(at < 0, -1, at + self.start)
        )


@dataclass(frozen=True)
class Interner:
    """Ids that have a number, which is their place in `ids`; only ever appended to.

    Most are found in one large table, which later interners share as long as what came since is little beside it: a few
    new ids do not cost a look at a million.

        0 ............ large.end .... len(self)
        [ large table, shared   ][ small, own ]

    Attributes:
        ids: string[n], by number.
        hashes: uint64[n], those of the ids under `key`.
    """

    ids: pa.Array
    hashes: np.ndarray
    key: str = field(default=PUBLIC_ID_KEY, compare=False, repr=False)
    shared: _Places | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def empty() -> "Interner":
        """An interner that knows no id."""
        return Interner(pa.array([], pa.string()), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def _large(self) -> _Places:
        old = self.shared
        # The table of an earlier interner does while at most a quarter of it, or a few thousand ids, came since.
        if old is not None and len(self) - old.end <= max(_LEAST_LARGE, old.end >> 2):
            return old
        return _Places.of(self.hashes, 0, len(self))

    @cached_property
    def _small(self) -> _Places:
        return _Places.of(self.hashes, self._large.end, len(self))

    @cached_property
    def _repeated(self) -> np.ndarray:
        """The numbers of ids that share their hash with one of a lesser number; hardly ever any."""
        large, small = self._large, self._small
        again = large.find(self.hashes[large.end :]) >= 0
        return np.unique(
            np.concatenate(
                [large.repeated, small.repeated, large.end + np.flatnonzero(again)]
            )
        )

    def find(self, hashes: np.ndarray, ids: pa.Array) -> np.ndarray:
        """The number of each id, -1 where it has none; int64[n].

        The hash says where to look, the id whether it is the one: two ids that share a hash are two.

        Args:
            hashes: uint64[n], under this interner's key.
            ids: string[n], the ids that they are of.
        """
        numbers = self._large.find(hashes)
        left = np.flatnonzero(numbers < 0)
        if len(left) and self._large.end < len(self):
            numbers[left] = self._small.find(hashes[left])
        known = np.flatnonzero(numbers >= 0)
        mine, theirs = (
            self.ids.take(pa.array(numbers[known])),
            ids.take(pa.array(known)),
        )
        same = pc.equal(mine, theirs)
        # Hardly ever: only then are ids looked at that share their hash with an earlier one.
        if not pc.all(same).as_py():
            wrong = known[~same.to_numpy(zero_copy_only=False)]
            numbers[wrong] = self._among_repeated(ids.take(pa.array(wrong)))
        return numbers

    def _among_repeated(self, ids: pa.Array) -> np.ndarray:
        numbers = self._repeated
        at = pc.index_in(
            ids.cast(pa.string()), value_set=self.ids.take(pa.array(numbers))
        )
        number_of_each: np.ndarray = np.append(numbers, -1)[
            at.fill_null(-1).to_numpy(zero_copy_only=False)
        ]
        return number_of_each

    def places_of(self, sought: Sought) -> np.ndarray:
        """The number of each of the ids, -1 where it has none; int64[n]."""
        return self.find(sought.hashes(self.key), sought.ids)

    def number_of(self, name: str) -> int:
        """The number of one id, -1 when it has none. Of "taxi-1", "bus-2" the second has the number 1."""
        return int(self.places_of(Sought(pa.array([name], pa.string())))[0])

    def with_new(self, hashes: np.ndarray, ids: pa.Array) -> "Interner":
        """This interner with more ids, numbered on from `len(self)`; this one stays as it is.

        Args:
            hashes: uint64[k], under the same key.
            ids: string[k], different ones, none of which is known already: that is not checked.
        """
        if not len(hashes):
            return self
        together = pa.concat_arrays([self.ids, ids.cast(pa.string())])
        return Interner(
            together, np.concatenate([self.hashes, hashes]), self.key, self._built()
        )

    def under(self, key: str) -> "Interner":
        """This interner, which is said to have its hashes by that key; they are not made anew."""
        return self if key == self.key else replace(self, key=key, shared=self._built())

    def _built(self) -> _Places | None:
        return self.__dict__.get("_large", self.shared)
