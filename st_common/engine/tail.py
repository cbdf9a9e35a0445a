"""Which fixes are filtered, for who reads a part of the log that no engine in this process has stepped (SPEC X11).

He folds the same step over the log, without queries, from the newest state that somebody has stored. States follow
from the log, so they are caches: without one the log is read from its beginning.
"""

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

from st_common.capture.log import Log
from st_common.capture.pieces import Piece, pieces
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock, End
from st_common.engine.feed import limits_of, packet_of, step_settings
from st_common.engine.sink import Reasons, decided_by
from st_common.engine.states import States
from st_common.home import Home
from st_common.operators.events.packet import Packet
from st_common.operators.guests.answering import bare
from st_common.operators.matching.layer import Layer
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.settings import StreamSettings
from st_common.storage import LocalStorage

FOLDER = "archive"
_AT_ONCE = 64  # segments
_BATCH_BYTES = 32 << 20
_STORE_BYTES = 4 << 20  # of the log, between two states that are stored


class Tail:
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

    Attributes:
        reasons: which fixes from there on are filtered.
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
        self._state = self._newest(home, upto=position_of(start, 0) - 1)
        self.reasons, self._unstored = Reasons(), 0
        self.read_on(start)
        self.reasons.forget(start)

    def _newest(self, home: Home, *, upto: int) -> State:
        """The newest state that has seen nothing behind a position: of those that were kept, or of the local engine."""
        kept = self._states.newest(upto=upto)
        of_engine = States.of(home, self._stream.name, mends=False).newest(upto=upto)
        if of_engine.next_segment > kept.next_segment:
            return bare(of_engine)
        return kept

    @property
    def next_segment(self) -> int:
        """The segment that is read next."""
        return self._state.next_segment

    @property
    def decided(self) -> int:
        """The first segment with a fix that is still held (lateness), so that nobody knows yet whether it is filtered.

        Without held fixes it is `next_segment`.
        """
        return decided_by(self._state)

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
        self.reasons.add(done.filtered)
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


def _no_layer(layer: str, version: int) -> Layer:
    """Without queries nothing is looked up."""
    raise AssertionError(f"version {version} of layer {layer} was looked up")
