"""Which fixes are late or filtered, for who reads a part of the log that no engine in this process has stepped.

He folds the same step over the log, without queries, from the newest states that the engine has stored, of all its
shards. They follow from the log: without any it is read from its beginning.
"""

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock, End
from st_common.engine.archive_queue import Marks, decided_by, filtered_by
from st_common.engine.export import seed_folder, seed_path
from st_common.engine.packets import limits_of, packets_of_piece, step_settings
from st_common.engine.states import States, load
from st_common.engine.topology import generation_folder, keyed, topology_of
from st_common.log.log import Log
from st_common.log.reader import Piece, pieces
from st_common.operators.events.packet import Packet
from st_common.operators.guests.answering import bare
from st_common.operators.matching.layer import Layer
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.storage import LocalStorage

_AT_ONCE = 64  # segments
_BATCH_BYTES = 32 << 20
_RETIRE_BYTES = (
    4 << 20
)  # of the log, between two times that objects of long ago are forgotten


class FilterDecisions:
    """Follows a log up to some place, and knows which fixes from a segment on are late, and which filtered (SPEC X11).

    Where lateness is set, a fix that is held is not judged yet. With one in segment 41 and the log read up to 43:

        segment    39    40    41          42
        known      all   all   but one     all but what is held      next_segment 43, decided 41

    Args:
        home: the home folder, with the states of the stream's engine.
        stream: the stream; rows in its log say which limits hold where.
        log: its log.
        start: the segment from which on it is asked about fixes. The newest states from before are taken, and the log
            read on to there.

    Attributes:
        marks: which fixes from there on are late, and which are filtered.
    """

    def __init__(
        self, home: Home, stream: StreamSettings, log: Log, start: int
    ) -> None:
        """Begins at the newest states from before the segment `start`, and catches up."""
        self._log, self._stream = log, (stream := keyed(home, stream))
        self._states = newest_states(home, stream.name, upto=position_of(start, 0) - 1)
        shards = len(self._states)
        self._settings = [
            step_settings(stream, shard=shard, shards=shards) for shard in range(shards)
        ]
        self.marks, self._remembered = Marks(), 0
        self.read_on(start)
        self.marks.forget(start)

    @property
    def next_segment(self) -> int:
        """The segment that is read next."""
        return min(state.next_segment for state in self._states)

    @property
    def decided(self) -> int:
        """The first segment with a fix that is still held (lateness), so that nobody knows yet whether it is filtered.

        Without held fixes it is `next_segment`.
        """
        return min(map(decided_by, self._states))

    def read_on(self, end: int) -> None:
        """Reads the log on up to a segment (not included), or to the log's end."""
        while (start := self.next_segment) < end:
            # What is decoded together is stepped together: so it ends where another shard's state begins.
            places = (state.next_segment for state in self._states)
            segments = self._log.segments(
                start,
                end=min([end, *(place for place in places if place > start)]),
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
        dealt = [self._packets(one) for one in new]
        for shard, settings in enumerate(self._settings):
            state = self._states[shard]
            own = [
                one[shard] for one in dealt if one[shard].segment >= state.next_segment
            ]
            done = step(state, own, settings, _no_layer)
            self._states[shard] = done.state
            self.marks.add([filtered_by(done, settings)], done.late)
        self._remembered += sum(one.size for piece in new for one in piece.segments)
        if self._remembered >= _RETIRE_BYTES:
            self._remembered = 0
            self._states = [
                retired(state, settings, least=LEAST)
                for state, settings in zip(self._states, self._settings, strict=True)
            ]

    def _packets(self, piece: Piece) -> list[Packet]:
        """The packets of a piece, without control rows that say nothing of time: queries and layers filter no fix."""
        dealt = packets_of_piece(
            self._log, piece, self._stream, shards=len(self._states)
        )
        told: list[tuple[int, Clock | End]] = []
        told += chosen(dealt[0].controls, Clock)
        told += chosen(dealt[0].controls, End)
        rows = tuple(row for _, row in sorted(told, key=itemgetter(0)))
        limits = limits_of(piece.stream)
        return [replace(packet, controls=rows, limits=limits) for packet in dealt]


def newest_states(home: Home, stream: str, *, upto: int) -> list[State]:
    """The newest states of the engine's shards that have seen nothing behind a position, each at a place of its own.

    Args:
        home: the home folder; nothing in it is changed.
        stream: the name of the stream.
        upto: the position.

    Returns:
        States without queries; one empty state where not all shards have one.
    """
    topology = topology_of(home, stream)
    if topology is None or topology.engine == "local":
        return [bare(States.of(home, stream, mends=False).newest(upto=upto))]
    folder = generation_folder(home, stream)
    for era in sorted((folder / "resident").glob("[0-9]*"), reverse=True):
        parts = sorted(era.glob("[0-9]*"))
        kept = [States(LocalStorage(one), one, mends=False) for one in parts]
        found = [bare(states.newest(upto=upto)) for states in kept]
        if len(found) == topology.shards and all(one.next_segment for one in found):
            return found
    seeds = [seed_path(seed_folder(folder), n) for n in range(topology.shards)]
    if position_of(topology.start, 0) - 1 <= upto and all(map(_is_there, seeds)):
        return [bare(load(path)) for path in seeds]
    return [State()]


def _is_there(path: Path) -> bool:
    return path.exists()


def _no_layer(layer: str, version: int) -> Layer:
    """Without queries nothing is looked up."""
    raise AssertionError(f"version {version} of layer {layer} was looked up")
