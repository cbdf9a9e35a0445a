"""A Kafka broker on this machine for a test: one node that is its own controller, from jars, on 127.0.0.1 only."""

import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.broker_process import BrokerProcess, running
from tests.kit.jvm import QUICK_TO_START
from tests.kit.ports import free_ports

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


@dataclass(kw_only=True)
class KafkaBroker(BrokerProcess):
    """A broker whose data lie in `folder`."""

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        settings = self.folder / "broker.properties"
        if not settings.exists():
            self.port, controller = free_ports(2)
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
        self._launch([*_JAVA, "kafka.Kafka", str(settings)], within_s=_START_S)


def kafka_broker(folder: Path) -> AbstractContextManager[KafkaBroker]:
    """A broker that runs until the end of the block."""
    return running(KafkaBroker(folder=folder))
