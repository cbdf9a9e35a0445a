"""Captures and a broker of MQTT that are killed (-9) in turns, and who is to blame for a message that is nowhere.

publisher  ->  broker  ->  capture  ->  log         each message has its own number, in its topic too
     acknowledges   acknowledges

The broker says in its log what it was told, what it told the capture, and what the capture acknowledged. So of each
message that it has acknowledged and that no log holds, it is known whether the capture had acknowledged it (then it
is the capture's fault), or the broker had not kept what it had acknowledged.
"""

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from st_common.config.home import Home
from tests.kit.capture_kills import (
    MOST_UNKNOWN,
    PAUSE_S,
    SHIPS,
    configure,
    stored_at_last,
)
from tests.kit.mqtt_broker import MqttBroker, mqtt_broker
from tests.kit.victims import capturer, killed, started

DURABLE = "persistence true\nautosave_on_changes true\nautosave_interval 1"
"""Settings of a mosquitto that writes all that it holds after each round of its loop in which something changed."""
_USER, _PASSWORD = "ship", "secret"
_CLIENT = f"fairway-{SHIPS}-feed"
_SOURCE = """kind = "mqtt"
connect = "{address}"
topics = ["ships/#"]
batch_ms = {batch_ms}
user = "ship"
token_env = "BROKER_TOKEN"
"""
_TOLD = re.compile(
    rf"Sending PUBLISH to {_CLIENT} \(d\d, q1, r0, m(\d+), 'ships/(\d+)'"
)
_RELEASED = re.compile(rf"Received PUBACK from {_CLIENT} \(Mid: (\d+)")
_STILL_S = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it, by the numbers of messages.

    Attributes:
        acknowledged: by the broker, to whoever published them.
        released: acknowledged by the capture, to the broker, as the broker's log says.
        stored: in the log of the stream.
        kills: how often something was killed.
    """

    acknowledged: frozenset[int]
    released: frozenset[int]
    stored: frozenset[int]
    kills: int

    @property
    def lost_by_the_capture(self) -> frozenset[int]:
        """Those that the capture acknowledged and has not stored."""
        return self.released - self.stored

    @property
    def lost_by_the_broker(self) -> frozenset[int]:
        """Those that the broker acknowledged, has not got rid of, and does not have."""
        return self.acknowledged - self.released - self.stored


class Publisher:
    """Publishes one message after the other with qos 1, across all deaths of its broker, until it is told to stop."""

    def __init__(self, broker: MqttBroker) -> None:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        self.acknowledged: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._stopping, self._given = threading.Event(), 0
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id="teller", protocol=mqtt.MQTTv5
        )
        self._client.username_pw_set(_USER, _PASSWORD)
        self._client.reconnect_delay_set(0.05, 0.1)  # type: ignore[arg-type]
        self._client.on_publish = self._published
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many are published and not acknowledged."""
        return self._given - len(self.acknowledged)

    def stop(self) -> None:
        """Publishes no more, and waits until all is acknowledged."""
        self._stopping.set()
        self._thread.join()
        end_s = time.monotonic() + 60
        while self.waiting and time.monotonic() < end_s:
            time.sleep(0.01)
        self._client.disconnect()
        self._client.loop_stop()

    def _publish(self) -> None:
        while not self._stopping.is_set():
            if self.waiting < MOST_UNKNOWN and self._client.is_connected():
                number = self._given
                self._given += 1
                record = json.dumps({"id": "a", "t": number, "x": 1, "y": 1})
                told = self._client.publish(f"ships/{number}", record, qos=1)
                self._numbers[told.mid] = number
            time.sleep(PAUSE_S)

    def _published(
        self, _c: object, _d: object, mid: int, why: object, _p: object
    ) -> None:
        end_s = time.monotonic() + 10
        while mid not in self._numbers and time.monotonic() < end_s:
            time.sleep(0.0001)  # the other thread has just published it
        if not getattr(why, "is_failure", False):
            self.acknowledged.add(self._numbers.pop(mid))


def lived(root: Path, *, kills: int, seed: int, settings: str = DURABLE) -> Outcome:
    """Kills the capture and the broker in turns while messages come, and tells what came of them.

    Args:
        root: an empty folder; BROKER_TOKEN is `secret` in the environment.
        kills: how often, behind one of the capture and then the broker while nobody takes what comes.
        seed: of the pauses between kills.
        settings: of the broker, how it keeps what it holds.
    """
    chance = random.Random(seed)
    with _broker(root, settings) as broker:
        home, out, batch_ms = (
            Home(root),
            root / "capture.out",
            chance.choice((1, 20, 200)),
        )
        configure(home, _SOURCE.format(address=broker.address, batch_ms=batch_ms))
        capture = started(capturer, out, root, SHIPS)
        _until_subscribed(root)
        publisher = Publisher(broker)
        killed(capture)
        _until_told_more(publisher)
        broker.stop(hard=True)  # it alone holds what it has acknowledged by now
        broker.start()
        capture = started(capturer, out, root, SHIPS)
        for number in range(kills):
            time.sleep(chance.uniform(0.05, 1.0))
            if number % 2:
                broker.stop(hard=True)
                time.sleep(chance.uniform(0, 0.3))
                broker.start()
            else:
                killed(capture)
                time.sleep(chance.uniform(0, 0.5))
                capture = started(capturer, out, root, SHIPS)
        time.sleep(1)
        publisher.stop()
        found = stored_at_last(home, publisher.acknowledged, still_s=_STILL_S)
        killed(capture)
        return Outcome(
            acknowledged=frozenset(publisher.acknowledged),
            released=frozenset(released_in(root / "broker" / "broker.log")),
            stored=frozenset(found),
            kills=2 + kills,
        )


def released_in(log: Path) -> Iterator[int]:
    """The numbers of messages that the capture has acknowledged, by the log of the broker."""
    told: dict[str, int] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        if match := _TOLD.search(line):
            told[match[1]] = int(match[2])
        elif match := _RELEASED.search(line):
            yield told[match[1]]


def _broker(root: Path, settings: str) -> AbstractContextManager[MqttBroker]:
    folder = root / "broker"
    folder.mkdir()
    more = f"{settings}\npersistence_location {folder}/"
    return mqtt_broker(folder, {_USER: _PASSWORD}, more=more)


def _until_told_more(publisher: Publisher) -> None:
    enough, end_s = len(publisher.acknowledged) + 10, time.monotonic() + 120
    while len(publisher.acknowledged) < enough:
        if time.monotonic() > end_s:
            raise TimeoutError("the broker acknowledges nothing")
        time.sleep(0.01)


def _until_subscribed(root: Path) -> None:
    end_s = time.monotonic() + 120
    log = root / "broker" / "broker.log"
    while f"Sending SUBACK to {_CLIENT}" not in log.read_text(encoding="utf-8"):
        if time.monotonic() > end_s:
            raise TimeoutError((root / "capture.out").read_text()[-2000:])
        time.sleep(0.05)
