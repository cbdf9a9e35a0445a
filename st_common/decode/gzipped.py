"""Bytes that came packed by gzip."""

import io
import zlib

from st_common.formats.format_settings import Source
from st_common.formats.records import Reason

MAGIC = b"\x1f\x8b"
UNPACKED_LIMIT = (
    (1 << 25) - 64
)  # bytes; a record takes two, so a segment has no more rows than positions can count
_GZIP = 16 + zlib.MAX_WBITS
_PORTION = 1 << 16  # packed bytes read at once
_STEP = 1 << 14  # bytes unpacked at once: what a broken block may cost


def unpack(payload: bytes) -> tuple[bytes, Reason]:
    """What a gzip payload holds (one or more members), and why it is not all: BAD_GZIP or TOO_LARGE, else NONE.

    Of a broken payload it gives what could be unpacked before the break. It never holds more than UNPACKED_LIMIT
    bytes, so a small payload that unpacks to gigabytes does no harm.
    """
    source = GzipSource(io.BytesIO(payload))
    data = source.read(UNPACKED_LIMIT)
    if len(data) == UNPACKED_LIMIT and source.read(1):
        return data, Reason.TOO_LARGE
    return data, Reason.BAD_GZIP if source.broken else Reason.NONE


class GzipSource:
    """The bytes that an open gzip file holds, in one or more members. What was unpacked before a break is given.

    `broken` tells that the file ended or broke within a member, or that something else follows.
    """

    def __init__(self, raw: Source) -> None:
        self.broken = False
        self._raw = raw
        self._packed = b""
        self._member: zlib._Decompress | None = None
        self._ended = False

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end or behind a break."""
        pieces: list[bytes] = []
        while size > 0 and not self._ended:
            piece = self._some(size)
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _some(self, size: int) -> bytes:
        """The next few bytes; maybe none though more will come."""
        more = b"" if len(self._packed) >= len(MAGIC) else self._raw.read(_PORTION)
        packed = self._packed + more
        if self._member is None:
            if not packed.startswith(MAGIC):
                self._end(broken=bool(packed.strip(b"\0")))
                return b""
            self._member = zlib.decompressobj(_GZIP)
        try:
            piece = self._member.decompress(packed, min(size, _STEP))
        except zlib.error:
            self._end(broken=True)
            return b""
        if self._member.eof:
            self._packed, self._member = self._member.unused_data, None
        else:
            self._packed = self._member.unconsumed_tail
            if not piece and not packed:
                self._end(broken=True)
        return piece

    def _end(self, *, broken: bool) -> None:
        self.broken, self._ended = broken, True
