"""Bytes as chunks that end at the border of a record, without ever holding a file as a whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from st_common.formats.format_settings import Source
from st_common.formats.spans import Spans

HEADER_LIMIT = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    r"""Whole records, from which payloads of segments are cut.

        b'id,t,x,y\n1,2,3,4\n\n2,2,3,4\n'   ->   header b'id,t,x,y\n', spans from 0 to 7 and from 9 to 16

    Attributes:
        header: goes in front of each payload, with its line end; empty for NDJSON and CSV without a header.
        spans: the records in the order of the source, without line ends and blank lines; the bytes behind the header.
        footer: goes behind each payload, with its line end, where a format needs one.
        line_end: what ends a record; empty where records say themselves where they end.
    """

    header: bytes
    spans: Spans
    footer: bytes = b""
    line_end: bytes = b"\n"

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
