"""Payloads that came packed by gzip."""

import zlib

from st_common.decode.decoded import Reason

MAGIC = b"\x1f\x8b"
UNPACKED_LIMIT = (1 << 25) - 64  # bytes; a record takes two, so a segment has no more rows than positions can count
_GZIP = 16 + zlib.MAX_WBITS
_STEP = 1 << 20


def unpack(payload: bytes) -> tuple[bytes, Reason]:
    """What a gzip payload holds (one or more members), and why it is not all: BAD_GZIP or TOO_LARGE, else NONE.

    Of a broken payload it gives what could be unpacked before the break. It never holds more than UNPACKED_LIMIT
    bytes, so a small payload that unpacks to gigabytes does no harm.
    """
    pieces: list[bytes] = []
    room, rest = UNPACKED_LIMIT, payload
    while rest.startswith(MAGIC):
        member, done = zlib.decompressobj(_GZIP), False
        while not done:
            if room == 0:
                return b"".join(pieces), Reason.TOO_LARGE
            try:
                pieces.append(member.decompress(rest, min(room, _STEP)))
            except zlib.error:
                return b"".join(pieces), Reason.BAD_GZIP
            done = member.eof
            room -= len(pieces[-1])
            rest = member.unused_data if done else member.unconsumed_tail
            if not done and not rest and not pieces[-1]:
                return b"".join(pieces), Reason.BAD_GZIP
    return b"".join(pieces), Reason.BAD_GZIP if rest.strip(b"\0") else Reason.NONE
