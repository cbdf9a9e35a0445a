"""Counts that are added field by field: of batches, of shards, of runs."""

from dataclasses import fields
from typing import Any, Self


class Summed:
    """A dataclass of numbers; the sum of two has the sum of each field."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        sums: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name) for name in names
        }
        return type(self)(**sums)
