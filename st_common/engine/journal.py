"""The local engine's changes that no table holds yet: fsynced batch by batch, so they count as committed."""

import os
import struct
import zlib
from pathlib import Path

import pyarrow as pa

from st_common.home import Home

_HEAD = struct.Struct("<QI")  # length and CRC-32 of the bytes that follow


class Journal:
    """An append-only file of batches of changes; emptied once a table has them."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self.clear()

    def append(self, changes: pa.Table) -> None:
        """Stores a batch; when it returns, the batch survives a crash of the machine."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, changes.schema) as writer:
            writer.write_table(changes)
        body = sink.getvalue().to_pybytes()
        self._file.write(_HEAD.pack(len(body), zlib.crc32(body)) + body)
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def clear(self) -> None:
        """Forgets everything: after a commit to the table, and at a start, for a start makes the same rows again."""
        self._file.truncate(0)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def journal_path(home: Home, stream: str) -> Path:
    """Where the local engine of a stream keeps its journal."""
    return home.stream(stream) / "local" / "journal.bin"


def pending(home: Home, stream: str) -> pa.Table | None:
    """The batches in the journal, one after the other, or None when there are none.

    A batch that is being written is left out. Some rows may be in the table as well: those at or before the position
    that the table's app transaction `engine` names.
    """
    path = journal_path(home, stream)
    if not path.exists():
        return None
    data, tables, at = path.read_bytes(), [], 0
    while at + _HEAD.size <= len(data):
        length, crc = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(body) < length or zlib.crc32(body) != crc:
            break
        tables.append(pa.ipc.open_stream(body).read_all())
        at += _HEAD.size + length
    return pa.concat_tables(tables) if tables else None
