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
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records

_LINE = r"^\s*(?P<key>[^ \t]+)[ \t]+(?P<sides>[^ \t]+)(?:[ \t]+(?P<text>.*?))?\r?$"
_KEY, _TEXT = "key", "text"


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
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from st_common.formats.numbers import mask
        from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
        from st_common.formats.spans import lines, utf8_faults

        buffer = np.frombuffer(payload, np.uint8)
        every = lines(buffer)
        fault = np.full(len(every), Reason.NONE, np.int8)
        fault[every.holding(utf8_faults(buffer))] = Reason.BAD_UTF8
        read = np.flatnonzero(fault == Reason.NONE)
        said = pc.extract_regex(every.select(read).texts().view(pa.string()), _LINE)
        sides = pc.split_pattern(pc.struct_field(said, "sides"), ",")
        counts = pc.fill_null(pc.list_value_length(sides), -1)
        is_whole = mask(pc.equal(counts, len(stream.columns.box)))
        fault[read[~is_whole]] = Reason.RAGGED
        kept = pa.array(is_whole)
        fields = _fields(said.filter(kept), sides.filter(kept), stream)
        return Records(
            fault=fault,
            fields={name: fields[name] for name in columns_read(stream)},
            raw=lambda rows: every.select(rows).texts(RAW_LIMIT),
        )

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """A stream without boxes, or a column that no line has."""
        if not stream.columns.box:
            return "columns: box is missing", 'box = ["lo1", "hi1", "lo2", "hi2"]'
        known = (_KEY, _TEXT, *stream.columns.box)
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


def _fields(
    said: "pa.StructArray", sides: "pa.ListArray", stream: FormatSettings
) -> "Mapping[str, pa.Array]":
    """The columns of lines that are whole: key and text, and the sides, which stand one line behind the other."""
    import pyarrow.compute as pc

    flat, columns = sides.flatten(), stream.columns.box
    every = {name: flat[at :: len(columns)] for at, name in enumerate(columns)}
    return {name: pc.struct_field(said, name) for name in (_KEY, _TEXT)} | every
