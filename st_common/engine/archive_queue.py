"""What the engine decoded and filtered, on its way to the archive beside it: a record is decoded once, and judged once.

    log        ... 40 41 42 43 44 45 46 47 ...
    engine                           ^ has stepped 40 .. 46, began with 40
    sink          |  41 | 42 43 | 44 .. 46 |      which fixes of these are filtered
    archive        ^ takes these, as soon as that is known of each fix (lateness), never their bytes

The engine begins with a state that has seen nothing which the archive lacks. Where there is none, what lies before its
beginning is read from the log by the archive itself (see `Tail`).
"""

import threading
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from st_common.decode.batch import Part
from st_common.decode.decoded import Decoded
from st_common.engine.pace import BATCH_ROWS
from st_common.log.reader import Piece
from st_common.operators.position_filter.filter import Filtered, joined
from st_common.operators.runtime.stages import Step
from st_common.operators.state.intern import shards_of
from st_common.operators.state.limits import REASONS
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.position import position_of, segment_of

MOST_BYTES = 128 << 20
"""Of decoded rows that the archive may store and has not: the engine waits for it then."""
_SMALL_ROWS, _MANY = 10_000, 64
"""Each piece costs some 10 KB and the archive 0.2 ms: so many small ones become one."""


class Marks:
    """Which fixes from a place of the log on came too late, and which are filtered, and why (SPEC X11)."""

    def __init__(self) -> None:
        self._filtered = Filtered()
        self._late = np.empty(0, np.int64)

    def add(self, filtered: Sequence[Filtered], late: np.ndarray) -> None:
        """Takes on what a step has filtered, one value for each of its deltas, and which rows of the log came late."""
        if any(map(len, filtered)):
            self._filtered = joined((self._filtered, *filtered))
        if len(late):
            self._late = np.concatenate([self._late, late])

    def forget(self, start: int) -> None:
        """Drops what is known about fixes before a segment; nobody will ask for them."""
        first = position_of(start, 0)
        if len(self._filtered):
            later = self._filtered.position >= first
            self._filtered = self._filtered.take(np.flatnonzero(later))
        if len(self._late):
            self._late = self._late[self._late >= first]

    def too_late(self, position: np.ndarray) -> pa.Array:
        """Whether some fixes came too late to change an answer; bool[n].

        Args:
            position: int64[n], the positions of the fixes, all stepped and not forgotten.
        """
        return pa.array(np.isin(position, self._late))

    def columns(self, position: np.ndarray) -> dict[str, pa.Array]:
        """The columns `filtered` (string) and `filtered_value` (double) for some fixes; null where a fix was accepted.

        Args:
            position: int64[n], the positions of the fixes, all decided and not forgotten.

        Returns:
            Two arrays of length n by name: the reason, and the value that broke the limit.
        """
        filtered = self._filtered
        # Where each fix would stand among the filtered ones, which are sorted; it is one of them if it stands there.
        at = np.searchsorted(filtered.position, position)
        at = np.minimum(at, max(len(filtered) - 1, 0))
        is_in = np.zeros(len(position), bool)
        if len(filtered):
            is_in = filtered.position[at] == position
        place = pa.array(at, mask=~is_in)
        names = pa.array(REASONS).take(pa.array(filtered.reason))
        return {
            "filtered": names.take(place),
            "filtered_value": pa.array(filtered.value).take(place),
        }


def decided_by(state: State) -> int:
    """The first segment with a fix that a state holds (lateness), so that nobody knows yet whether it is filtered.

    Without held fixes it is the state's `next_segment`.
    """
    held = state.held.position
    return segment_of(int(held.min())) if len(held) else state.next_segment


def filtered_by(done: Step, settings: Settings) -> Filtered:
    """What a step of a shard has filtered of its own objects: of others that it knows, theirs say it."""
    filtered = joined([Filtered(), *done.filtered])
    if not len(filtered) or settings.shards == 1:
        return filtered
    hashes = done.state.objects.hashes[filtered.object]
    own = shards_of(hashes, settings.shards) == settings.shard
    return filtered.take(np.flatnonzero(own))


