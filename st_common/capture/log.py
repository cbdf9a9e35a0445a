"""The log of one stream: numbered segments, in one total order, never rewritten.

    log/segments/00000000/000000000007.seg    segment 7; ten thousand in a folder
    log/raw/00000000/000000000007-89abcdef.raw    the bytes of segment 7 as they arrived, when it holds what was decoded
    log/readers/NAME.json                     the next segment that a reader needs
    log/skipped/000000000007.json             why segment 7, which is damaged or missing, is passed over
    log/reading.json                          how the first records are read: see `reading`

The number of a segment is its name, and a name is given once: whoever makes segment 7 first has it, another one takes
8. So the order needs no lock (there is one all the same, so that writers wait instead of trying twice), and a reader
that has seen segment 6 looks for one name. A segment is stored whole, with the checksum of its bytes: see `segment`.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from st_common.capture.keys import SEGMENTS, folder_of, key_of, number_of, raw_key
from st_common.capture.segment import (
    HEADER_BYTES,
    SEGMENT_LIMIT,
    Marks,
    Segment,
    as_packet,
    make_segment,
    payload_of,
    read_header,
    stand_in,
    to_bytes,
)
from st_common.errors import LogError, MissingError
from st_common.home import checked_name
from st_common.storage import LocalStorage, Storage

__all__ = ["SEGMENT_LIMIT", "Log", "Segment"]

_STEPS = (
    64  # so many new segments are looked for one by one before the folder is listed
)
_READERS = "readers"
_SKIPPED = "skipped"
_OLD_FOLDER = "landing"  # of versions before segments had headers


class Log:
    """The log of a stream. Making one touches nothing; the first append makes the folders."""

    def __init__(self, folder: Path, *, storage: Storage | None = None) -> None:
        self._folder = folder
        self._storage = LocalStorage(folder) if storage is None else storage
        self._end: int | None = None  # a number that the log has reached for certain
        self._settle: Callable[[], object] | None = None
        self._synced = (
            0  # the number behind the segments that were made, and so synced, here last
        )

    @property
    def storage(self) -> Storage:
        """Where the log's objects lie."""
        return self._storage

    def settle_by(self, settle: Callable[[], object]) -> None:
        """From now on `settle` is called before records are appended, so that they are read as who appends means."""
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

        `reading` says that it is the control row that `reading.settle` writes. `coded` gives, for an arrival, what was
        decoded of the payload: that is stored in its place, and the payload beside it, before the segment has a name.

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
        """
        marks = Marks(
            arrival_us=arrival_us,
            control=control,
            clock=clock,
            live=live,
            timeless=timeless,
        )
        return self._append(list(payloads), marks)

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
                segments = self._behind_the_last(bodies, marks)
                stored = bodies
                if coded is not None:
                    segments, stored = self._coded(segments[0], bodies[0], coded)
                pairs = zip(segments, stored, strict=True)
                objects = [
                    (key_of(one.number), to_bytes(one, body)) for one, body in pairs
                ]
                self._sync_before(segments)
                if not objects or self._storage.create_all(objects):
                    break
                self._end = None  # somebody who does not hold the lock was quicker
            if segments:
                self._end = self._synced = segments[-1].number + 1
        return segments

    def _settler(self, marks: Marks) -> Callable[[], object]:
        """What says how the records are read that are appended; of control rows there is one reading."""
        if marks.of_rows:
            return lambda: None
        if self._settle is None:
            raise LogError(
                f"nobody has said how records that are appended to {self._folder} are read",
                hint="open the log by `log_for(home, stream)` of st_common.capture.reading",
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

    def segments(
        self,
        start: int,
        *,
        max_bytes: int | None = None,
        max_segments: int | None = None,
        end: int | None = None,
    ) -> list[Segment]:
        """The segments from number `start` on, without a gap, up to `end` (not included).

        With `max_bytes` and `max_segments` as many as stay within them, but at least one if there is one; empty from
        the log's end on.

        Raises:
            LogError: a number is missing, or the header of a segment is damaged.
        """
        found: list[Segment] = []
        total = 0
        for segment in self._from(start, end):
            total += segment.size
            if found and max_bytes is not None and total > max_bytes:
                break
            found.append(segment)
            if len(found) == max_segments:
                break
        return found

    def _from(self, start: int, end: int | None) -> Iterator[Segment]:
        number, skipped = start, self._skipped()
        while end is None or number < end:
            segment = (
                self._segment(number, skipped)
                if number in skipped
                else self._segment_or_none(number)
            )
            if segment is None:
                self._check_end(number)
                return
            yield segment
            number += 1
            self._end = max(self._end or 0, number)

    def _check_end(self, number: int) -> None:
        """Makes sure that the log ends before `number`: otherwise a segment is missing."""
        known = self.end() if self._end is None else self._end
        if number < known or self._storage.exists(key_of(number + 1)):
            if self._storage.exists(key_of(number)):
                return  # it came in between
            raise LogError(
                f"{self._folder}: segment {number} is missing",
                hint=f"restore {key_of(number)} from a copy; without one `fairway streams skip` passes over it",
            )

    def control_segments(self, start: int, *, clocks: bool = False) -> list[Segment]:
        """The segments of control rows from number `start` on, in order; with those that are clocks only on request.

        Costs as many reads as there are statements; with `clocks` as there are segments.
        """
        if clocks:
            return [segment for segment in self._from(start, None) if segment.control]
        found: list[Segment] = []
        number, skipped = self.end() - 1, self._skipped()
        while number >= start:
            segment = self._segment(number, skipped)
            if segment.statement:
                found.append(segment)
            number = segment.statement_before
        return found[::-1]

    def segment(self, number: int) -> Segment:
        """What the header of one segment says.

        Raises:
            LogError: it is missing or damaged.
        """
        return self._segment(number, self._skipped())

    def read(self, segment: Segment) -> bytes:
        """The payload of a segment.

        Raises:
            LogError: it is missing or damaged.
        """
        if segment.skipped:
            return b""
        where = self.place(segment.number)
        data = self._read(segment.number)
        return payload_of(read_header(data, segment.number, where), data, where)

    def raw(self, segment: Segment) -> bytes:
        """The bytes of a segment as they arrived.

        Raises:
            LogError: they are damaged, or gone, for those of a packet are kept for a time only.
        """
        if not segment.packet:
            return self.read(segment)
        key = raw_key(segment)
        try:
            data = self._storage.read(key)
        except MissingError:
            raise LogError(
                f"the raw bytes of segment {segment.number} are gone",
                hint="`raw_days` says how long they are kept",
            ) from None
        if zlib.crc32(data) != segment.raw_checksum:
            raise LogError(
                f"{self._folder / key} is damaged: its bytes were changed",
                hint="restore it from a copy",
            )
        return data

    def has_raw(self, segment: Segment) -> bool:
        """Whether the bytes of a segment are there as they arrived."""
        return not segment.packet or self._storage.exists(raw_key(segment))

    def skip(self, number: int, why: str) -> None:
        """Lets readers pass over a segment that is damaged or missing: what it held is lost, and everybody reads so.

        Raises:
            LogError: it is whole, or the log does not reach that far.
        """
        with self.locked():
            if not 0 <= number < self.end():
                raise LogError(
                    f"{self._folder} has no segment {number}",
                    hint=f"it ends before {self.end()}",
                )
            try:
                self.read(self._segment(number, {}))
            except LogError as error:
                record = json.dumps({"why": why, "was": error.message}).encode()
            else:
                raise LogError(
                    f"segment {number} is whole", hint="nothing has to pass over it"
                )
            self._storage.put(f"{_SKIPPED}/{number:012d}.json", record)

    def skipped(self) -> dict[int, str]:
        """The segments that are passed over, each with what was wrong and why it was given up."""
        return {number: self._reason(key) for number, key in self._skipped().items()}

    def _skipped(self) -> dict[int, str]:
        """The keys of the records of skipped segments, by number."""
        names = self._storage.names(_SKIPPED)
        return {int(name.removesuffix(".json")): f"{_SKIPPED}/{name}" for name in names}

    def _reason(self, key: str) -> str:
        record = json.loads(self._storage.read(key))
        return f"{record['was']}; {record['why']}"

    def place(self, number: int) -> str:
        """Where a segment lies, for people."""
        return str(self._folder / key_of(number))

    def end(self) -> int:
        """The number after the newest segment; 0 when the log is empty."""
        number = self._end
        if number is None or (number and not self._storage.exists(key_of(number - 1))):
            number = self._listed_end()
        for _ in range(_STEPS):
            if not self._storage.exists(key_of(number)):
                break
            number += 1
        else:
            number = self._listed_end()
        self._end = number or None
        return number

    def _listed_end(self) -> int:
        for folder in reversed(self._storage.names(SEGMENTS)):
            names = self._storage.names(f"{SEGMENTS}/{folder}")
            if names:
                return number_of(names[-1], str(self._folder)) + 1
        if self._storage.names(_OLD_FOLDER):
            raise LogError(
                f"{self._folder} was written by an older version",
                hint="begin the stream in a new home",
            )
        return 0

    def sync(self, segments: Iterable[Segment]) -> None:
        """Makes sure that segments which were read survive a power cut, also when their writer died before it had."""
        for folder in sorted({folder_of(segment.number) for segment in segments}):
            self._storage.sync(folder)

    def locked(self) -> AbstractContextManager[None]:
        """Holds the log's lock against other processes and threads; the same thread may enter it again."""
        return self._storage.locked("lock")

    def publish(self, reader: str, position_segment: int) -> None:
        """Says that `reader` still needs the segments from number `position_segment` on, and none before."""
        key = f"{_READERS}/{checked_name(reader, 'reader')}.json"
        self._storage.put(key, json.dumps({"segment": position_segment}).encode())

    def reader_positions(self) -> dict[str, int]:
        """The next segment that each published reader needs, by its name; 0 for one whose record cannot be read."""
        names = [
            name for name in self._storage.names(_READERS) if name.endswith(".json")
        ]
        return {
            name.removesuffix(".json"): self._position_in(f"{_READERS}/{name}")
            for name in names
        }

    def _position_in(self, key: str) -> int:
        try:
            return int(json.loads(self._storage.read(key))["segment"])
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

    def _segment(self, number: int, skipped: Mapping[int, str]) -> Segment:
        if number in skipped:
            return stand_in(self._segment(number - 1, skipped) if number else None)
        return read_header(
            self._read(number, length=HEADER_BYTES), number, self.place(number)
        )

    def _segment_or_none(self, number: int) -> Segment | None:
        try:
            data = self._storage.read(key_of(number), length=HEADER_BYTES)
        except MissingError:
            return None
        return read_header(data, number, self.place(number))

    def _read(self, number: int, *, length: int | None = None) -> bytes:
        try:
            return self._storage.read(key_of(number), length=length)
        except MissingError:
            raise LogError(
                f"{self.place(number)} is missing", hint="restore it from a copy"
            ) from None
