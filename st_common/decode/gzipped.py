"""Bytes that came packed by gzip, and how far anything that is packed may be unpacked."""

import io
import zlib

from st_common.errors import ConfigError
from st_common.formats.format_settings import Source
from st_common.formats.records import Reason

MAGIC = b"\x1f\x8b"
UNPACKED_LIMIT = (
    (1 << 25) - 64
)  # bytes; a record takes two, so a segment has no more rows than positions can count
MOST_RATIO, LEAST_BOMB = 250, 1 << 28
"""Records are packed to a fiftieth at most, and gzip can pack zeros to a thousandth."""
_GZIP = 16 + zlib.MAX_WBITS
_PORTION = 1 << 16  # packed bytes read at once
_STEP = 1 << 14  # bytes unpacked at once: what a broken block may cost


def is_bomb(packed: int, unpacked: int) -> bool:
    """Whether so many bytes cannot be records that were packed to so few."""
    return unpacked > LEAST_BOMB and unpacked > MOST_RATIO * max(packed, 1)


def require_no_bomb(name: str, packed: int, unpacked: int) -> None:
    """Refuses what unpacks to much more than records do.

    Args:
        name: what it is called.
        packed: its bytes, or those that were read by now.
        unpacked: the bytes that it says it unpacks to, or those that came by now.

    Raises:
        ConfigError: see above.
    """
    if is_bomb(packed, unpacked):
        raise ConfigError(
            f"{name} would unpack {packed:,} bytes to {unpacked:,}: no records are packed so well",
            hint="where it is no attack, unpack it, and name the file",
        )


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

    Args:
        raw: the packed bytes.
        name: what they are called, where they are refused.
    """

    def __init__(self, raw: Source, name: str = "what came") -> None:
        self.broken = False
        self._raw, self._name = raw, name
        self._read_bytes = self._given_bytes = 0
        self._packed = b""
        self._member: zlib._Decompress | None = None
        self._ended = False

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end or behind a break.

        Raises:
            ConfigError: they are many more than were packed, see `require_no_bomb`.
        """
        pieces: list[bytes] = []
        while size > 0 and not self._ended:
            piece = self._some(size)
            pieces.append(piece)
            size -= len(piece)
            self._given_bytes += len(piece)
            require_no_bomb(self._name, self._read_bytes, self._given_bytes)
        return b"".join(pieces)

    def _some(self, size: int) -> bytes:
        """The next few bytes; maybe none though more will come."""
        more = b"" if len(self._packed) >= len(MAGIC) else self._raw.read(_PORTION)
        self._read_bytes += len(more)
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
