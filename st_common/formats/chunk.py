"""Bytes as chunks that end at the border of a record, without ever holding a file as a whole."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.format_settings import Source
from st_common.formats.said_before import SaidBefore, Value
from st_common.formats.spans import Ints, Mask, Spans

HEADER_LIMIT = 1 << 20  # bytes
_COLUMNS = ("lines", "ahead", "times", "owner_of")


@dataclass(frozen=True, slots=True)
class Chunk:
    r"""Whole records, from which payloads of segments are cut.

        b'id,t,x,y\n1,2,3,4\n\n2,2,3,4\n'   ->   header b'id,t,x,y\n', spans from 0 to 7 and from 9 to 16

    Attributes:
        header: goes in front of each payload, with its line end; empty for NDJSON and CSV without a header.
        spans: the records in the order of the source, without line ends and blank lines; the bytes behind the header.
        footer: goes behind each payload, with its line end, where a format needs one.
        line_end: what ends a record; empty where records say themselves where they end.
        around: what stands around each record that is taken out of this header and footer, and put among records of
            others; None: the header and the footer stand around all of those.
        lines: int64[n], the line of each record in its file; None: nobody asks.
        ahead: bool[n], which records are ahead of the stream; None: nobody has looked.
        times: int64[n], when the records were made, us UTC, as far as they say so; None: nobody has looked.
        owners: ids of records that say none themselves; () where they do.
        owner_of: int64[n], which of these each record has; None: all have the first.
        document: values of the document that the records stood in, by their paths.
    """

    header: bytes
    spans: Spans
    footer: bytes = b""
    line_end: bytes = b"\n"
    around: "Around | None" = None
    lines: Ints | None = None
    ahead: Mask | None = None
    times: Ints | None = None
    owners: tuple[str, ...] = ()
    owner_of: Ints | None = None
    document: Mapping[str, Value] = field(default_factory=dict)

    def payload(self, start: int, stop: int) -> bytes:
        """The bytes of a segment: the header, records `start` to `stop` (not included), a line end, and the footer.

        Blank lines between the records are part of it.
        """
        ends = (
            self.spans.starts[stop]
            if stop < len(self.spans)
            else len(self.spans.buffer)
        )
        body = self.spans.buffer[self.spans.starts[start] : ends].tobytes()
        line_end = b"" if body.endswith(self.line_end) else self.line_end
        return self.header + body + line_end + self.footer

    def before(self, start: int, stop: int) -> SaidBefore:
        """What stands in front of the segment of records `start` to `stop` (not included)."""
        ahead = () if self.ahead is None else np.flatnonzero(self.ahead[start:stop])
        return SaidBefore(
            lines=_listed(self.lines, start, stop),
            ahead=tuple(int(row) for row in ahead),
            owners=self.owners,
            owner_of=_listed(self.owner_of, start, stop),
            document=self.document,
        )

    def part(self, start: int, stop: int) -> Self:
        """Records `start` to `stop` (not included) as a chunk."""
        spans = self.spans
        ends = spans.starts[stop] if stop < len(spans) else len(spans.buffer)
        cut = Spans(
            spans.buffer[:ends], spans.starts[start:stop], spans.ends[start:stop]
        )
        return self.with_columns(
            {name: values[start:stop] for name, values in self.columns().items()},
            spans=cut,
        )

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """What is known of each record beside its bytes, by the name of the attribute."""
        known = {name: getattr(self, name) for name in _COLUMNS}
        return {name: values for name, values in known.items() if values is not None}

    def with_columns(self, columns: Mapping[str, NDArray[Any]], **others: Any) -> Self:
        """The same chunk with this known of its records and nothing else, and other values of some attributes."""
        return replace(self, **{**dict.fromkeys(_COLUMNS), **columns, **others})

    def rows(self) -> pa.Table:
        """The records as rows of a table, each whole without the header: `raw`."""
        texts = self.spans.texts().cast(pa.large_binary())
        if self.around is not None:
            before, behind = (
                pa.scalar(each, pa.large_binary())
                for each in (self.around.before, self.around.behind)
            )
            texts = pc.binary_join_element_wise(
                before, texts, behind, pa.scalar(b"", pa.large_binary())
            )
        return pa.table({"raw": texts})

    def of_rows(self, rows: pa.Table) -> Self:
        """A chunk like this one with other records.

        Args:
            rows: as `rows` gives them, of chunks that have the same `head`.
        """
        end = pa.scalar(self.line_end, pa.large_binary())
        texts = pc.binary_join_element_wise(
            rows["raw"].combine_chunks(), pa.scalar(b"", pa.large_binary()), end
        )
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
        spans = Spans(
            np.frombuffer(data or b"", np.uint8),
            bounds[:-1],
            bounds[1:] - len(self.line_end),
        )
        header, footer = self.head
        return self.with_columns({}, header=header, footer=footer, spans=spans)

    @property
    def head(self) -> tuple[bytes, bytes]:
        """What stands around records that are put among those of other chunks."""
        if self.around is not None:
            return self.around.header, self.around.footer
        return self.header, self.footer


@dataclass(frozen=True, slots=True)
class Around:
    """What makes a record whole that is taken out of its chunk, and what stands around all that were."""

    before: bytes = b""
    behind: bytes = b""
    header: bytes = b""
    footer: bytes = b""


def _listed(values: Ints | None, start: int, stop: int) -> tuple[int, ...]:
    return () if values is None else tuple(values[start:stop].tolist())


def whole(
    source: Source, rest: bytes, size: int, border: Callable[[bytes], int]
) -> Iterator[bytes]:
    """The bytes of a source, `rest` first, in portions of at most `size` bytes that end behind whole records.

    `border` gives how many bytes are whole records, however the source goes on; where it is 0 the portion is cut.
    """
    while True:
        more = source.read(max(size - len(rest), 0))
        data = rest + more
        if not more and len(data) < size:
            yield from (data,) if data else ()
            return
        end = border(data) or len(data)
        yield data[:end]
        rest = data[end:]


def line_border(data: bytes) -> int:
    """How many bytes are whole lines."""
    return data.rfind(b"\n") + 1


class Begun:
    """A source of which the first bytes were looked at, and which is read from its beginning all the same.

    Args:
        source: the source.
        size: how many of its first bytes `head` has, or fewer if it ends before.
    """

    def __init__(self, source: Source, *, size: int) -> None:
        self.head = b""
        while len(self.head) < size and (more := source.read(size - len(self.head))):
            self.head += more
        self._rest, self._source = self.head, source

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most; none at the end."""
        if not self._rest:
            return self._source.read(size)
        part, self._rest = self._rest[:size], self._rest[size:]
        missing = size - len(part)
        return part + self._source.read(missing) if missing and not self._rest else part
