"""NDJSON: a JSON object a line, one JSON array of objects, or a list of them that is a member of a document."""

import io
from typing import TYPE_CHECKING

from st_common.formats.format import FORMAT_KEYS, Format
from st_common.formats.format_settings import FormatSettings, Source, named_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records


class Ndjson(Format):
    """JSON objects; see `ndjson_records` and `ndjson_chunks`."""

    takes = frozenset(FORMAT_KEYS) - {"header", "delimiter", "quote"}
    takes_objects = True

    written_as = "objects"

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of lines; the elements of an array become lines, and those of documents' lists."""
        from st_common.formats.member_lines import member_lines
        from st_common.formats.ndjson_chunks import (
            LEAST_CHUNK,
            chunks_of_lines,
            ndjson_chunks,
        )

        if stream.records is None:
            return ndjson_chunks(source, size=size)
        size = max(size, LEAST_CHUNK)
        kept = _of_document(stream)
        return chunks_of_lines(
            member_lines(source, stream.records, size=size, kept=kept)
        )

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The records of a payload."""
        from st_common.formats.member_lines import member_lines
        from st_common.formats.ndjson_records import read_ndjson

        if stream.records is not None:
            source, size = io.BytesIO(payload), len(payload) + 1
            kept = _of_document(stream)
            payload = b"".join(
                member_lines(source, stream.records, size=size, kept=kept)
            )
        return read_ndjson(payload, stream)

    def whole_bytes(self, payload: bytes) -> int:
        """All of an array, whose last element shows by itself that it is cut; else up to the last line end."""
        from st_common.formats.ndjson_chunks import is_array

        return len(payload) if is_array(payload) else super().whole_bytes(payload)

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """No header; an array must be read by itself, and so must what may be a document."""
        is_alone = payload.lstrip()[:1] == b"[" or stream.records is not None
        return None if is_alone else b""

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """The records of lines."""
        return self.records(payload, stream)


def _of_document(stream: FormatSettings) -> list[str]:
    """The paths of what the settings take from around the records: `now` of the column `document.now`."""
    from st_common.formats.member_lines import DOCUMENT

    beside = f"{DOCUMENT}."
    names = dict.fromkeys(name for _, name in named_columns(stream))
    return [name.removeprefix(beside) for name in names if name.startswith(beside)]
