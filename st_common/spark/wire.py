"""Messages between a driver and tasks that stay: a head as JSON, then bytes; one connection for each task.

length of head | length of body | head | body
"""

import contextlib
import json
import socket
import struct
import threading
from typing import Any

import st_common.errors
from st_common.errors import FairwayError, StateError

_LENGTHS = struct.Struct("<IQ")

Head = dict[str, Any]


class Wire:
    """One end of a connection. Several threads may send; one receives.

    Args:
        connection: connected; closed with this.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, head: Head, body: bytes = b"") -> None:
        """Sends a message.

        Raises:
            OSError: nobody is at the other end any more.
        """
        data = json.dumps(head).encode()
        with self._sending:
            self._connection.sendall(_LENGTHS.pack(len(data), len(body)) + data)
            if body:
                self._connection.sendall(body)

    def receive(self) -> tuple[Head, bytes]:
        """The next message; waits for it.

        Raises:
            EOFError: the other end has closed.
            OSError: the connection broke.
        """
        head, body = _LENGTHS.unpack(self._exactly(_LENGTHS.size))
        return json.loads(self._exactly(head)), self._exactly(body)

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            got = self._connection.recv_into(view[at:])
            if not got:
                raise EOFError("the other end has closed")
            at += got
        return bytes(data)

    @property
    def host(self) -> str:
        """The address of this end: others that the other end knows reach it by that as well."""
        return str(self._connection.getsockname()[0])

    def close(self) -> None:
        """Closes the connection; whoever waits for a message gets an error."""
        with contextlib.suppress(OSError):  # the other end was first
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def failure(error: Exception) -> Head:
    """An error as a message; `error_of` gives it back, and of a defect what it says."""
    kind = type(error).__name__
    why = error.message if isinstance(error, FairwayError) else f"{kind}: {error}"
    return {"is": "failed", "kind": kind, "why": why}


def error_of(head: Head) -> FairwayError:
    """The error that the other end met, of its kind."""
    kind = getattr(st_common.errors, str(head["kind"]), StateError)
    is_ours = isinstance(kind, type) and issubclass(kind, FairwayError)
    return (kind if is_ours else StateError)(str(head["why"]))
