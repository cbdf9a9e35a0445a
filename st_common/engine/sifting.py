"""Which fixes are filtered, for an archive that stores every fix with the reason (SPEC X11).

The archive reads the log beside the engine, ahead of it or behind. So it does not ask the engine: it folds the same
step over the log, without queries, and keeps the state that this needs. That state follows from the log, so it is a
cache: without one the log is read from its beginning.
"""

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

import numpy as np
import pyarrow as pa

from st_common.capture.log import Log
from st_common.capture.pieces import Piece, pieces
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock, End
from st_common.engine.feed import limits_of, packet_of, step_settings
from st_common.engine.states import States
from st_common.home import Home
from st_common.operators.events.packet import Packet
from st_common.operators.matching.layer import Layer
from st_common.operators.position_filter.filter import Filtered, joined
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import step
from st_common.operators.state.limits import REASONS
from st_common.position import position_of, segment_of
from st_common.settings import StreamSettings
from st_common.storage import LocalStorage

FOLDER = "archive"
_AT_ONCE = 64  # segments
_BATCH_BYTES = 32 << 20
_STORE_BYTES = 4 << 20  # of the log, between two states that are stored


class Sifting:
    """Follows a log up to some place, and knows which fixes from a segment on are filtered (SPEC X11).

    Where lateness is set, a fix that is held is not judged yet. With one in segment 41 and the log read up to 43:

        segment    39    40    41          42
        known      all   all   but one     all but what is held      next_segment 43, decided 41

    Args:
        home: the home folder; the states lie in `archive` in the stream's folder.
        stream: the stream; rows in its log say which limits hold where.
        log: its log.
        start: the segment from which on it is asked about fixes. The newest state from before is taken, and the log
            read on to there.
        stores: whether its states are kept for the next one; whoever only reads keeps none.
    """

    def __init__(
        self,
        home: Home,
        stream: StreamSettings,
        log: Log,
        start: int,
        *,
        stores: bool = True,
    ) -> None:
        """Begins at the newest state from before the segment `start`, and catches up."""
        folder = home.stream(stream.name) / FOLDER
        self._states = States(LocalStorage(folder), folder)
        self._log, self._stream, self._stores = log, stream, stores
        self._settings = step_settings(stream)
        self._state = self._states.newest(upto=position_of(start, 0) - 1)
        self._filtered, self._unstored = Filtered(), 0
        self.read_on(start)
        self.forget(start)

    @property
    def next_segment(self) -> int:
        """The segment that is read next."""
        return self._state.next_segment

    @property
    def decided(self) -> int:
        """The first segment with a fix that is still held (lateness), so that nobody knows yet whether it is filtered.

        Without held fixes it is `next_segment`.
        """
        held = self._state.held.position
        return segment_of(int(held.min())) if len(held) else self.next_segment

    def read_on(self, end: int) -> None:
        """Reads the log on up to a segment (not included), or to the log's end."""
        while self.next_segment < end:
            segments = self._log.segments(
                self.next_segment,
                end=end,
                max_bytes=_BATCH_BYTES,
                max_segments=_AT_ONCE,
            )
            if not segments:
                return
            self.take(pieces(self._log, segments, self._stream))

    def decide(self, end: int) -> None:
        """Reads on until it is known of all fixes before a segment whether they are filtered, or to the log's end.

        Args:
            end: the segment, not included.
        """
        while self.decided < end:
            before = self.next_segment
            self.read_on(before + _AT_ONCE)
            if self.next_segment == before:
                return

    def take(self, pieces: Iterable[Piece]) -> None:
        """Takes the next pieces of the log, which another has read already; those taken before are passed over.

        Args:
            pieces: adjacent, in log order.
        """
        new = [one for one in pieces if one.segments[0].number >= self.next_segment]
        packets = [self._packet(one) for one in new]
        done = step(self._state, packets, self._settings, _no_layer)
        self._state = done.state
        self._filtered = joined((self._filtered, *done.filtered))
        self._unstored += sum(one.size for piece in new for one in piece.segments)
        if self._unstored >= _STORE_BYTES:
            self._state = retired(self._state, self._settings, least=LEAST)
            if self._stores:
                self._states.store(self._state)
            self._unstored = 0

    def _packet(self, piece: Piece) -> Packet:
        """The packet of a piece, without control rows that say nothing of time: queries and layers filter no fix."""
        packet = packet_of(self._log, piece, self._stream)
        told: list[tuple[int, Clock | End]] = []
        told += chosen(packet.controls, Clock)
        told += chosen(packet.controls, End)
        rows = tuple(row for _, row in sorted(told, key=itemgetter(0)))
        return replace(packet, controls=rows, limits=limits_of(piece.stream))

    def forget(self, start: int) -> None:
        """Drops what is known about fixes before a segment; nobody will ask for them."""
        later = self._filtered.position >= position_of(start, 0)
        self._filtered = self._filtered.take(np.flatnonzero(later))

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


def _no_layer(layer: str, version: int) -> Layer:
    """Without queries nothing is looked up."""
    raise AssertionError(f"version {version} of layer {layer} was looked up")
