"""Attributes of some fixes among others, copied when somebody asks for them: most ticks ask for none."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

Attributes = Mapping[str, pa.Array]


class Taken(Mapping[str, pa.Array]):
    """The attributes at some places of others; a column is copied when it is first asked for.

    Args:
        base: attributes of n fixes.
        places: int64[m], places among these; -1 is null.
    """

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
        """Those of some of these places (int64, or a mask), without a copy of a copy."""
        return Taken(self._base, self._places[index])


class Joined(Mapping[str, pa.Array]):
    """The attributes of some fixes, then those of others; null where one of them lacks one.

    Args:
        before: the attributes of the first.
        rows: how many those are.
        after: the attributes of the others; their types count where the two differ.
        more_rows: how many these are.

    Example:
        a = [1] of one fix, b = [2, 3] of two others:  a is [1, null, null], b is [null, 2, 3]
    """

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
            kinds = [part[name].type for part in self._parts if name in part]
            if not kinds:
                raise KeyError(name)
            kind = kinds[-1]
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
    """The attributes at some places (int64, -1 is null), copied when they are asked for."""
    if not attributes:
        return {}  # which has no number of rows that others would have to keep to
    return (
        attributes.at(places)
        if isinstance(attributes, Taken) and _all_known(places)
        else Taken(attributes, places)
    )


def _all_known(places: np.ndarray) -> bool:
    return not len(places) or int(places.min()) >= 0


def joined_attributes(parts: Sequence[tuple[int, Attributes]]) -> Attributes:
    """The attributes of rows that follow each other, null where a part lacks one.

    Args:
        parts: of each part how many rows it has, and its attributes; the last type of a name counts.

    Example:
        a = [1] of one row, b = [2, 3] of two others:  a is [1, null, null], b is [null, 2, 3]
    """
    kinds = {
        name: values.type
        for _, attributes in parts
        for name, values in attributes.items()
    }
    return {
        name: pa.concat_arrays(
            [
                attributes[name].cast(kind, safe=False)
                if name in attributes
                else pa.nulls(rows, kind)
                for rows, attributes in parts
            ]
        )
        for name, kind in kinds.items()
    }
