"""Which records of files are ahead of their stream: judged once what comes behind them is seen.

chunk 1   v0 12:00  v1 12:01 | v0 three days later          kept back: nobody has confirmed it
chunk 2   v1 three days later  ..                           it does: both are believed
the end   v0 2031                                           nobody did: ahead of the stream
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.decode import decode, event_times
from st_common.formats.chunk import Chunk
from st_common.log.event_time import EventTime
from st_common.log.leaps import judged, most_us_of

Mask = NDArray[np.bool_]


class LookingAhead:
    """Marks what is ahead of a stream in chunks of records.

    Args:
        stream: how they are read; nothing is marked where it believes every clock, or has no times.
        time: how far the stream's event time has come before them.
        arrival_us: when they come.

    Attributes:
        time: how far the event time has come.
        ahead: how many records are ahead.
    """

    def __init__(
        self, stream: StreamSettings, time: EventTime, *, arrival_us: int
    ) -> None:
        self._stream, self._arrival_us = stream, arrival_us
        self._most_us = most_us_of(stream)
        self.time = replace(time, waiting=())
        self.ahead = 0
        self._held: list[tuple[Chunk, pa.Table]] = []

    def marked(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The same records in the same order, in chunks that say which are ahead."""
        if not self._most_us:
            yield from chunks
            return
        for chunk in chunks:
            if self._held or self._leaps(chunk):
                yield from self._judged(chunk)
            else:
                yield chunk
        for chunk, fixes in self._held:
            yield self._with(chunk, fixes, np.ones(len(fixes), bool))

    def _leaps(self, chunk: Chunk) -> bool:
        """Whether anything in a chunk is far ahead of what is in front of it; if not, time comes as far as it says.

        Where nobody knows yet how far the stream is, fixes have to say it: a record that is none may be of any time.
        """
        high = self.time.high_us
        if high is None:
            return True
        times = chunk.times
        if times is None:
            payload = chunk.payload(0, len(chunk.spans))
            every, known = event_times(payload, self._stream)
            times = every[known]
        if not len(times):
            return False
        reached = np.maximum.accumulate(np.append(high, times))
        if int(np.diff(reached).max()) > self._most_us:
            return True
        self.time = replace(self.time, high_us=int(reached[-1]))
        return False

    def _judged(self, chunk: Chunk) -> Iterator[Chunk]:
        payload = chunk.payload(0, len(chunk.spans))
        fixes = decode(payload, self._stream, arrival_us=self._arrival_us).fixes
        fixes = fixes.select(["row", "object", "event_ts"])
        held = [*self._held, (chunk, fixes)]
        every = pa.concat_tables([each for _, each in held]).unify_dictionaries()
        is_ahead, time = judged(
            every, self.time, arrival_us=self._arrival_us, most_us=self._most_us
        )
        open_from = len(is_ahead) - _trailing(is_ahead)
        self.time = replace(time, waiting=())
        self._held, at = [], 0
        for one, its in held:
            mine = is_ahead[at : at + len(its)]
            cut = max(open_from - at, 0)
            at += len(its)
            yield from self._cut(one, its, mine, cut)

    def _cut(
        self, chunk: Chunk, fixes: pa.Table, ahead: Mask, cut: int
    ) -> Iterator[Chunk]:
        """What of a chunk is in front of the fix number `cut`; the rest is kept back."""
        if cut >= len(fixes):
            yield self._with(chunk, fixes, ahead)
            return
        row = fixes["row"][cut].as_py()
        if row:
            yield self._with(chunk.part(0, row), fixes.slice(0, cut), ahead[:cut])
        rest = fixes.slice(cut)
        rows = pa.array(rest["row"].to_numpy() - row, pa.int32())
        rest = rest.set_column(0, "row", rows)
        self._held.append((chunk.part(row, len(chunk.spans)), rest))

    def _with(self, chunk: Chunk, fixes: pa.Table, ahead: Mask) -> Chunk:
        """A chunk that says which of its records are ahead."""
        if not ahead.any():
            return chunk
        marks = np.zeros(len(chunk.spans), bool)
        marks[fixes["row"].to_numpy()[ahead]] = True
        self.ahead += int(ahead.sum())
        return chunk.with_columns({**chunk.columns(), "ahead": marks})


def _trailing(mask: Mask) -> int:
    """How many values at the end are true."""
    others = np.flatnonzero(~mask)
    return len(mask) - 1 - int(others[-1]) if len(others) else len(mask)
