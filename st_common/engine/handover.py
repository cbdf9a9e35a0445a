"""What the engine decoded last, for the archive beside it: a backlog is decoded once.

log          ... 40 41 42 43 44 45 46 47 48 ...
engine                             ^ end      has decoded 40 .. 46
held             |  41 | 42 43 | 44  .. 46 |  the newest large pieces
archive          ^ takes these, not their bytes
"""

import threading
from collections import deque

from st_common.capture.pieces import Piece
from st_common.engine.pace import BATCH_ROWS

MOST_ROWS = 3 * BATCH_ROWS
LEAST_ROWS = 10_000
"""A smaller piece costs the archive more by itself than together with its neighbours, decoded anew."""


class Handover:
    """Pieces of the log from an engine to the archive beside it, in one process; each is called from its own thread.

    The archive never runs ahead of the engine as long as that runs: what it lacks then is decoded by nobody else.
    """

    def __init__(self) -> None:
        self._held: deque[Piece] = deque()
        self._rows = 0
        self._end: int | None = 0
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether a whole batch is held: a backlog is being read."""
        return self._rows >= BATCH_ROWS

    def put(self, piece: Piece) -> None:
        """Holds the next piece that the engine has decoded, unless it is small; the oldest make room for it."""
        with self._lock:
            self._end = _end_of(piece)
            if piece.part is not None and piece.rows < LEAST_ROWS:
                return
            self._held.append(piece)
            self._rows += piece.rows
            while self._rows > MOST_ROWS:
                self._drop_first()

    def since(self, segment: int) -> list[Piece]:
        """The pieces that are held from a segment on, without a gap; none where no piece begins with it."""
        run: list[Piece] = []
        with self._lock:
            for piece in self._held:
                if first_of(piece) == segment:
                    run.append(piece)
                    segment = _end_of(piece)
        return run

    def limit(self, segment: int) -> int | None:
        """The segment before which whoever reads from `segment` on by himself should stop; None: the log's end."""
        with self._lock:
            starts = [
                first_of(piece) for piece in self._held if first_of(piece) > segment
            ]
            return min(starts, default=self._end)

    def forget(self, end: int) -> None:
        """Lets go of the pieces before a segment: the archive has stored them."""
        with self._lock:
            while self._held and _end_of(self._held[0]) <= end:
                self._drop_first()

    def close(self) -> None:
        """The engine has ended: the archive takes what it left of the log."""
        with self._lock:
            self._held.clear()
            self._rows, self._end = 0, None

    def _drop_first(self) -> None:
        self._rows -= self._held.popleft().rows


def first_of(piece: Piece) -> int:
    """The number of a piece's first segment."""
    return piece.segments[0].number


def _end_of(piece: Piece) -> int:
    return piece.segments[-1].number + 1
