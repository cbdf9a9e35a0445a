"""Counts that are added field by field: of batches, of shards, of runs."""

from operator import add, attrgetter
from typing import Self


class Summed:
    """A base for dataclasses of numbers: `one + other`, of the same class, has in each field the sum of both.

    They are dataclasses with slots, which name the fields: to ask `dataclasses.fields` took longer than the sums.
    """

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        names: tuple[str, ...] = tuple(self.__slots__)
        values_of = attrgetter(*names)
        sums = map(add, values_of(self), values_of(other))
        return type(self)(**dict(zip(names, sums, strict=True)))
