"""What a socket or standard input gives in some seconds."""

import os
import re
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from st_common.config.sources import host_and_port
from st_common.errors import ConfigError, TransientError
from st_common.sources.trouble import said

STDIN = "-"
_SCHEMES = ("tcp://", "udp://")
_ADDRESS = re.compile(r"(tcp|udp)://([^/]*:([0-9]{1,5}))/?")
_PORTS = 65_535
_PORTION = 1 << 16


def is_live(place: str) -> bool:
    """Whether a place is a TCP or UDP address, or standard input."""
    return place == STDIN or place.startswith(_SCHEMES)


def read_live(place: str, *, seconds: float, most_bytes: int) -> tuple[bytes, bool]:
    """What comes within some seconds, and whether that is all: the other end has closed.

    Args:
        place: `tcp://HOST:PORT`, to which it connects, `udp://[HOST]:PORT`, on which it listens, or `-`.
        seconds: how long it reads.
        most_bytes: so many are enough.

    Raises:
        ConfigError: the address is none.
        TransientError: there is no connection, or nothing comes.
    """
    try:
        with _opened(place) as (waits_for, read):
            data, is_whole = _gathered(waits_for, read, seconds, most_bytes)
    except OSError as error:
        raise TransientError(
            f"{place}: {said(error)}", hint="does something send there?"
        ) from None
    if not data:
        if is_whole:
            raise TransientError(f"{place}: it ended, and nothing had come")
        raise TransientError(
            f"{place}: nothing came in {seconds:g} s", hint="--for waits longer"
        )
    return data, is_whole


@contextmanager
def _opened(place: str) -> Iterator[tuple[int, Callable[[], bytes]]]:
    """What is waited for, and what reads a portion of it; b"" at the end."""
    if place == STDIN:
        yield sys.stdin.fileno(), lambda: os.read(sys.stdin.fileno(), _PORTION)
        return
    address = _ADDRESS.fullmatch(place)
    if address is None or int(address[3]) > _PORTS:
        raise ConfigError(f"{place} is no address", hint="tcp://HOST:PORT, udp://:PORT")
    host, port = host_and_port(address[2])
    if address[1] == "tcp":
        with socket.create_connection((host, port)) as connection:
            yield connection.fileno(), lambda: connection.recv(_PORTION)
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((host, port))
        # Each is a message: some records, the last maybe without a line end.
        yield (
            listening.fileno(),
            lambda: listening.recv(_PORTION).rstrip(b"\r\n") + b"\n",
        )


def _gathered(
    waits_for: int, read: Callable[[], bytes], seconds: float, most_bytes: int
) -> tuple[bytes, bool]:
    until_s, data = time.monotonic() + seconds, b""
    while len(data) <= most_bytes:
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not select.select([waits_for], [], [], left_s)[0]:
            return data, False
        portion = read()
        if not portion:
            return data, True
        data += portion
    return data, False
