"""Messages between a driver and tasks that stay: a head as JSON, then bytes; one connection for each task.

length of head | length of body | head | body
"""

import contextlib
import hmac
import json
import socket
import struct
import threading
from collections.abc import Callable
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


_GREETING_S = 10.0


class Listener:
    """Accepts connections until it is closed, and serves those that begin with a hello that knows the token.

    Args:
        host: the address to listen on.
        token: what a hello must know.
        serve: given a connection and its hello, in a thread of its own; the connection is closed when it returns.
        name: of the thread that accepts.
    """

    def __init__(
        self, host: str, token: str, serve: Callable[[Wire, Head], None], *, name: str
    ) -> None:
        self._token, self._serve = token, serve
        self._server = socket.create_server((host, 0))
        self.address: tuple[str, int] = self._server.getsockname()[:2]
        self._wires: set[Wire] = set()
        threading.Thread(target=self._accept, daemon=True, name=name).start()

    def stop(self) -> None:
        """Accepts no more connections; those that there are stay."""
        # Whoever waits for connections would go on with one more.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def close(self) -> None:
        """Accepts no more, and closes all connections, also of those that have just come."""
        self.stop()
        for wire in list(self._wires):
            wire.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        """Serves one connection; whoever does not know the token is not answered."""
        wire = Wire(connection)
        self._wires.add(wire)
        try:
            connection.settimeout(_GREETING_S)
            hello, _ = wire.receive()
            if hmac.compare_digest(str(hello.get("token")), self._token):
                connection.settimeout(None)
                self._serve(wire, hello)
        except (OSError, EOFError, ValueError, KeyError):
            return  # it is gone, or none of ours
        finally:
            self._wires.discard(wire)
            wire.close()
