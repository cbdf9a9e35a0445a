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

from st_common.home import Home
from tests.kit.feeding import lines_of
from tests.kit.kafka_broker import KafkaBroker, kafka_broker
from tests.kit.victims import capturer, killed, started

_STREAM, _TOPIC, _PARTITIONS = "ships", "ships", 3
_CONF = """
[streams.ships]
format = "ndjson"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
crs = "planar"
time_unit = "s"
max_ahead_s = "off"

[streams.ships.sources.feed]
kind = "kafka"
connect = "{address}"
topics = ["ships"]
batch_ms = {batch_ms}
retry_max_s = 0.3
"""
_PAUSE_S = 0.004
_MOST_UNKNOWN = 200
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
            "bootstrap.servers": broker.bootstrap,
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
            if self._given - len(self.acknowledged) < _MOST_UNKNOWN:
                self._give(self._given)
                self._given += 1
            self._client.poll(_PAUSE_S)

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
        _configure(root, broker, batch_ms=batch_ms or chance.choice((1, 20, 200, 1000)))
        count = captures or chance.choice((1, 2))
        living = [started(capturer, out, root, _STREAM) for _ in range(count)]
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
                living.append(started(capturer, out, root, _STREAM))
        producer.stop()
        stored = _stored_at_last(home, producer.acknowledged)
        for capture in living:
            killed(capture)
    return Outcome(
        acknowledged=frozenset(producer.acknowledged), stored=stored, kills=kills
    )


def _make_topic(broker: KafkaBroker) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": broker.bootstrap
    }
    admin = AdminClient(options, logger=logging.getLogger("kafka"))
    made = admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)], request_timeout=30)
    made[_TOPIC].result()


def _configure(root: Path, broker: KafkaBroker, *, batch_ms: int) -> None:
    (root / "conf").mkdir()
    text = _CONF.format(address=broker.bootstrap, batch_ms=batch_ms)
    (root / "conf" / "streams.toml").write_text(text)


def _until_more(home: Home) -> None:
    """Waits until more is stored than there is."""
    before, end_s = len(_stored(home)), time.monotonic() + 2 * _STILL_S
    while len(_stored(home)) == before:
        if time.monotonic() > end_s:
            said = (home.root / "capture.out").read_text()
            raise TimeoutError(f"nothing more is stored: {said[-2000:]}")
        time.sleep(0.1)


def _stored(home: Home) -> Counter[int]:
    if not home.log(_STREAM).exists():
        return Counter()
    return Counter(json.loads(line)["t"] for line in lines_of(home, _STREAM))


def _stored_at_last(home: Home, acknowledged: set[int]) -> Counter[int]:
    """What the log holds once it holds all that was acknowledged, or nothing more comes."""
    stored = _stored(home)
    since_s = time.monotonic()
    while acknowledged - stored.keys() and time.monotonic() < since_s + _STILL_S:
        now = _stored(home)
        if len(now) > len(stored):
            stored, since_s = now, time.monotonic()
        time.sleep(0.2)
    return _stored(home)