class ArchiveQueue:
    """What an engine has stepped, for the archive in the same process; each calls it from a thread of its own.

    Attributes:
        archived: the segment that the archive stores next.
        start: the segment with which the engine began; None as long as there is no engine.
        marks: which fixes are late, and which are filtered.
        is_filtered: whether fixes are filtered anywhere in what was put in.
        decided: the first segment of which it is not known yet which fixes are filtered.
    """

    def __init__(self) -> None:
        self.archived = 0
        self.start: int | None = None
        self.marks = Marks()
        self.is_filtered = False
        self._pieces: deque[Piece] = deque()
        self.decided = self._rows = self._bytes = 0
        self._lock = threading.RLock()

    def begin(self, segment: int) -> None:
        """An engine begins with a segment; what lies before it, and is not archived, the archive reads by itself."""
        self.start = self.decided = segment

    @property
    def has_batch(self) -> bool:
        """Whether a whole batch can be stored: a backlog is being read."""
        with self._lock:
            return self.is_full or (self._rows >= BATCH_ROWS and self._has_decided)

    @property
    def is_full(self) -> bool:
        """Whether the engine had better wait: the archive does not keep up.

        What is not decided yet does not count, for only the engine can decide it; its state holds these fixes, too.
        """
        with self._lock:
            return self._bytes >= MOST_BYTES and self._has_decided

    @property
    def _has_decided(self) -> bool:
        return bool(self._pieces) and self.archived < self.decided

    def put(
        self,
        pieces: Sequence[Piece],
        filtered: Sequence[Filtered],
        late: np.ndarray,
        decided: int,
    ) -> None:
        """Takes on what the engine has stepped.

        Args:
            pieces: what it decoded, the next of the log; at least one. What is archived already is let go.
            filtered: what the step filtered, of these and of fixes that were held.
            late: int64, rows of the log with fixes that came too late.
            decided: the first segment of which a fix is still held, else the one that comes next.
        """
        with self._lock:
            filters = (one.stream.position_filter for one in pieces)
            self.is_filtered |= any(one is not None for one in filters)
            self.decided = decided if self.is_filtered else end_of(pieces[-1])
            self.marks.add(filtered, late)
            for piece in pieces:
                if end_of(piece) > self.archived:
                    self._pieces.append(piece)
                    self._count(piece, 1)

    def since(self, segment: int) -> list[Piece]:
        """The pieces from a segment on, up to where it is known which fixes are filtered."""
        with self._lock:
            return cut(self._pieces, segment, self.decided)

    def forget(self, end: int) -> None:
        """Lets go of what lies before a segment: the archive has stored it."""
        with self._lock:
            self.archived = end
            self._drop_before(end)
            self.marks.forget(end)

    def compact(self) -> None:
        """Makes one of many small pieces at the end; the archive calls it now and then, not to delay the engine."""
        with self._lock:
            pieces = list(self._pieces)
        start = len(pieces)
        while start and pieces[start - 1].rows < _SMALL_ROWS:
            start -= 1
        small = pieces[start:]
        if len(small) < _MANY:
            return
        made = together(small)
        with self._lock:  # the engine has added some behind them at most
            self._pieces = deque(
                [*pieces[:start], *made, *list(self._pieces)[len(pieces) :]]
            )
            self._bytes += sum(map(_bytes_of, made)) - sum(map(_bytes_of, small))

    def _drop_before(self, segment: int) -> None:
        while self._pieces and end_of(self._pieces[0]) <= segment:
            self._count(self._pieces.popleft(), -1)

    def _count(self, piece: Piece, sign: int) -> None:
        self._rows += sign * piece.rows
        self._bytes += sign * _bytes_of(piece)


def end_of(piece: Piece) -> int:
    """The segment behind a piece."""
    return piece.segments[-1].number + 1


def _bytes_of(piece: Piece) -> int:
    if piece.part is None:
        return 0
    return int(piece.part.decoded.fixes.nbytes + piece.part.decoded.rejects.nbytes)


def together(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of the log with small ones that follow each other, and were read alike, as one."""
    made: list[list[Piece]] = []
    for piece in pieces:
        if made and _joins(made[-1][0], piece):
            made[-1].append(piece)
        else:
            made.append([piece])
    return [_one_of(run) if len(run) > 1 else run[0] for run in made]


def _joins(first: Piece, piece: Piece) -> bool:
    if first.part is None or piece.part is None:
        return False
    if max(first.rows, piece.rows) >= _SMALL_ROWS:
        return False
    return first.stream is piece.stream or first.stream == piece.stream


def _one_of(run: Sequence[Piece]) -> Piece:
    """Some pieces of records as one; what was counted while they were decoded is left out."""
    parts = [one.part for one in run if one.part is not None]
    starts = np.cumsum([0, *(part.segments for part in parts)])[:-1]
    fixes = pa.concat_tables([part.decoded.fixes for part in parts])
    rejects = pa.concat_tables([part.decoded.rejects for part in parts])
    fix_at = [part.fix_at + start for part, start in zip(parts, starts, strict=True)]
    reject_at = [
        part.reject_at + start for part, start in zip(parts, starts, strict=True)
    ]
    part = Part(
        segments=sum(part.segments for part in parts),
        decoded=Decoded(
            fixes=fixes.combine_chunks(),
            rejects=rejects.combine_chunks(),
            rows=sum(part.decoded.rows for part in parts),
        ),
        fix_at=np.concatenate(fix_at).astype(np.int32),
        reject_at=np.concatenate(reject_at).astype(np.int32),
    )
    return Piece(
        segments=[segment for one in run for segment in one.segments],
        part=part,
        stream=run[0].stream,
        damage=next((one.damage for one in run if one.damage is not None), None),
    )


def cut(pieces: Collection[Piece], start: int, end: int) -> list[Piece]:
    """Pieces of the log from a segment on, up to another one (not included); some may have been cut in two for that."""
    if (
        end <= start
    ):  # after a restart the engine may hold fixes from before what is archived
        return []
    return [
        _part_of(one, start, end)
        for one in pieces
        if end_of(one) > start and one.segments[0].number < end
    ]


def _part_of(piece: Piece, start: int, end: int) -> Piece:
    """What a piece has from a segment on, up to another one."""
    first, part = piece.segments[0].number, piece.part
    low, high = max(start - first, 0), min(end - first, len(piece.segments))
    if part is None or (low, high) == (0, len(piece.segments)):
        return piece
    fix = (part.fix_at >= low) & (part.fix_at < high)
    reject = (part.reject_at >= low) & (part.reject_at < high)
    decoded = Decoded(
        fixes=part.decoded.fixes.filter(pa.array(fix)),
        rejects=part.decoded.rejects.filter(pa.array(reject)),
        rows=int(fix.sum() + reject.sum()),
    )
    kept = Part(
        segments=high - low,
        decoded=decoded,
        fix_at=part.fix_at[fix] - low,
        reject_at=part.reject_at[reject] - low,
    )
    return replace(piece, segments=piece.segments[low:high], part=kept)
