r"""Boxes as the generators of BBoxDB write them: an id, the sides of all dimensions, a text; one box a line.

    17 0.25,0.75,3.5,4.0 some text      ->   key 17, lo1 0.25, hi1 0.75, lo2 3.5, hi2 4.0, text "some text"

Blanks or tabs stand between the parts; the text may have them too, and may be absent.
"""

from typing import TYPE_CHECKING

from st_common.formats.format import Format
from st_common.formats.format_settings import (
    FormatSettings,
    Source,
    named_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records


class Boxes(Format):
    """Lines of boxes; how many dimensions they have is said by `columns.box`."""

    takes = frozenset()

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of lines."""
        from st_common.formats.ndjson_chunks import chunks_of_whole_lines

        return chunks_of_whole_lines(source, size=size)

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The lines of a payload; one with another number of sides than the stream's boxes have is `ragged`."""
        from st_common.formats.boxes_records import read_boxes

        return read_boxes(payload, stream)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """A stream without boxes, or a column that no line has."""
        if not stream.columns.box:
            return "columns: box is missing", 'box = ["lo1", "hi1", "lo2", "hi2"]'
        known = ("key", "text", *stream.columns.box)
        for key, name in named_columns(stream):
            if name not in known:
                return (
                    f"{key} = {name!r} is no column of boxes",
                    f"it has {', '.join(known)}",
                )
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """How many sides a line has."""
        if reason == "ragged":
            return f"a line is KEY lo1,hi1,.. TEXT; columns.box says how many sides, here {len(stream.columns.box)}"
        return None
