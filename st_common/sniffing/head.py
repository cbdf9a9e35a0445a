"""The first bytes of a file, what an address answers, or what a socket gives, unpacked."""

import re
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from st_common.capture.source import open_file
from st_common.decode.gzipped import MAGIC
from st_common.errors import ConfigError, TransientError
from st_common.sniffing.live import is_live, read_live

HEAD_BYTES = 1 << 18
ANSWER_BYTES = 1 << 25
"""Of what an address answers: a document counts as a whole."""
_KINDS = {"ws": "websocket", "wss": "websocket", "mqtts": "mqtt"}
_SCHEME = re.compile(r"(mqtts?|kafka|wss?)://")
SECONDS = 5.0
"""For how long a socket is listened to."""
_GZIP = 16 + zlib.MAX_WBITS
_TIMEOUT_S = 30.0
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning of something.

    Attributes:
        place: a file or an address, for people.
        data: the first 256 KiB, unpacked; of what an address answers 32 MiB.
        is_whole: whether that is all of it.
        path: the file; None: it is none.
    """

    place: str
    data: bytes
    is_whole: bool
    path: Path | None = None


def is_address(place: str) -> bool:
    """Whether a place is an address and no file."""
    return place.startswith(("http://", "https://"))


def read_head(place: str, *, seconds: float = SECONDS) -> Head:
    """The beginning of a file, of what an address answers, or of what a socket or standard input gives.

    Args:
        place: the file or the address; `-` is standard input.
        seconds: how long a socket or standard input is read.

    Raises:
        ConfigError: it cannot be read, is empty, is UTF-16, or is an address of a broker or WebSocket.
        TransientError: the address does not answer, or nothing comes.
    """
    if scheme := _SCHEME.match(place):
        kind = _KINDS.get(scheme[1], scheme[1])
        raise ConfigError(
            f"{place}: check reads files, http(s), tcp and udp, not {kind}",
            hint=f"save some of it in a file and check that; docs/feeds.md has sources of kind {kind}",
        )
    path = None
    if is_live(place):
        data, is_whole = read_live(place, seconds=seconds, most_bytes=HEAD_BYTES)
    elif is_address(place):
        data, is_whole = _unpacked(*_answered(place, seconds), most=ANSWER_BYTES)
    else:
        path = Path(place)
        raw = _read(path)
        data, is_whole = _unpacked(raw, len(raw) <= HEAD_BYTES, most=HEAD_BYTES)
    if data.startswith(_UTF16):
        raise ConfigError(
            f"{place} is UTF-16", hint="convert it, as with iconv -f UTF-16 -t UTF-8"
        )
    if not data.strip():
        raise ConfigError(f"{place} is empty")
    return Head(place=place, data=data, is_whole=is_whole, path=path)


def _read(path: Path) -> bytes:
    if path.is_dir():
        hint = "check one of its files; fairway replay reads all of them"
        raise ConfigError(f"{path} is a folder", hint=hint)
    with open_file(path) as file:
        return file.read(HEAD_BYTES + 1)


def _answered(address: str, seconds: float) -> tuple[bytes, bool]:
    """What an address answers, and whether that is all: of an answer without an end what comes in some seconds."""
    import requests

    until_s = time.monotonic() + seconds
    try:
        with requests.get(address, timeout=_TIMEOUT_S, stream=True) as answer:
            if not answer.ok:
                raise TransientError(f"{address} answers {answer.status_code}")
            data = b""
            for part in answer.iter_content(1 << 16):
                data += part
                is_late = len(data) > HEAD_BYTES and time.monotonic() > until_s
                if is_late or len(data) > ANSWER_BYTES:
                    return data, False
            return data, True
    except requests.RequestException as error:
        raise TransientError(f"{address}: {error}") from None


def _unpacked(raw: bytes, is_whole: bool, *, most: int) -> tuple[bytes, bool]:  # noqa: FBT001 - it goes with the bytes
    """The first bytes, and whether they are all."""
    if not raw.startswith(MAGIC):
        return raw[:most], is_whole and len(raw) <= most
    unpacker = zlib.decompressobj(_GZIP)
    try:
        data = unpacker.decompress(raw, most)
    except zlib.error as error:
        raise ConfigError(f"it is gzip, and broken: {error}") from None
    return data, unpacker.eof
