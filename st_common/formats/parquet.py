"""Parquet, and GeoParquet with points: a row is a record, and columns have the types that the file says.

A segment is an Arrow stream of rows with all their columns; a payload may be a Parquet file as well.
"""

from typing import TYPE_CHECKING

from st_common.formats.format import Format
from st_common.formats.format_settings import FormatSettings, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records


class Parquet(Format):
    """Rows; the columns are those of the file, by path inside of structs: `position.lat`."""

    takes = frozenset(
        {"time_unit", "time_zone", "decimal", "coordinates", "place_order"}
    )
    is_lines = False

    is_arrow = True

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of rows, of about `size` bytes.

        Raises:
            ConfigError: the source is no Parquet, breaks, or says that its points are in another system.
        """
        from st_common.formats.parquet_records import parquet_chunks

        return parquet_chunks(source, stream, size=size)

    def check_whole(self, source: Source) -> None:
        """Reads all rows.

        Raises:
            ConfigError: the file breaks.
        """
        from st_common.formats.parquet_records import batches, opened

        with opened(source) as file:
            for _ in batches(file):
                pass

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The rows of a payload; one that breaks is one record, `unreadable`."""
        from st_common.formats.parquet_records import read_rows

        return read_rows(payload, stream)

    def whole_bytes(self, payload: bytes) -> int:
        """All of them: where a payload breaks is seen when it is read."""
        return len(payload)

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What names of columns mean, as there is no header to compare with."""
        if reason == "missing_column":
            return "columns in the settings are spelled as in the file; x and y, or place for points of WKB"
        return None
