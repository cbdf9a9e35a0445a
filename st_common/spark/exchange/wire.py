"""Connections between the processes of a run: mutual TLS, one framing, who listens, who connects, errors, timeouts.

    length of head | length of body | head, JSON | body          each message, within TLS 1.3

A run makes a key and a certificate for itself, and Spark hands both to its tasks: whoever has them is of the run, at
either end. Nobody else is heard, or spoken to.
"""

import contextlib
import datetime as dt
import json
import logging
import secrets
import socket
import ssl
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import st_common.errors
from st_common.errors import FairwayError, StateError, one_line

ALIVE_S = 3.0
"""How often a task says that it lives."""
SILENT_S = 15.0
"""For how long the other end may say nothing: a task to its driver, and a task to another one that waits for it."""
GREETING_S = 10.0
"""How long the handshake may take."""

_LOG = logging.getLogger(__name__)
_LENGTHS = struct.Struct("<IQ")
_AT_ONCE = 1 << 18
_REFUSALS_S = 1.0
_VALID = (
    dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
)
"""A run ends its certificate, not a date: machines whose clocks differ, or that run for years, go on."""

Head = dict[str, Any]
Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Keys:
    """What shows that a process is of a run: pickled along with its work, never written or shown in the clear.

    Attributes:
        certificate: PEM; all of a run trust this one alone.
        key: its private key, PEM, under a password.
        password: for the key.
    """

    certificate: str
    key: str = field(repr=False)
    password: str = field(repr=False)

    @staticmethod
    def made() -> "Keys":
        """The keys of a new run."""
        # Only the driver makes keys: tasks need not import it.
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key, password = ec.generate_private_key(ec.SECP256R1()), secrets.token_hex(32)
        cn = x509.NameAttribute(x509.NameOID.COMMON_NAME, f"run {secrets.token_hex(8)}")
        name = x509.Name([cn])
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_VALID[0])
            .not_valid_after(_VALID[1])
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
        return Keys(certificate.public_bytes(pem).decode(), private.decode(), password)


@lru_cache(maxsize=8)
def _context(keys: Keys, *, listens: bool) -> ssl.SSLContext:
    """TLS 1.3 with these keys at both ends, and with no others."""
    side = ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # whoever has the key is of the run, wherever it is
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=keys.certificate)
    if listens:
        context.num_tickets = 0  # nobody comes back
    # Python reads keys from files alone: this user's, for a moment, and the key is under its password in there.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(keys.certificate + keys.key)
        file.flush()
        context.load_cert_chain(file.name, password=keys.password)
    return context


class Wire:
    """One end of a connection, after its handshake. Several threads may send; one receives.

    Args:
        connection: connected; closed with this. Its timeout is that of each wait.
        keys: of the run.
        listens: whether this end was connected to.

    Raises:
        OSError: the other end has no such keys, speaks something else, or is gone.
        EOFError: it has closed.
    """

    def __init__(
        self, connection: socket.socket, keys: Keys, *, listens: bool = False
    ) -> None:
        self._connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # An SSL object is one thread's at a time, and a socket of its kind would be waited on inside.
        self._sending, self._turn = threading.Lock(), threading.Lock()
        self._sealed_in, self._sealed_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = _context(keys, listens=listens)
        self._tls = context.wrap_bio(self._sealed_in, self._sealed_out, listens)
        self._shake_hands()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._connection.sendall(self._sealed_out.read())
                self._fill()
            except ssl.SSLError:
                with contextlib.suppress(OSError):  # it is told why
                    self._connection.sendall(self._sealed_out.read())
                raise
            else:
                self._connection.sendall(self._sealed_out.read())
                return

    def send(self, head: Head, body: bytes = b"") -> None:
        """Sends a message.

        Raises:
            OSError: nobody is at the other end any more.
        """
        data = json.dumps(head).encode()
        parts = [_LENGTHS.pack(len(data), len(body)) + data, body]
        if len(body) < _AT_ONCE:
            parts = [b"".join(parts)]
        with self._sending:
            for part in parts:
                self._send(part)

    def _send(self, data: bytes) -> None:
        view, done = memoryview(data), 0
        while done < len(view):
            end = min(done + _AT_ONCE, len(view))
            with self._turn:
                while done < end:  # one record of TLS at a time
                    done += self._tls.write(view[done:end])
                sealed = self._sealed_out.read()
            self._connection.sendall(sealed)

    def receive(self) -> tuple[Head, bytes]:
        """The next message; waits for it.

        Raises:
            EOFError: the other end has closed.
            OSError: the connection broke, or its timeout is over.
        """
        head, body = _LENGTHS.unpack(self._exactly(_LENGTHS.size))
        return json.loads(self._exactly(head)), self._exactly(body)

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view, done = memoryview(data), 0
        while done < count:
            try:
                with self._turn:
                    done += self._read(view[done:])
            except ssl.SSLWantReadError:
                self._fill()
        return bytes(data)

    def _read(self, into: memoryview) -> int:
        """How many bytes were read, at least one."""
        count = self._tls.read(len(into), into)
        if not count:
            raise EOFError("the other end has closed")
        return int(count)

    def _fill(self) -> None:
        """Waits for what comes next."""
        sealed = self._connection.recv(_AT_ONCE)
        if not sealed:
            raise EOFError("the other end has closed")
        with self._turn:
            self._sealed_in.write(sealed)

    @property
    def host(self) -> str:
        """The address of this end: others that the other end knows reach it by that as well."""
        return str(self._connection.getsockname()[0])

    def wait_at_most(self, seconds: float | None) -> None:
        """How long each wait may take from here on; None: without end."""
        self._connection.settimeout(seconds)

    def close(self) -> None:
        """Closes the connection; whoever waits for a message gets an error."""
        _close(self._connection)


