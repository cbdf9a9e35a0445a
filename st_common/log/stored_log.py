"""What stands in the log of one stream, for readers: its segments, in one total order, without a gap.

    log/segments/00000000/000000000007.seg    segment 7; ten thousand in a folder
    log/raw/00000000/000000000007-89abcdef.raw    the bytes of segment 7 as they arrived, when it holds what was decoded
    log/packs/, log/raw-packs/                what has lain there for a while, in few files: see `packs`
    log/skipped/000000000007.json             why segment 7, which is damaged or missing, is passed over
    log/purged.json                           {"before": 7}: of what lies before segment 7 only control rows are left

A reader that has seen segment 6 looks for one name. A hole, or a segment whose bytes were changed, is an error that
names the file, never an end: only `skipped` lets a reader pass over one.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from st_common.errors import LogError, MissingError
from st_common.log.keys import SEGMENTS, folder_of, key_of, number_of, raw_key
from st_common.log.packs import RAW_PACKS, Packs
from st_common.log.segment import (
    HEADER_BYTES,
    Segment,
    mark_of,
    payload_of,
    read_header,
    stand_in,
)
from st_common.observed import note_read
from st_common.record import opened
from st_common.storage import LocalStorage, Storage

SKIPPED = "skipped"
PURGED = "purged.json"
_STEPS = (
    64  # so many new segments are looked for one by one before the folder is listed
)
_OLD_FOLDER = "landing"  # of versions before segments had headers


class StoredLog:
    """The segments of a log as they are stored. Making one touches nothing, and nothing here appends.

    Args:
        folder: where the log lies, `streams/S/log` of a home.
        storage: what holds its objects; by default the files below the folder.
    """

    def __init__(self, folder: Path, *, storage: Storage | None = None) -> None:
        self._folder = folder
        self._storage = LocalStorage(folder) if storage is None else storage
        self._end: int | None = None  # a number that the log has reached for certain
        self.packs = Packs(self._storage)
        """Segments that have lain for a while."""
        self.raw_packs = Packs(self._storage, RAW_PACKS)
        """Raw bytes of their packets."""

    @property
    def stream(self) -> str:
        """The stream's name, as its folder has it; for errors."""
        return self._folder.parent.name

    @property
    def folder(self) -> Path:
        """Where it lies, `streams/S/log` of a home."""
        return self._folder

    @property
    def storage(self) -> Storage:
        """Where the log's objects lie."""
        return self._storage

    def segments(
        self,
        start: int,
        *,
        max_bytes: int | None = None,
        max_segments: int | None = None,
        end: int | None = None,
    ) -> list[Segment]:
        """The headers of segments from a number on, without a gap; empty from the log's end on.

        Args:
            start: the number of the first.
            max_bytes: how large their payloads may be together; the first one may be larger.
            max_segments: how many there may be.
            end: the number to stop before; None: the log's end.

        Raises:
            LogError: a number is missing, or the header of a segment is damaged.
        """
        segments: list[Segment] = []
        total = 0
        for segment in self._from(start, end):
            total += segment.size
            if segments and max_bytes is not None and total > max_bytes:
                break
            segments.append(segment)
            if len(segments) == max_segments:
                break
        return segments

    def first(self) -> int:
        """The first number from which on no segment is gone; of those before it, control rows alone are left."""
        spans = self.packs.spans()
        return spans[0].end if spans and spans[0].is_rest else 0

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
        """Makes sure that the log ends before `number`: otherwise a segment is missing, or was purged."""
        self._refuse_gone(number)
        # A writer may have named this very segment since it was looked for, so its absence is checked again.
        known = self.end() if self._end is None else self._end
        if number < known or self._exists(number + 1):
            if self._exists(number):
                return  # it came in between
            raise LogError(
                f"{self._folder}: segment {number} is missing",
                hint=f"restore {key_of(number)} from a copy; without one `fairway streams skip` passes over it",
            )

    def control_segments(
        self, start: int, *, clocks: bool = False, end: int | None = None
    ) -> list[Segment]:
        """The headers of control segments from a number on, in order.

        They are followed backwards from the log's end, each naming the one before it, so this costs as many reads as
        there are statements; with `clocks` as there are segments.

            segment             0   1   2   3   4   5      S statement, c clock, . records
                                S   .   S   c   .   .
            statement before   -1   0   0   2   2   2
            from 0              0, 2; with clocks 0, 2, 3

        Args:
            start: the number of the first segment that may be among them.
            clocks: those that only say how late it is, too.
            end: with `clocks` the number to stop before; None: the log's end.

        Raises:
            LogError: a segment is missing, or the header of one is damaged.
        """
        if clocks:
            rest = self._from(max(start, self.first()), end)
            kept = [one for one in self.kept(start) if end is None or one.number < end]
            return [one for one in (*kept, *rest) if one.control]
        return [*self.statements_backwards(start)][::-1]

    def statements_backwards(self, start: int = 0) -> Iterator[Segment]:
        """The headers of segments of statements down to a number, the newest first, each read when it is asked for.

        Raises:
            LogError: a segment is missing, or the header of one is damaged.
        """
        number, skipped = self.end() - 1, self._skipped()
        while number >= start:
            segment = self._segment(number, skipped)
            if segment.statement:
                yield segment
            number = segment.statement_before

    def kept(self, start: int = 0) -> list[Segment]:
        """What retention has left of the segments in front of `first`, from a number on: control rows, some headers."""
        if start >= self.first():
            return []
        skipped = self._skipped()
        numbers = self.packs.index(self.packs.spans()[0]).numbers
        return [self._segment(int(one), skipped) for one in numbers[numbers >= start]]

    def segment(self, number: int) -> Segment:
        """The header of one segment.

        Raises:
            LogError: it is missing or damaged.
        """
        return self._segment(number, self._skipped())

    def mark(self, number: int) -> int:
        """What tells a segment from one of the same number in another log; see `segment.mark_of`.

        Raises:
            LogError: it is missing or damaged.
        """
        return mark_of(self.segment(number))

    def read(self, segment: Segment) -> bytes:
        """The payload of a segment: records, control rows or a packet; empty for one that is passed over.

        Raises:
            LogError: it is missing or damaged.
        """
        if segment.skipped:
            return b""
        if not segment.control:
            note_read(self._folder)
        where = self.place(segment.number)
        data = self._read(segment.number)
        if len(data) == HEADER_BYTES < HEADER_BYTES + segment.size:
            self._refuse_purged(segment)
        return payload_of(read_header(data, segment.number, where), data, where)

    def purged_before(self) -> int:
        """The segment before which records are gone, all but their headers; 0 when none are.

        Raises:
            LogError: what says so was damaged.
        """
        return self.purged()[0]

    def purged(self) -> tuple[int, int]:
        """The segment before which records are gone, and the one before which nothing is left to be taken.

        The second is behind while a purge is under way, or was killed.

        Raises:
            LogError: what says so was damaged.
        """
        try:
            noted = opened(self._storage.read(PURGED))
            return int(noted["before"]), int(noted["done"])
        except MissingError:
            return 0, 0
        except (ValueError, KeyError, TypeError):
            raise LogError(
                f"{PURGED} of the log of stream {self.stream!r} cannot be read",
                hint="it says which records were purged: restore it from a copy",
            ) from None

    def is_purged(self, segment: Segment) -> bool:
        """Whether the records of a segment may be gone."""
        return not segment.control and segment.number < self.purged_before()

    def _refuse_gone(self, number: int) -> None:
        """Says that a segment is gone, where retention has passed."""
        if number < self.first():
            raise self._purged(number, self.first())

    def _refuse_purged(self, segment: Segment) -> None:
        if self.is_purged(segment):
            raise self._purged(segment.number, self.purged_before())

    def _purged(self, number: int, before: int) -> LogError:
        return LogError(
            f"the records of segment {number} of stream {self.stream!r} were purged, as all before segment {before}",
            hint="`log_days` of the stream says how long they are kept",
        )

    def raw(self, segment: Segment) -> bytes:
        """The bytes of a segment as they arrived, also where a packet is stored in their place.

        Raises:
            LogError: they are damaged, or gone, for those of a packet are kept for `raw_days` only.
        """
        if not segment.packet:
            return self.read(segment)
        try:
            data = self.stored_raw(segment)
        except MissingError:
            self._refuse_purged(segment)
            raise LogError(
                f"the raw bytes of segment {segment.number} are gone",
                hint="`raw_days` says how long they are kept",
            ) from None
        if zlib.crc32(data) != segment.raw_checksum:
            raise LogError(
                f"{self._raw_place(segment)} is damaged: its bytes were changed",
                hint="restore it from a copy",
            )
        return data

    def stored(self, number: int, *, length: int | None = None) -> bytes:
        """The bytes of a segment as they are stored, in a pack or in a file of its own; nothing of them is checked.

        Raises:
            MissingError: there are none.
            LogError: the index of a pack is damaged.
        """
        if number < self.packs.end():
            return self.packs.read(number, length=length)
        try:
            return self._storage.read(key_of(number), length=length)
        except MissingError:  # it may have been packed since packs were listed
            if number >= self._packed_end(number):
                raise
        return self.packs.read(number, length=length)

    def stored_raw(self, packet: Segment) -> bytes:
        """The raw bytes of a packet as they are stored; nothing of them is checked.

        Raises:
            MissingError: there are none.
            LogError: the index of a pack is damaged.
        """
        if packet.number < self.raw_packs.end():
            return self.raw_packs.read(packet.number)
        try:
            return self._storage.read(raw_key(packet))
        except MissingError:
            if packet.number >= self.raw_packs.end(anew=True):
                raise
        return self.raw_packs.read(packet.number)

    def has_raw(self, segment: Segment) -> bool:
        """Whether the bytes of a segment as they arrived are still there."""
        return (
            not segment.packet
            or self._storage.exists(raw_key(segment))
            or self.raw_packs.has(segment.number)
        )

    def skipped(self) -> dict[int, str]:
        """The segments that are passed over, by number, each with what was wrong and why it was given up."""
        return {number: self._reason(key) for number, key in self._skipped().items()}

    def place(self, number: int) -> str:
        """The path of the file that has a segment, for people."""
        span = self.packs.span(number)
        key = key_of(number) if span is None else self.packs.key(span)
        return str(self._folder / key)

    def _raw_place(self, packet: Segment) -> str:
        span = self.raw_packs.span(packet.number)
        key = raw_key(packet) if span is None else self.raw_packs.key(span)
        return str(self._folder / key)

    def end(self) -> int:
        """The number after the newest segment; 0 when the log is empty.

        It looks forward from the end that it knew, name by name. Folders are listed where it knew none, and after 64
        new segments.

        Raises:
            LogError: the log was written by a version before segments had headers, or another file lies among them.
        """
        number = self._end
        if number is None or (number and not self._exists(number - 1)):
            number = self._listed_end()
        # A look at one name is much cheaper than a listing, as long as few segments are new.
        for _ in range(_STEPS):
            if not self._exists(number):
                break
            number += 1
        else:
            number = self._listed_end()
        self._end = number or None
        return number

    def sync(self, segments: Iterable[Segment]) -> None:
        """Makes segments that were read survive a power cut, also when their writer died before it had."""
        for folder in sorted({folder_of(segment.number) for segment in segments}):
            self._storage.sync(folder)

    def _listed_end(self) -> int:
        for folder in reversed(self._storage.names(SEGMENTS)):
            names = self._storage.names(f"{SEGMENTS}/{folder}")
            if names:
                end = number_of(names[-1], str(self._folder)) + 1
                return max(end, self.packs.end(anew=True))
        if self._storage.names(_OLD_FOLDER):
            raise LogError(
                f"{self._folder} was written by an older version",
                hint="begin the stream in a new home",
            )
        return self.packs.end(anew=True)

    def _skipped(self) -> dict[int, str]:
        """The keys of the records of skipped segments, by number."""
        names = self._storage.names(SKIPPED)
        return {int(name.removesuffix(".json")): f"{SKIPPED}/{name}" for name in names}

    def _reason(self, key: str) -> str:
        record = opened(self._storage.read(key))
        return f"{record['was']}; {record['why']}"

    def _segment(self, number: int, skipped: Mapping[int, str]) -> Segment:
        if number in skipped:
            return stand_in(self._segment(number - 1, skipped) if number else None)
        return read_header(
            self._read(number, length=HEADER_BYTES), number, self.place(number)
        )

    def _segment_or_none(self, number: int) -> Segment | None:
        try:
            data = self.stored(number, length=HEADER_BYTES)
        except MissingError:
            return None
        return read_header(data, number, self.place(number))

    def _read(self, number: int, *, length: int | None = None) -> bytes:
        try:
            return self.stored(number, length=length)
        except MissingError:
            self._refuse_gone(number)
            raise LogError(
                f"{self.place(number)} is missing", hint="restore it from a copy"
            ) from None

    def _exists(self, number: int) -> bool:
        if number < self.packs.end():
            return True
        is_there = self._storage.exists(key_of(number))
        return is_there or number < self._packed_end(number)

    def _packed_end(self, number: int) -> int:
        """The number behind all packs: listed anew for one that the log is known to have, for it is in one of them."""
        return self.packs.end(anew=self._end is not None and number < self._end)
