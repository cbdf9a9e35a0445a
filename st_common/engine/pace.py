"""How much a batch may take: whoever follows a log says after each that he lives, and how far he is."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from st_common.operations.status import MOST_SEGMENTS

BATCH_S = 2.0
BATCH_ROWS = 1 << 19
_FASTER = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many segments a batch may take: about as many as took two seconds so far, for their costs differ widely.

    What comes out does not depend on it.

        Pace(512) after a batch of 512 segments in 4.0 s   ->   Pace(256)     twice too slow
        Pace(512) after a batch of 512 segments in 0.1 s   ->   Pace(2048)    four times as many, up to 4096
        Pace(512) after a batch of 100 segments in 0.1 s   ->   Pace(512)     the log had no more
    """

    segments: int = 512

    def after(self, segments: int, seconds: float) -> "Pace":
        """The pace for the next batch, after one that took this many seconds for this many segments."""
        if seconds > BATCH_S:
            return Pace(segments=max(1, int(segments * BATCH_S / seconds)))
        if segments >= self.segments and seconds * _FASTER < BATCH_S:
            return Pace(segments=min(MOST_SEGMENTS, self.segments * _FASTER))
        return self


def taken(parts: Iterable[T], rows_of: Callable[[T], int]) -> Iterator[T]:
    """The first of some parts, until they hold 2^19 rows or took 2 s to make; at least one if there is one.

    Args:
        parts: made one by one as they are asked for.
        rows_of: how many rows a part has.
    """
    begun_s, rows = time.monotonic(), 0
    for part in parts:
        yield part
        rows += rows_of(part)
        if rows >= BATCH_ROWS or time.monotonic() - begun_s >= BATCH_S:
            return
