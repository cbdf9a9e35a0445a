r"""Bytes and messages of a feed cut into whole records, by the format of the stream.

a connection      b"id,t\n1,2\n1,"  b"3\n"         ->   header b"id,t\n", lines b"1,2\n", then b"1,3\n"
a message         b'{"id": 1,\n "t": 2}'           ->   line b'{"id": 1,  "t": 2}\n'
a document        b"<gpx>..</gpx>"                 ->   a payload of its own
"""

import io
import json

from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.formats.csv import NO_HEADER
from st_common.formats.registry import format_of
from st_common.replay.chunks import chunks
from st_common.sources.arrival import Arrival

LONGEST_LINE = 1 << 20
"""Bytes of a line at most; what goes on for longer is taken as one record, which will be a reject."""
_CHUNK_BYTES = 4 << 20
_LINE_END, _BLANK_LINES = b"\n", b"\r\n"


class Lines:
    """The whole lines of one connection or file, whose first may be a header.

    One that names no column of the settings is a record as all others, behind a header that has no column either: all
    of them will be rejects, and none is lost.

    Args:
        stream: its settings say whether there is a header.
        header: the header, where it was read before; b"" where it is still to come.
    """

    def __init__(self, stream: StreamSettings, *, header: bytes = b"") -> None:
        self._stream, self._form = stream, format_of(stream.format)
        self._awaits_header = has_header(stream) and not header
        self.header = header
        self._rest = b""
        self.taken = 0
        """How many bytes were given out, the header among them."""

    def feed(self, data: bytes) -> Arrival | None:
        """The lines that are whole by now; None where there are none.

        Args:
            data: the next bytes.
        """
        data = self._rest + data
        end = data.rfind(_LINE_END) + 1
        if not end and len(data) >= LONGEST_LINE:
            return self._given(data + _LINE_END, taken=len(data), rest=b"")
        return self._given(data[:end], taken=end, rest=data[end:])

    def end(self) -> Arrival | None:
        """What is left when nothing more will come: a last line without an end; None where there is none."""
        rest = self._rest
        line = rest + _LINE_END if rest else b""
        return self._given(line, taken=len(rest), rest=b"")

    def _given(self, lines: bytes, *, taken: int, rest: bytes) -> Arrival | None:
        self._rest = rest
        self.taken += taken
        if self._awaits_header:
            lines = self._behind_header(lines.lstrip(_BLANK_LINES))
        records = self._form.record_count(lines)
        if not records and not lines.strip():
            return None
        return Arrival(header=self.header, body=lines, records=records)

    def _behind_header(self, lines: bytes) -> bytes:
        """The lines behind the header, which is kept; all of them where the first is none."""
        if not lines:
            return lines
        self._awaits_header = False
        first, _, behind = lines.partition(_LINE_END)
        if self._form.is_header(first, self._stream):
            self.header = first + _LINE_END
            return behind
        self.header = NO_HEADER + _LINE_END
        return lines


def has_header(stream: StreamSettings) -> bool:
    """Whether a connection or a file begins with the names of columns."""
    return stream.header and "header" in format_of(stream.format).takes


def is_of_lines(stream: StreamSettings) -> bool:
    """Whether a record of the stream's format is a line."""
    return format_of(stream.format).is_lines


def of_message(message: bytes, stream: StreamSettings) -> list[Arrival]:
    """The records of one message of a broker, a socket or a datagram.

    Args:
        message: one record, or some lines of them; a document in other formats.
        stream: the format.
    """
    if not is_of_lines(stream) or stream.records is not None:
        return of_document(message, stream)
    text = message.strip(b"\r\n\0 ")
    if format_of(stream.format).takes_objects:
        if text.startswith(b"["):
            return of_document(message, stream)
        text = _in_one_line(text)
    body = text + _LINE_END if text else b""
    records = format_of(stream.format).record_count(body)
    return [Arrival(body=body, records=records)] if text else []


def _in_one_line(text: bytes) -> bytes:
    """JSON in one line, where it is one object in several; in its texts there are no line ends."""
    if _LINE_END not in text:
        return text
    try:
        json.loads(text)
    except ValueError:
        return text  # an object a line, or nothing that can be read
    return b" ".join(text.splitlines())


def of_document(document: bytes, stream: StreamSettings) -> list[Arrival]:
    """The records of a whole file, or of what a server answered.

    Args:
        document: what a file of the stream's format holds.
        stream: the format.

    Returns:
        Some arrivals; what cannot be cut into records is one of its own, which will be told as rejects.
    """
    try:
        cut = list(chunks(io.BytesIO(document), stream, size=_CHUNK_BYTES))
    except ConfigError:
        return [Arrival(body=document, records=1, is_lines=False)]
    is_lines = is_of_lines(stream)
    arrivals = []
    for chunk in cut:
        payload = chunk.payload(0, len(chunk.spans))
        head = chunk.header if is_lines else b""
        arrivals.append(
            Arrival(
                header=head,
                body=payload[len(head) :],
                records=len(chunk.spans),
                is_lines=is_lines,
            )
        )
    return arrivals
