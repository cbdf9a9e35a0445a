"""A Kafka broker on this machine for a test: one node that is its own controller, from jars, on 127.0.0.1 only."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.jvm import QUICK_TO_START

JARS = Path(__file__).resolve().parents[2] / "jars" / "kafka"
_JAVA = (
    "java",
    "-Xms64m",
    "-Xmx256m",
    *QUICK_TO_START,
    "-cp",
    f"{JARS}/*",
)
_CLUSTER = "ZmFpcndheS1jaGFuZ2VzLg"  # any 16 bytes in base64
_START_S = 60.0
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@dataclass
class KafkaBroker:
    """A broker whose data lie in `folder`; it can be stopped and started again on the same port."""

    folder: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        settings = self.folder / "broker.properties"
        if not settings.exists():
            self.port, controller = _free_ports(2)
            settings.write_text(
                _SETTINGS.format(
                    port=self.port, controller=controller, folder=self.folder
                )
            )
            command = [
                *_JAVA,
                "kafka.tools.StorageTool",
                "format",
                "-t",
                _CLUSTER,
                "-c",
                str(settings),
            ]
            subprocess.run(command, check=True, capture_output=True, timeout=_START_S)
        with (self.folder / "broker.log").open("ab") as log:
            command = [*_JAVA, "kafka.Kafka", str(settings)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end_s = time.monotonic() + _START_S
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > end_s:
                self.stop()
                raise RuntimeError((self.folder / "broker.log").read_text()[-2000:])
            time.sleep(0.1)

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


@contextmanager
def kafka_broker(folder: Path) -> Iterator[KafkaBroker]:
    """A broker that runs until the end of the block."""
    broker = KafkaBroker(folder=folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop(hard=True)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
