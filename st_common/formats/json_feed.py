"""Formats whose records are JSON objects of a known kind: one a line, elements of an array, or of a document's list."""

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from st_common.formats.format import Format
from st_common.formats.format_settings import FormatSettings, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from st_common.formats.chunk import Begun, Chunk
    from st_common.formats.records import Reason, Records
    from st_common.formats.spans import Ints, Mask

_LEAST_CHUNK = (
    8 << 20
)  # bytes: a document below may say behind its list what is said of it
_HEAD = 1 << 20

Fields = Mapping[str, "pa.Array"]


class JsonFeed(Format):
    """Objects; their columns may stand under several names, and some are made of others."""

    crs = "EPSG:4326"

    drops_null_island = True

    lists: Sequence[str] = ()
    """The keys under which a document has its records, of which it has one."""

    kept: Sequence[str] = ()
    """What a document says beside its list that its records need, by path."""

    own: Mapping[str, Sequence[str]] = {}
    """By name what `reasons` and `column` look at, and where it stands; no column is called so."""

    @abstractmethod
    def paths(self, column: str) -> Sequence[str]:
        """Where a column may stand in a record; the first place that has it counts."""

    @abstractmethod
    def reasons(self, fields: "Fields") -> "Mapping[Reason, Mask]":
        """Which records are no fixes, by the values of `own`."""

    def column(self, name: str, values: "pa.Array", fields: "Fields") -> "pa.Array":
        """The values of a column, which stand in the records so, by these and the values of `own`."""
        return values

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of records, each on a line; of at most `size` bytes, raised to 8 MiB where it is less."""
        from st_common.formats.chunk import Begun
        from st_common.formats.ndjson_chunks import chunks_of_lines

        begun = Begun(source, size=_HEAD)
        return chunks_of_lines(self._lines(begun, max(size, _LEAST_CHUNK)))

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The records of a payload; of a format of lines each line is one."""
        from st_common.formats.chunk import Begun
        from st_common.formats.ndjson_records import read_columns, without
        from st_common.formats.records import Records, columns_read

        if not self.is_lines:
            size = max(len(payload) + 1, _LEAST_CHUNK)
            begun = Begun(io.BytesIO(payload), size=_HEAD)
            payload = b"".join(self._lines(begun, size))
        wanted = columns_read(stream)
        paths = {name: self.paths(name) for name in wanted}
        own = {f" {name}": of for name, of in self.own.items()}
        read = read_columns(self.plain(payload), {**own, **paths})
        looked_at = {name: read.fields[f" {name}"] for name in self.own}
        read = without(read, self.reasons(looked_at))
        looked_at = {name: read.fields[f" {name}"] for name in self.own}
        fields = {n: self.column(n, read.fields[n], looked_at) for n in wanted}
        return Records(fault=read.fault, fields=fields, raw=raw_lines(payload))

    def plain(self, lines: bytes) -> bytes:
        """Lines as JSON objects, each in its place, where they are none as they stand."""
        return lines

    def whole_bytes(self, payload: bytes) -> int:
        """All of them but for lines: a record shows by itself that it is cut."""
        return super().whole_bytes(payload) if self.is_lines else len(payload)

    def _lines(self, begun: "Begun", size: int) -> Iterator[bytes]:
        from st_common.formats.member_lines import list_of, member_lines
        from st_common.formats.ndjson_chunks import object_lines

        mine = (name for name in self.lists if list_of(begun.head, name) is not None)
        member = next(mine, None)
        if member is None:
            return object_lines(begun, begun.read(size), size)
        return member_lines(begun, member, size=size, kept=self.kept)


def raw_lines(payload: bytes) -> "Callable[[Ints], pa.Array]":
    """Gives the bytes of some lines."""
    import numpy as np

    from st_common.formats.records import RAW_LIMIT
    from st_common.formats.spans import lines

    every = lines(np.frombuffer(payload, np.uint8))
    return lambda rows: every.select(rows).texts(RAW_LIMIT)
