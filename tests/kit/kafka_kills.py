"""Captures and a broker of Kafka that are killed (-9) in turns: what was acknowledged is in the log, once.

producer  ->  broker  ->  capture  ->  log      each message has its own number; the log says how far it is in each
     acknowledges                               partition, for Kafka keeps no place of a capture
"""

import json
import logging
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from st_common.config.home import Home
from tests.kit.capture_kills import (
    MOST_UNKNOWN,
    PAUSE_S,
    SHIPS,
    configure,
    stored,
    stored_at_last,
)
from tests.kit.kafka_broker import KafkaBroker, kafka_broker
from tests.kit.victims import capturer, killed, started

_TOPIC, _PARTITIONS = "ships", 3
_SOURCE = """kind = "kafka"
connect = "{address}"
topics = ["ships"]
batch_ms = {batch_ms}
"""
_STILL_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it, by the numbers of messages.

    Attributes:
        acknowledged: by the broker, to whoever produced them.
        stored: how often each is in the log of the stream.
        kills: how often something was killed.
    """

    acknowledged: frozenset[int]
    stored: Counter[int]
    kills: int

    @property
    def lost(self) -> frozenset[int]:
        """Those that the broker acknowledged and that are not stored."""
        return self.acknowledged - self.stored.keys()

    @property
    def doubled(self) -> frozenset[int]:
        """Those that are stored more than once."""
        return frozenset(one for one, times in self.stored.items() if times > 1)


class Producer:
    """Produces one message after the other, each once, across all deaths of its broker, until it is told to stop."""

    def __init__(self, broker: KafkaBroker) -> None:
        from confluent_kafka import Producer as Client

        self.acknowledged: set[int] = set()
        self._stopping, self._given = threading.Event(), 0
        options = {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "linger.ms": 1,
            "message.timeout.ms": 0,
            "reconnect.backoff.max.ms": 300,
        }
        self._client = Client(options, logger=logging.getLogger("kafka"))
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Produces no more, and waits until all is acknowledged."""
        self._stopping.set()
        self._thread.join()
        self._client.flush(60)

    def _produce(self) -> None:
        while not self._stopping.is_set():
            if self._given - len(self.acknowledged) < MOST_UNKNOWN:
                self._give(self._given)
                self._given += 1
            self._client.poll(PAUSE_S)

    def _give(self, number: int) -> None:
        def told(error: object, _message: object) -> None:
            if error is None:
                self.acknowledged.add(number)

        record = json.dumps({"id": f"s{number % 7}", "t": number, "x": 1, "y": 1})
        where = number % _PARTITIONS
        self._client.produce(_TOPIC, record, partition=where, on_delivery=told)


def lived(
    root: Path,
    *,
    kills: int,
    seed: int,
    captures: int | None = None,
    batch_ms: int | None = None,
) -> Outcome:
    """Kills captures of one group and their broker in turns while messages come.

    Args:
        root: an empty folder.
        kills: how often.
        seed: of the pauses between kills, and of what is not given.
        captures: how many there are at a time; None: one or two.
        batch_ms: so long they gather what they store.
    """
    chance = random.Random(seed)
    folder, home, out = root / "broker", Home(root), root / "capture.out"
    folder.mkdir()
    with kafka_broker(folder) as broker:
        _make_topic(broker)
        batch_ms = batch_ms or chance.choice((1, 20, 200, 1000))
        configure(home, _SOURCE.format(address=broker.address, batch_ms=batch_ms))
        count = captures or chance.choice((1, 2))
        living = [started(capturer, out, root, SHIPS) for _ in range(count)]
        producer = Producer(broker)
        for number in range(kills):
            _until_more(home)
            time.sleep(chance.uniform(0, 1.0))
            if number % 2:
                broker.stop(hard=True)
                time.sleep(chance.uniform(0, 0.3))
                broker.start()
            else:
                killed(living.pop(0))
                living.append(started(capturer, out, root, SHIPS))
        producer.stop()
        found = stored_at_last(home, producer.acknowledged, still_s=_STILL_S)
        for capture in living:
            killed(capture)
    return Outcome(
        acknowledged=frozenset(producer.acknowledged), stored=found, kills=kills
    )


def _make_topic(broker: KafkaBroker) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    options: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.address}
    admin = AdminClient(options, logger=logging.getLogger("kafka"))
    made = admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)], request_timeout=30)
    made[_TOPIC].result()


def _until_more(home: Home) -> None:
    """Waits until more is stored than there is."""
    before, end_s = len(stored(home)), time.monotonic() + 2 * _STILL_S
    while len(stored(home)) == before:
        if time.monotonic() > end_s:
            said = (home.root / "capture.out").read_text()
            raise TimeoutError(f"nothing more is stored: {said[-2000:]}")
        time.sleep(0.1)
