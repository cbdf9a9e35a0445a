"""CSV and TSV: a record a line, with a header or with columns by number."""

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.encodings import as_utf8
from st_common.formats.format import FORMAT_KEYS, Format
from st_common.formats.format_settings import (
    FormatSettings,
    Source,
    named_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records

NO_HEADER = b"(no header)"
"""The header of what begins without one, though the settings say that it has one: it names no column."""
_DELIMITERS = {b",": "comma", b";": "semicolon", b"\t": "tab", b"|": "bar"}


class Csv(Format):
    """Texts between delimiters; see `csv_records`."""

    written_as = "delimited"

    takes = frozenset(FORMAT_KEYS) - {"records"}

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks with the header in front of each; none ends inside a quoted record."""
        from st_common.formats.csv_records import csv_chunks

        return csv_chunks(source, stream, size=size)

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The records of a payload, by its own header."""
        from st_common.formats.csv_records import read_csv

        return read_csv(payload, stream)

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """The header line; None where blank lines are in front of it, or nothing behind it."""
        if payload[:1] in b"\r\n":
            return None
        if not stream.header:
            return b""
        line, line_end, _ = payload.partition(b"\n")
        return line + line_end or None

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """The records when every line is one."""
        from st_common.formats.csv_records import read_in_shape

        return read_in_shape(payload, stream)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Quote and delimiter that are the same; without a header, columns that are no numbers."""
        if not stream.header:
            for key, column in named_columns(stream):
                if not re.fullmatch(r"[1-9]\d{0,4}", column):
                    wrong = f"{key} = {column!r} is no column number"
                    return wrong, 'header = false: columns are "1", "2", ...'
        if stream.quote == stream.delimiter:
            wrong = f"quote and delimiter are both {stream.quote!r}"
            return wrong, "give one of them another character"
        return None

    def is_header(self, line: bytes, stream: FormatSettings) -> bool:
        """Whether a first line names at least one column of the settings."""
        from st_common.formats.csv_records import names_in
        from st_common.formats.records import columns_read

        names = names_in(as_utf8(line, stream.encoding), stream)
        return not set(columns_read(stream)).isdisjoint(names)

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """The delimiter that the first line seems to have, when it is not that of the settings."""
        if reason not in ("missing_column", "ragged"):
            return None
        if head.startswith(NO_HEADER):
            return "a connection begins with a line that names its columns; header = false says that there is none"
        own = stream.delimiter.encode()
        line = head.split(b"\n", 1)[0]
        best = max(_DELIMITERS, key=line.count)
        if line.startswith(b"{"):
            return 'the records are JSON objects: format = "ndjson"'
        if best == own or line.count(best) <= line.count(own):
            return None
        shown = best.decode().replace("\t", "\\t")
        return f'fields seem to be separated by a {_DELIMITERS[best]}: delimiter = "{shown}"'


class Tsv(Csv):
    """CSV with tabs."""

    defaults = MappingProxyType({"delimiter": "\t"})
