"""The borders of OR of regions: whatever is near to one of the parts, or meets it, is near to the whole, or meets it.

```
    +-----+          to a OR b         a place is as far as from the nearer of the two
    |  a  |  +---+                     a way meets it where it meets one of them
    +-----+  | b |
             +---+
```

Of AND and NOT this does not hold: a place may be near to both of `a AND b`, and far from where they meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from st_common.geometry.borders import Segments, any_of, each_once
from st_common.regions.region import Borders, Region, StillRegion
from st_common.runs import ranges

if TYPE_CHECKING:
    from st_common.geometry.space import Space


@dataclass(frozen=True, slots=True)
class _Kind:
    """The parts of one kind: the places of the wholes that they are of (int64, ascending), and their borders."""

    whole: np.ndarray
    borders: Borders

    def parts_of(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each of some wholes (int64[n]) with all of its parts: places among `which`, and parts; int64 each."""
        start = np.searchsorted(self.whole, which)
        count = np.searchsorted(self.whole, which, side="right") - start
        return np.repeat(np.arange(len(which)), count), ranges(start, count)


class United:
    """See `Borders`: those of wholes that are made of parts by OR alone.

    Args:
        wholes: the regions, in the order in which they are asked about.
        space: what coordinates mean.
    """

    __slots__ = ("_kinds",)

    def __init__(self, wholes: Sequence[Region], *, space: "Space") -> None:
        kinds: dict[type[StillRegion], list[tuple[int, StillRegion]]] = {}
        for place, region in enumerate(wholes):
            for part in region.leaves():
                assert isinstance(part, StillRegion)  # noqa: S101 - it has a border
                kinds.setdefault(type(part), []).append((place, part))
        self._kinds = tuple(
            _Kind(
                np.array([place for place, _ in of], np.int64),
                kind.borders([part for _, part in of], space=space),
            )
            for kind, of in kinds.items()
        )

    def near(
        self,
        which: np.ndarray,
        x: np.ndarray,
        y: np.ndarray,
        distance_m: np.ndarray,
    ) -> np.ndarray:
        """See `Borders`."""
        is_near = np.zeros(len(which), bool)
        for kind in self._kinds:
            row, part = kind.parts_of(which)
            holds = kind.borders.near(part, x[row], y[row], distance_m[row])
            is_near |= any_of(row, holds, len(which))
        return is_near

    def met_by(self, segments: Segments) -> tuple[np.ndarray, np.ndarray]:
        """See `Borders`."""
        met = [
            (segment, kind.whole[part])
            for kind in self._kinds
            for segment, part in (kind.borders.met_by(segments),)
        ]
        segment, whole = (np.concatenate([pair[n] for pair in met]) for n in range(2))
        return each_once(segment, whole)

    def meet(self, which: np.ndarray, segments: Segments) -> np.ndarray:
        """See `Borders`."""
        meets = np.zeros(len(which), bool)
        for kind in self._kinds:
            row, part = kind.parts_of(which)
            holds = kind.borders.meet(part, segments.take(row))
            meets |= any_of(row, holds, len(which))
        return meets
