"""What a capture says about itself: one record for each source, `streams/S/captures/SOURCE.json`."""

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path

from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.operations.process import Owner, lives, this_process
from st_common.operations.records import read_record, write_record

_FOLDER = "captures"
_SILENT_US = (
    20_000_000  # a capture that has said nothing for so long has ended, or hangs
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureNote:
    """What a capture has done since it was started.

    Attributes:
        source: its name.
        kind: of the source.
        records: how many are stored.
        bytes: likewise.
        segments: how many segments these are.
        skipped: records that were left out, because more came than could be stored.
        waiting_bytes: what has arrived and is not stored yet.
        reconnects: how often it had to connect again.
        arrived_us: when something arrived last, us UTC; None: not yet.
        error: why the connection broke off, until something arrives again; None: all is well.
        warning: why most of what it brings cannot be read; None: it can.
        doubts: how often something that was sent is lost, or may be.
        doubted: what it was the last time; "": nothing.
        beat_us: when this was said, us UTC.
        owner: the process.
    """

    source: str
    kind: str
    records: int
    bytes: int
    segments: int
    skipped: int
    waiting_bytes: int
    reconnects: int
    arrived_us: int | None
    error: str | None
    warning: str | None = None
    doubts: int = 0
    doubted: str = ""
    beat_us: int = 0
    owner: Owner | None = None

    def is_captured(self, *, now_us: int) -> bool:
        """Whether the process that wrote this lives and still captures the source: it says so every two seconds."""
        is_young = abs(now_us - self.beat_us) < _SILENT_US
        return is_young and self.owner is not None and lives(self.owner)


class Notes:
    """Writes the note of one source.

    Args:
        home: the home folder.
        stream: the name of the stream.
        source: the name of the source.
    """

    def __init__(self, home: Home, stream: str, source: str) -> None:
        self._path = _folder(home, stream) / f"{source}.json"
        self._owner = this_process()

    def write(self, note: CaptureNote) -> None:
        """Writes a note in the place of the one before.

        Raises:
            StorageError: the disk is full, or refuses.
        """
        record = dataclasses.asdict(note)
        for key in ("error", "warning", "doubted"):
            record[key] = None if record[key] is None else redacted(record[key])
        record |= {"beat_us": time.time_ns() // 1000, "owner": self._owner.to_json()}
        write_record(self._path, record)


def read_notes(home: Home, stream: str) -> list[CaptureNote]:
    """The notes of a stream's sources, by name; none where none was ever captured."""
    notes = []
    for path in sorted(_folder(home, stream).glob("*.json")):
        record = read_record(path)
        if record is not None:
            owner = Owner.from_json(record.pop("owner", None) or {})
            notes.append(CaptureNote(**record, owner=owner))
    return notes


def _folder(home: Home, stream: str) -> Path:
    return home.stream(stream) / _FOLDER
