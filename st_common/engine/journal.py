"""The local engine's changes that no table holds yet, told batch by batch.

    streams/S/local/journal-00000007.bin    of the engine whose lease has the epoch 7

They follow from rows of the log that are durable, so they need not be: an engine that starts again makes the same ones.
Each owner writes a file of its own, and readers take that of the newest: one that was overtaken disturbs nobody.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from st_common.home import Home
from st_common.storage import make_folder

_PREFIX = "journal-"
_HEAD = struct.Struct("<QI")  # length and CRC-32 of the bytes that follow


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

    def append(self, changes: pa.Table) -> None:
        """Adds a batch: every reader can see it when this returns. It is not made durable, see the module.

        Args:
            changes: rows of changes, as the table `changes` holds them.
        """
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, changes.schema) as writer:
            writer.write_table(changes)
        body = sink.getvalue()
        self._file.write(_HEAD.pack(body.size, zlib.crc32(body)))
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


def pending(home: Home, stream: str) -> pa.Table | None:
    """The batches in the newest journal of a stream as one table, in the order in which they were told.

    A batch that is being written is left out. Some rows may be in the table as well: those at or before the position
    that the table's app transaction `engine` names, which the reader leaves out.

    Returns:
        None when the journal is empty, or there is none.
    """
    path = journal_path(home, stream)
    try:
        data = path.read_bytes() if path else b""
    except (
        FileNotFoundError
    ):  # a newer owner's stands there instead; it is as good as empty
        return None
    tables = [batch for _, batch in _batches(data)]
    return pa.concat_tables(tables) if tables else None


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

    def read(self) -> list[pa.Table]:
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

    def _from_last(self) -> list[pa.Table] | None:
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


def _batches(data: bytes) -> Iterator[tuple[int, pa.Table]]:
    """The whole batches in these bytes, each with its length; what is cut off at the end is left out."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, crc = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + length]
        if not length or len(body) < length or zlib.crc32(body) != crc:
            return  # while a file is emptied its readers may see zeros
        yield _HEAD.size + length, pa.ipc.open_stream(body).read_all()
        at += _HEAD.size + length
