"""Attributes of some fixes among others, copied when somebody asks for them: most ticks ask for none."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

Attributes = Mapping[str, pa.Array]


class Taken(Mapping[str, pa.Array]):
    """The attributes at some places of `base`; -1 is null."""

    __slots__ = ("_base", "_made", "_places")

    def __init__(self, base: Attributes, places: np.ndarray) -> None:
        self._base, self._places, self._made = base, places, dict[str, pa.Array]()

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._made:
            self._made[name] = self._base[name].take(
                pa.array(self._places, mask=self._places < 0)
            )
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def at(self, index: np.ndarray) -> "Taken":
        """Those of some of these places."""
        return Taken(self._base, self._places[index])


class Joined(Mapping[str, pa.Array]):
    """The attributes of `rows` fixes, then those of `more_rows` others; null where one of them lacks one."""

    __slots__ = ("_counts", "_made", "_parts")

    def __init__(
        self, before: Attributes, rows: int, after: Attributes, more_rows: int
    ) -> None:
        self._parts, self._counts, self._made = (
            (before, after),
            (rows, more_rows),
            dict[str, pa.Array](),
        )

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._made:
            kind = next(
                part[name].type for part in reversed(self._parts) if name in part
            )
            self._made[name] = pa.concat_arrays(
                [
                    part[name].cast(kind, safe=False)
                    if name in part
                    else pa.nulls(count, kind)
                    for part, count in zip(self._parts, self._counts, strict=True)
                ]
            )
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._parts[0]), **dict.fromkeys(self._parts[1])})

    def __len__(self) -> int:
        return len(list(iter(self)))


def taken(attributes: Attributes, places: np.ndarray) -> Attributes:
    """The attributes at some places; -1 is null."""
    return (
        attributes.at(places)
        if isinstance(attributes, Taken) and _all_known(places)
        else Taken(attributes, places)
    )


def _all_known(places: np.ndarray) -> bool:
    return not len(places) or int(places.min()) >= 0
