"""Who listens for others of a crew: a thread for each connection, and nobody is heard who does not know the token."""

import contextlib
import hmac
import socket
import threading
from collections.abc import Callable

from st_common.spark.wire import Head, Wire

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
