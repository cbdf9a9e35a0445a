"""The local engine's changes that no table holds yet, told batch by batch.

    streams/S/local/journal-00000007.bin    of the engine whose lease has the epoch 7

They follow from rows of the log that are durable, so they need not be: an engine that starts again makes the same ones.
Each owner writes a file of its own, and readers take that of the newest: one that was overtaken disturbs nobody.

A batch names the position of the change before it. So it is seen where something is missing in front of it: a power cut
or a restored copy took versions of the table, and the journal of the engine that had filled it still lies there.

    table ends with    batches (behind: rows)        told
    40                 40: 45, 50    50: 55          45, 50, 55
    20                 40: 45, 50    50: 55          nothing, until an engine has told again what is behind 20
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.storage import make_folder

_PREFIX = "journal-"
_HEAD = struct.Struct("<QqI")
"""Of the bytes that follow the length, the position that they are behind, and the CRC-32 of both."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that were told at once.

    Attributes:
        behind: the position of the change that was told before them; -1: none was.
        rows: the changes, as the table `changes` holds them.
    """

    behind: int
    rows: pa.Table

    @property
    def greatest(self) -> int:
        """The position of the last change; -1 without any."""
        return int(pc.max(self.rows["position"]).as_py()) if len(self.rows) else -1


def without_gap(batches: Sequence[Batch], place: int) -> list[pa.Table]:
    """The rows of batches that go on where a table ends; those behind a gap are left out.

    Args:
        batches: in the order in which they were told.
        place: a position up to which the table has all changes.
    """
    rows = []
    for batch in batches:
        if batch.behind <= place:
            rows.append(batch.rows)
            place = max(place, batch.greatest)
    return rows


class Journal:
    """An append-only file of batches of changes that no table holds yet; emptied once a table has them.

    Args:
        home: the home folder.
        stream: the stream.
        epoch: the epoch of the owner's lease. The file is named by it; files of lower epochs are removed.
    """

    def __init__(self, home: Home, stream: str, *, epoch: int) -> None:
        folder = _folder(home, stream)
        make_folder(folder)
        path = folder / f"{_PREFIX}{epoch:08d}.bin"
        self._file = path.open("ab")
        self.clear()
        for earlier in folder.glob(f"{_PREFIX}*.bin"):
            if earlier.name < path.name:
                earlier.unlink(missing_ok=True)

    def append(self, changes: pa.Table, *, behind: int) -> None:
        """Adds a batch: every reader can see it when this returns. It is not made durable, see the module.

        Args:
            changes: rows of changes, as the table `changes` holds them.
            behind: the position of the change that was told before them, -1 for none.
        """
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, changes.schema) as writer:
            writer.write_table(changes)
        body = sink.getvalue()
        self._file.write(_HEAD.pack(body.size, behind, _sum_of(body, behind)))
        self._file.write(body)  # tens of megabytes, which are not copied
        self._file.flush()

    def clear(self) -> None:
        """Empties the file: after a commit to the table, and at a start, for a start makes the same rows again."""
        self._file.truncate(0)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def journal_path(home: Home, stream: str) -> Path | None:
    """The journal of the newest owner of a stream; None before the first."""
    return max(_folder(home, stream).glob(f"{_PREFIX}*.bin"), default=None)


def _folder(home: Home, stream: str) -> Path:
    return home.stream(stream) / "local"


def pending(home: Home, stream: str) -> list[Batch]:
    """The batches in the newest journal of a stream, in the order in which they were told; none where it is empty.

    A batch that is being written is left out. Some rows may be in the table as well: those at or before the position
    that the table's app transaction `engine` names, which the reader leaves out. What it takes is `without_gap`.
    """
    path = journal_path(home, stream)
    try:
        data = path.read_bytes() if path else b""
    except (
        FileNotFoundError
    ):  # a newer owner's stands there instead; it is as good as empty
        return []
    return [batch for _, batch in _batches(data)]


class JournalTail:
    """Reads each batch of a stream's journal once, while engines add to it, empty it, and take over.

    A file that was emptied and filled again is known by its first bytes: the head of the batch that was read last is no
    longer where it was.
    """

    def __init__(self, home: Home, stream: str) -> None:
        self._home, self._stream = home, stream
        self._path: Path | None = None
        self._seen: tuple[int, ...] = ()
        self._last, self._head = (
            0,
            b"",
        )  # of the last batch: where it stands, how it begins

    def read(self) -> list[Batch]:
        """The batches since the last call, in the order in which they were told; none when nothing is new.

        One that finds nothing costs a look at the file's size and time. After an engine's restart some rows come a
        second time, in batches of the new engine; a reader drops them by their position.
        """
        self._find()
        if self._path is None:
            return []
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return []
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return []
        self._seen = seen
        batches = self._from_last()
        if batches is None:  # it was emptied: what stands there now is another batch
            self._last, self._head = 0, b""
            batches = self._from_last() or []
        return batches

    def _find(self) -> None:
        """Looks which journal is the newest; another one is read from its beginning."""
        newest = journal_path(self._home, self._stream)
        if newest != self._path:
            self._path, self._seen, self._last, self._head = newest, (), 0, b""

    def _from_last(self) -> list[Batch] | None:
        """The batches behind the last one; None when that one is not there any more."""
        if self._path is None:
            return []
        with self._path.open("rb") as file:
            file.seek(self._last)
            data = file.read()
        batches, told = list(_batches(data)), bool(self._head)
        if sum(length for length, _ in batches) < len(data):
            self._seen = ()  # some of it is being written, or is not seen yet: it is looked at again
        if told and not (batches and data.startswith(self._head)):
            return None
        if batches:
            at = sum(length for length, _ in batches[:-1])
            self._last, self._head = self._last + at, data[at : at + _HEAD.size]
        return [batch for _, batch in batches[told:]]


def _sum_of(body: pa.Buffer | bytes, behind: int) -> int:
    return zlib.crc32(body, zlib.crc32(behind.to_bytes(8, "little", signed=True)))


def _batches(data: bytes) -> Iterator[tuple[int, Batch]]:
    """The whole batches in these bytes, each with its length; what is cut off at the end is left out."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, behind, crc = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + length]
        if not length or len(body) < length or _sum_of(body, behind) != crc:
            return  # while a file is emptied its readers may see zeros
        yield _HEAD.size + length, Batch(behind, pa.ipc.open_stream(body).read_all())
        at += _HEAD.size + length
