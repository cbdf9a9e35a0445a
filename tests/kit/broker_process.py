"""A broker on this machine for a test: a process of its own on 127.0.0.1, ended in order or as a crash does."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar


@dataclass(kw_only=True)
class BrokerProcess:
    """A broker whose settings lie in `folder`; it can be stopped and started again on the same port.

    Attributes:
        folder: of its settings and its log.
        port: where it listens, chosen at the first start.
    """

    folder: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Where it listens, as host:port."""
        return f"127.0.0.1:{self.port}"

    def _launch(self, command: Sequence[str], *, within_s: float) -> None:
        """Starts its process, and waits until it takes connections."""
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end_s = time.monotonic() + within_s
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > end_s:
                self.stop()
                raise RuntimeError((self.folder / "broker.log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, *, hard: bool = False) -> None:
        """Ends it: in order, or as a crash does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class Startable(Protocol):
    """What `running` takes."""

    def start(self) -> None:
        """Starts it."""

    def stop(self, *, hard: bool = False) -> None:
        """Ends it."""


Broker = TypeVar("Broker", bound=Startable)


@contextmanager
def running(broker: Broker) -> Iterator[Broker]:
    """A broker that runs until the end of the block."""
    try:
        broker.start()
        yield broker
    finally:
        broker.stop(hard=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
