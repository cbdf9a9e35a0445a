"""A receiver of changes on this machine: it keeps what it acknowledged, and does wrong what a test wants it to."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Change = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Answer:
    """What the receiver does with one request: a status, after a pause; `cut` drops the connection without a word."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    cut: bool = False


Judge = Callable[[list[Change]], Answer]


class _Server(ThreadingHTTPServer):
    """A server whose callers may go away before they are answered, as one that is killed or out of patience does."""

    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says what went wrong, unless the caller is gone.

        A traceback is more than noise here: Python 3.11 parses code to print one, and a
        thread that does so breaks `ast.parse` in all others (SystemError, "recursion depth mismatch").
        """
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@dataclass
class HttpReceiver:
    """What came, request by request: `taken` are the changes that were acknowledged, in their order."""

    judge: Judge = lambda _: Answer()
    port: int = 0
    requests: list[list[Change]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    taken: list[Change] = field(default_factory=list)
    _server: _Server | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/in"

    def start(self) -> None:
        """Listens, after a `stop` on the same port as before."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """Hands each request to the receiver."""

            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_POST(self) -> None:
                """Reads the lines, asks the judge, answers."""
                receiver.answer(self)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.01},
            daemon=True,
        ).start()

    def stop(self) -> None:
        """Listens no more: who comes is refused a connection."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answers one request as the judge says; what is acknowledged counts before the answer is written."""
        lines = request.rfile.read(int(request.headers["Content-Length"])).splitlines()
        changes = [json.loads(line) for line in lines]
        self.requests.append(changes)
        self.headers.append(dict(request.headers))
        answer = self.judge(changes)
        time.sleep(answer.pause_s)
        if answer.cut:
            request.close_connection = True
            return
        if 200 <= answer.status < 300:
            self.taken.extend(changes)
        body = answer.body.encode()
        request.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def http_receiver(judge: Judge = lambda _: Answer()) -> Iterator[HttpReceiver]:
    """A receiver that listens on a port of its own until the end of the block."""
    receiver = HttpReceiver(judge=judge)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()
