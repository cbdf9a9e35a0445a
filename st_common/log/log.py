"""The log of one stream, for who appends: numbered segments, in one total order, never rewritten.

    log/readers/NAME.json    the next segment that a reader needs
    log/reading.json         how the first records are read: see `reading`

Where segments lie, and how they are read, is said in `stored_log`. The number of a segment is its name, and a name is
given once: whoever makes segment 7 first has it, another one takes 8. So the order needs no lock (there is one all the
same, so that writers wait instead of trying twice). A segment is stored whole, with the checksum of its bytes: see
`segment`. No reader is further than the log: where one is, segments were deleted, and nothing is appended.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from st_common.config.home import checked_name
from st_common.errors import LogError, MissingError
from st_common.log.event_time import EventTime
from st_common.log.keys import folder_of, key_of, raw_key
from st_common.log.packs import PAUSE_S, uptime_s
from st_common.log.segment import (
    SEGMENT_LIMIT,
    Marks,
    Segment,
    as_packet,
    make_segment,
    to_bytes,
)
from st_common.log.stored_log import SKIPPED, StoredLog
from st_common.observed import note_written
from st_common.record import opened, sealed
from st_common.storage import Storage

__all__ = ["SEGMENT_LIMIT", "Log", "Segment"]

_READERS = "readers"


class Log(StoredLog):
    """The log of a stream, for reading and appending. Making one touches nothing; the first append makes the folders.

    Args:
        folder: where the log lies, `streams/S/log` of a home.
        storage: what holds its objects; by default the files below the folder.
    """

    def __init__(self, folder: Path, *, storage: Storage | None = None) -> None:
        super().__init__(folder, storage=storage)
        self.event_time = EventTime()
        """How far it has come, as far as was looked at: see `appending.time_of`."""
        self._settle: Callable[[], object] | None = None
        self._synced = 0
        """The number behind the segments that were made here last, or synced: all before it are durable."""

    def settle_by(self, settle: Callable[[], object]) -> None:
        """Sets a function that is called under the log's lock before each append of records.

        It makes sure that they are read as whoever appends means: see `reading.log_for`.
        """
        self._settle = settle

    def append(
        self,
        payload: bytes,
        *,
        arrival_us: int,
        control: bool = False,
        clock: bool = False,
        live: bool = False,
        timeless: bool = False,
        reading: bool = False,
        coded: Callable[[int], bytes] | None = None,
    ) -> Segment:
        """Stores one segment and gives it back: durable, and the only one with its number. See `append_all`.

        Args:
            payload: whole records, or with `control` rows of JSON; fewer than 16 MiB.
            arrival_us: as in `append_all`.
            control: as in `append_all`.
            clock: as in `append_all`.
            live: as in `append_all`.
            timeless: as in `append_all`.
            reading: it is the control row that `reading.settle` writes.
            coded: gives, for the arrival (us UTC) that the segment got, what was decoded of the payload. That is stored
                in its place, and the payload beside it before the segment has a name.

        Raises:
            LogError: records, and nobody has said how they are read: see `reading.log_for`; a payload of 16 MiB or
                more, an arrival that cannot be, or live control rows.
            StorageError: the disk is full, or refuses.
        """
        marks = Marks(
            arrival_us=arrival_us,
            control=control,
            clock=clock,
            live=live,
            timeless=timeless,
            reading=reading,
        )
        return self._append([payload], marks, coded)[0]

    def append_all(
        self,
        payloads: Iterable[bytes],
        *,
        arrival_us: int,
        control: bool = False,
        clock: bool = False,
        live: bool = False,
        timeless: bool = False,
    ) -> list[Segment]:
        """Stores segments with adjacent numbers and one arrival, which is raised to that of the segment before them.

        All of them are written before the first gets its name, so an error or a full disk stores none. A crash while
        they are named leaves the first few: all or nothing holds only for what fits into one segment.

        Args:
            payloads: whole records, or with `control` rows of JSON.
            arrival_us: when they arrived, us UTC.
            control: they are control rows; see `control`.
            clock: control rows that only say how late it is: `control_segments` passes over them.
            live: records of a feed, told as they happen. After them time goes on while the feed is quiet; after those
                of a replay it stands still until more of them come.
            timeless: the records have no time but their arrival, each a microsecond of its own before it. So a segment
                of n lines arrives n microseconds after the one before, or later.

        Returns:
            The segments, in the order of the payloads.

        Raises:
            LogError: as `append`; or readers were further than the log's end, so segments must have been deleted.
            StorageError: the disk is full, or refuses.
        """
        marks = Marks(
            arrival_us=arrival_us,
            control=control,
            clock=clock,
            live=live,
            timeless=timeless,
        )
        return self._append(list(payloads), marks)

    def skip(self, number: int, why: str) -> None:
        """Lets readers pass over a segment that is damaged or missing: what it held is lost, for everybody.

        Args:
            number: the segment.
            why: for people; stored beside what was wrong with it.

        Raises:
            LogError: it is whole, or was purged, or the log does not reach that far.
        """
        with self.locked():
            if not 0 <= number < self.end():
                raise LogError(
                    f"{self._folder} has no segment {number}",
                    hint=f"it ends before {self.end()}",
                )
            if number < self.purged_before():
                raise LogError(
                    f"segment {number} is before {self.purged_before()}, up to where records were purged",
                    hint="no reader comes there any more",
                )
            try:
                self.read(self._segment(number, {}))
            except LogError as error:
                record = sealed({"why": why, "was": error.message})
            else:
                raise LogError(
                    f"segment {number} is whole", hint="nothing has to pass over it"
                )
            self._storage.put(f"{SKIPPED}/{number:012d}.json", record)

    def locked(self) -> AbstractContextManager[None]:
        """Holds the log's lock against other processes and threads; the same thread may enter it again."""
        return self._storage.locked("lock")

    def publish(self, reader: str, position_segment: int) -> None:
        """Records which segment a reader needs next; those before it, it never needs again.

        Args:
            reader: a name, one for each reader of the log.
            position_segment: the number of the segment.
        """
        key = f"{_READERS}/{checked_name(reader, 'reader')}.json"
        self._storage.put(key, sealed({"segment": position_segment}))

    def reader_positions(self) -> dict[str, int]:
        """The next segment that each published reader needs, by its name; 0 for one whose record cannot be read."""
        names = [
            name for name in self._storage.names(_READERS) if name.endswith(".json")
        ]
        return {
            name.removesuffix(".json"): self._position_in(f"{_READERS}/{name}")
            for name in names
        }

    def sync(self, segments: Iterable[Segment]) -> None:
        """See `StoredLog.sync`; those that are known to be durable, as all that were appended here, cost nothing."""
        others = [one for one in segments if one.number >= self._synced]
        super().sync(others)
        # Who made one had made durable what is in front of it: see `_sync_before`.
        self._synced = max((one.number + 1 for one in others), default=self._synced)

    def _append(
        self,
        bodies: list[bytes],
        marks: Marks,
        coded: Callable[[int], bytes] | None = None,
    ) -> list[Segment]:
        settle = self._settler(marks)
        with self.locked():
            settle()
            while True:
                looked_s = uptime_s()
                # Headers depend on the segment in front, so they are made anew when another writer took the number.
                segments = self._behind_the_last(bodies, marks)
                stored = bodies
                if coded is not None:
                    segments, stored = self._coded(segments[0], bodies[0], coded)
                pairs = zip(segments, stored, strict=True)
                objects = [
                    (key_of(one.number), to_bytes(one, body)) for one, body in pairs
                ]
                self._sync_before(segments)
                is_made = not objects or self._storage.create_all(objects)
                if is_made and not self._were_packed(segments, looked_s):
                    break
                self._end = None  # somebody who does not hold the lock was quicker
            if segments:
                self._end = self._synced = segments[-1].number + 1
                note_written(self._folder)
        return segments

    def _were_packed(self, segments: list[Segment], looked_s: float) -> bool:
        """Whether others had these numbers, and they are in packs: then what was made here is no segment, and goes.

        That can only be after a pause since this writer looked where the log ends, for nothing young is packed.
        """
        if not segments or uptime_s() - looked_s < PAUSE_S:
            return False
        packed = [one for one in segments if one.number < self.packs.end(anew=True)]
        for one in packed:
            self._storage.delete(key_of(one.number))
        return bool(packed)

    def _settler(self, marks: Marks) -> Callable[[], object]:
        """What says how the records are read that are appended; of control rows there is one reading."""
        if marks.of_rows:
            return lambda: None
        if self._settle is None:
            raise LogError(
                f"nobody has said how records that are appended to {self._folder} are read",
                hint="open the log by `log_for(home, stream)` of st_common.log.record_settings",
            )
        return self._settle

    def _coded(
        self, segment: Segment, raw: bytes, coded: Callable[[int], bytes]
    ) -> tuple[list[Segment], list[bytes]]:
        """The segment as a packet, whose raw bytes are stored; as it is, where a packet would be too large."""
        packet = coded(segment.arrival_us)
        if len(packet) >= SEGMENT_LIMIT:
            return [segment], [raw]
        made = as_packet(segment, packet)
        self._storage.create(
            raw_key(made), raw
        )  # one of this name that a dead writer left has the same bytes
        return [made], [packet]

    def _sync_before(self, segments: list[Segment]) -> None:
        """Makes durable what another writer made in front of these: it may have died before it had.

        Otherwise a power cut could take that one and leave the new ones: a hole.
        """
        if segments and segments[0].number != self._synced:
            self._storage.sync(folder_of(segments[0].number - 1))

    def _behind_the_last(self, bodies: list[bytes], marks: Marks) -> list[Segment]:
        end = self._end_behind_readers()
        last = self._segment(end - 1, self._skipped()) if end else None
        segments: list[Segment] = []
        for body in bodies:
            last = make_segment(body, last, marks)
            segments.append(last)
        return segments

    def _position_in(self, key: str) -> int:
        try:
            return int(opened(self._storage.read(key))["segment"])
        except (ValueError, KeyError, TypeError, MissingError):
            return 0  # torn by a full disk or a power cut: its reader writes it again

    def _end_behind_readers(self) -> int:
        """The log's end, which no reader has passed: they are asked first, for the log grows while one looks."""
        positions = self.reader_positions()
        end = self.end()
        ahead = {
            reader: position for reader, position in positions.items() if position > end
        }
        if ahead:
            raise LogError(
                f"{self._folder}: the log ends at segment {end}, but its readers were further: {ahead}",
                hint="segments were deleted; restore them, or `fairway streams reset` begins the stream anew",
            )
        return end
