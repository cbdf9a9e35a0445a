"""The first bytes of a file, what an address answers, or what a socket gives, unpacked."""

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from st_common.detect.live import is_live, read_live
from st_common.errors import ConfigError, TransientError
from st_common.replay.source import Opened, files_of, opened, opened_bytes

HEAD_BYTES = 1 << 18
ANSWER_BYTES = 1 << 25
"""Of what an address answers: a document counts as a whole."""
_KINDS = {"ws": "websocket", "wss": "websocket", "mqtts": "mqtt"}
_SCHEME = re.compile(r"(mqtts?|kafka|wss?)://")
SECONDS = 5.0
"""For how long a socket is listened to."""
_TIMEOUT_S = 30.0


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
        ConfigError: it cannot be read, is empty, is a zip of several files, or is an address of a broker or WebSocket.
        TransientError: the address does not answer, or nothing comes.
    """
    if scheme := _SCHEME.match(place):
        kind = _KINDS.get(scheme[1], scheme[1])
        raise ConfigError(
            f"{place}: check reads files, http(s), tcp and udp, not {kind}",
            hint=f"save some of it in a file and check that; docs/feeds.md has sources of kind {kind}",
        )
    if is_live(place):
        data, is_whole = read_live(place, seconds=seconds, most_bytes=HEAD_BYTES)
        head = _head(place, opened_bytes(data), HEAD_BYTES, is_whole=is_whole)
    elif is_address(place):
        data, is_whole = _answered(place, seconds)
        head = _head(place, opened_bytes(data), ANSWER_BYTES, is_whole=is_whole)
    else:
        path = _file(Path(place))
        with opened(path) as file:
            whole = _head(str(path), file, HEAD_BYTES, is_whole=True)
            head = replace(whole, path=path)
    if not head.data.strip():
        raise ConfigError(f"{place} is empty")
    return head


def _file(path: Path) -> Path:
    """The file to look into; of a zip that holds one file, that one."""
    files = files_of(path)
    return files[0]


def _head(place: str, file: Opened, most: int, *, is_whole: bool) -> Head:
    """The first bytes of an open file, unpacked, and whether these are all."""
    data = file.source.read(most + 1)
    if not data and file.broken:
        raise ConfigError(
            f"{place} is packed, and broken", hint="is the file complete?"
        )
    return Head(place=place, data=data[:most], is_whole=is_whole and len(data) <= most)


def _answered(address: str, seconds: float) -> tuple[bytes, bool]:
    """What an address answers, and whether that is all: of an answer without an end what comes in some seconds."""
    import httpx

    until_s = time.monotonic() + seconds
    try:
        with httpx.stream(
            "GET", address, timeout=_TIMEOUT_S, follow_redirects=True
        ) as answer:
            if answer.is_error:
                raise TransientError(f"{address} answers {answer.status_code}")
            data = bytearray()
            for part in answer.iter_bytes():
                data += part
                is_late = len(data) > HEAD_BYTES and time.monotonic() > until_s
                if is_late or len(data) > ANSWER_BYTES:
                    return bytes(data), False
            return bytes(data), True
    except (httpx.HTTPError, httpx.InvalidURL, ImportError) as error:  # of SOCKS
        what = str(error) or type(error).__name__
        raise TransientError(f"{address}: {what}") from None
