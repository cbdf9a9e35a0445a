"""Arrivals into a stream's log: few segments of many, durable before anybody is told so."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from operator import attrgetter

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.formats.said_before import SaidBefore, also
from st_common.log.appending import append_records, marked
from st_common.log.record_settings import log_for, settle
from st_common.position import position_of
from st_common.replay.files import wall_clock
from st_common.replay.memory import Memory
from st_common.sources.arrival import Arrival, Written
from st_common.sources.offsets import MovedError, Offsets
from st_common.sources.reject_rate import RejectRate

_MOST_BYTES = 8 << 20
HERE = -1
"""A place that is the position of the arrival's own first record; see `here`."""
_POSITION_BITS = 63


def here(mark: int) -> int:
    """A place that is the position of the arrival's own first record, and a number beside it.

    Args:
        mark: above 0; `place_of` gives it back of the place that is stored.
    """
    return HERE - mark


def place_of(place: int) -> tuple[int, int]:
    """The position of a place that was asked for by `HERE` or `here`, and the number beside it; 0 for none."""
    return place & ((1 << _POSITION_BITS) - 1), place >> _POSITION_BITS


def _placed(place: int, own: int) -> int:
    """A place as it is stored, where an arrival's first record has its own position."""
    return place if place > HERE else (HERE - place) << _POSITION_BITS | own


class Writer:
    """Stores what arrives for a stream.

    Args:
        home: the home folder.
        stream: the stream.
        source: the name of the source.
        clock: the time that stamps arrivals, us UTC.

    Raises:
        StateError: an attribute has another type than in records before.
    """

    def __init__(
        self,
        home: Home,
        stream: StreamSettings,
        source: str,
        *,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self._stream, self._source, self._clock = stream, source, clock
        self.log = log_for(home, stream)
        self.places = Offsets(self.log, source)
        self.judge = RejectRate(stream, source)
        self._memory = Memory(stream)
        self.records = self.bytes = self.segments = 0
        self.arrived_us: int | None = None

    def write(self, arrivals: Sequence[Arrival]) -> list[Written]:
        """Stores them, in their order; all of them are durable when this returns.

        Returns:
            For each where it stands.

        Raises:
            MovedError: another capture of this source has stored some of them meanwhile; those before are stored.
            StorageError: the disk is full, or refuses.
        """
        written: list[Written] = []
        for some in segments_of(arrivals):
            written += self.store(some)
            self.look(some)
        return written

    def store(self, arrivals: Sequence[Arrival]) -> list[Written]:
        """Stores those of one segment, as `segments_of` gives them; they are durable when this returns, or none is.

        Raises:
            MovedError: see `write`.
            StorageError: the disk is full, or refuses; whether they are stored the log says.
        """
        payload = _payload(arrivals)
        rows = [0, *accumulate(one.records for one in arrivals)]
        segment, ahead = self._append(payload, arrivals, rows)
        self.records += rows[-1]
        self.bytes += len(payload)
        self.segments += 1
        return [
            Written(
                position=position_of(segment, start),
                ahead=[row - start for row in ahead if start <= row < end],
            )
            for start, end in pairwise(rows)
        ]

    def look(self, arrivals: Sequence[Arrival]) -> None:
        """Judges whether those of one segment can be read."""
        payload = _payload(arrivals)
        owned = self._owned(payload, arrivals[0])
        decoded = arrivals[0].decoded if owned is payload else None
        self.judge.look(owned, arrival_us=self._clock(), decoded=decoded)

    def _append(
        self, payload: bytes, arrivals: Sequence[Arrival], rows: Sequence[int]
    ) -> tuple[int, Sequence[int]]:
        """Stores one payload; the number of its segment, and the rows of it that are ahead of the stream."""
        behind = self._memory.put_in_front(payload, arrival_us=self._clock())
        behind = self._owned(behind, arrivals[0])
        is_known = behind is payload and len(arrivals) == 1
        with self.log.locked():
            has_places = any(one.places for one in arrivals)
            if has_places:
                settle(self.log, self._stream)  # it may take a number of its own
            self.arrived_us = self._clock()
            found = marked(
                self.log,
                self._stream,
                behind,
                arrival_us=self.arrived_us,
                decoded=arrivals[0].decoded if is_known else None,
            )
            if has_places:
                self._announce(found.payload, arrivals, rows)
            append_records(
                self.log,
                self._stream,
                found.payload,
                arrival_us=self.arrived_us,
                live=arrivals[0].is_live,
                is_judged=True,
                decoded=found.decoded,
            )
            return self.log.end() - 1, found.ahead

    def _owned(self, payload: bytes, arrival: Arrival) -> bytes:
        """A payload that says whose its records are, where that follows from where they come from."""
        origin = self._stream.columns.object_from
        owner = self._source if origin == "source" else arrival.owner
        if origin is None or not owner:
            return payload
        return also(payload, SaidBefore(owners=(owner,)))

    def _announce(
        self, payload: bytes, arrivals: Sequence[Arrival], rows: Sequence[int]
    ) -> None:
        """Says where the source goes on behind the next segment."""
        places = _behind(arrivals, rows, segment=self.log.end())
        try:
            self.places.announce(payload, places, once=_own_places(arrivals))
        except MovedError:
            self._memory.forget()  # it was of records that are read again
            raise


def _behind(
    arrivals: Sequence[Arrival], rows: Sequence[int], *, segment: int
) -> Mapping[str, int]:
    """Where the source goes on behind some arrivals that will be a segment, each from a row of it on."""
    places: dict[str, int] = {}
    for one, row in zip(arrivals, rows, strict=False):
        own = position_of(segment, row)
        places |= {part: _placed(at, own) for part, at in one.places.items()}
    return places


def _own_places(arrivals: Sequence[Arrival]) -> set[str]:
    """The parts that name an arrival itself, not how far its source has come."""
    return {p for one in arrivals for p, at in one.places.items() if at <= HERE}


def segments_of(arrivals: Sequence[Arrival]) -> Iterator[Sequence[Arrival]]:
    """Arrivals as they go into segments, in their order: lines with the same header, live or not, stand together."""
    alike = attrgetter("is_lines", "is_live", "owner")
    for (is_lines, _, _), run in groupby(arrivals, key=alike):
        if not is_lines:
            yield from ([one] for one in run)
            continue
        for _, lines in groupby(run, key=lambda one: one.header):
            yield from _up_to(_MOST_BYTES, list(lines))


def _payload(arrivals: Sequence[Arrival]) -> bytes:
    """The bytes of those of one segment."""
    return arrivals[0].header + b"".join(one.body for one in arrivals)


def _up_to(most_bytes: int, arrivals: Sequence[Arrival]) -> Iterator[Sequence[Arrival]]:
    """Adjacent arrivals with at most so many bytes; a larger one stands alone."""
    start = size = 0
    for at, one in enumerate(arrivals):
        if at > start and size + one.size > most_bytes:
            yield arrivals[start:at]
            start = at
            size = 0
        size += one.size
    yield arrivals[start:]
