"""How much a batch may take: whoever follows a log says after each that he lives, and how far he is."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

BATCH_S = 2.0
BATCH_ROWS = 1 << 19
_MOST_SEGMENTS = 1 << 12
_FASTER = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """So many segments at most are a batch: as many as took about two seconds so far, for they cost very differently.

    What comes out does not depend on it.
    """

    segments: int = 512

    def after(self, segments: int, seconds: float) -> "Pace":
        """The pace after a batch of so many segments that took so long."""
        if seconds > BATCH_S:
            return Pace(segments=max(1, int(segments * BATCH_S / seconds)))
        if segments >= self.segments and seconds * _FASTER < BATCH_S:
            return Pace(segments=min(_MOST_SEGMENTS, self.segments * _FASTER))
        return self


def taken(parts: Iterable[T], rows_of: Callable[[T], int]) -> Iterator[T]:
    """The first of the parts: until they have as many rows, or took as long, as a batch may."""
    begun_s, rows = time.monotonic(), 0
    for part in parts:
        yield part
        rows += rows_of(part)
        if rows >= BATCH_ROWS or time.monotonic() - begun_s >= BATCH_S:
            return