def connected(address: Address, keys: Keys, *, silent_s: float | None = None) -> Wire:
    """A connection to one of the run that listens.

    Args:
        address: host and port.
        keys: of the run.
        silent_s: how long each wait may take; None: without end.

    Raises:
        OSError: nobody listens there, or nobody of the run.
        EOFError: it has closed at once.
    """
    connection = socket.create_connection(address, timeout=silent_s or GREETING_S)
    try:
        wire = Wire(connection, keys)
    except BaseException:
        _close(connection)
        raise
    wire.wait_at_most(silent_s)
    return wire


class Listener:
    """Accepts connections until it is closed, and serves those of the run, each in a thread; others are refused.

    Args:
        host: the address to listen on.
        keys: of the run.
        serve: given a connection, which is closed when it returns; may end by whatever a `Wire` raises.
        name: who listens, for the log and its thread.
    """

    def __init__(
        self, host: str, keys: Keys, serve: Callable[[Wire], None], *, name: str
    ) -> None:
        self._keys, self._serve, self._name = keys, serve, name
        _context(keys, listens=True)  # a disk without room is no stranger's fault
        self._server = socket.create_server((host, 0))
        self.address: Address = self._server.getsockname()[:2]
        self._connections: set[socket.socket] = set()
        self._refused, self._told_s = 0, -_REFUSALS_S
        threading.Thread(target=self._accept, daemon=True, name=name).start()

    def stop(self) -> None:
        """Accepts no more connections; those that there are stay."""
        _close(self._server)  # else whoever waits for one would go on with one more

    def close(self) -> None:
        """Accepts no more, and closes all connections, also of those that have just come."""
        self.stop()
        for connection in list(self._connections):
            _close(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, address = self._server.accept()
            except OSError:
                return  # closed
            self._connections.add(connection)
            told = connection, address[:2]
            threading.Thread(target=self._hear, args=told, daemon=True).start()

    def _hear(self, connection: socket.socket, address: Address) -> None:
        """Serves one connection; whoever has not the keys is not answered."""
        try:
            connection.settimeout(GREETING_S)
            try:
                wire = Wire(connection, self._keys, listens=True)
            except (OSError, EOFError) as error:
                self._refuse(address, error)
                return
            wire.wait_at_most(None)
            self._serve(wire)
        except (OSError, EOFError, ValueError, KeyError):
            return  # it is gone
        finally:
            self._connections.discard(connection)
            _close(connection)

    def _refuse(self, address: Address, error: Exception) -> None:
        """Says in the log who was refused, and why: once a second, however many try."""
        self._refused += 1
        if (now_s := time.monotonic()) - self._told_s < _REFUSALS_S:
            return
        why = getattr(error, "reason", None) or str(error)
        _LOG.warning(
            "%s: refused %d connection(s), the last one from %s port %s, which is not of this run: %s",
            *(self._name, self._refused, *address, one_line(str(why))),
        )
        self._refused, self._told_s = 0, now_s


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other end was first
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


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
