"""Counts that are added field by field: of batches, of shards, of runs."""

from dataclasses import fields
from typing import Any, Self


class Summed:
    """A base for dataclasses of numbers: `one + other`, of the same class, has in each field the sum of both."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        sums: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name) for name in names
        }
        return type(self)(**sums)
