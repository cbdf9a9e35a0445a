"""Messages of brokers: MQTT, where a message is acknowledged once it is stored, and Kafka, which can go back."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from st_common.config.sources import host_and_port
from st_common.errors import ConfigError, TransientError
from st_common.sources.arrival import Arrival, Written
from st_common.sources.framing import of_message
from st_common.sources.source import Resume, Source

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_CONNECT_S = 10.0
_KEEP_ALIVE_S = 30
_MOST_IN_FLIGHT = 4096
"""Messages that a broker sends before it waits for an acknowledgement."""
_SESSION_S = 0xFFFF_FFFF
"""How long a broker keeps what comes while no capture runs: for ever."""
_PASSING = (
    "Server unavailable",
    "Server busy",
    "Quota exceeded",
    "Server shutting down",
)
"""Why a broker refuses for a while."""
_POLL_S = 0.1
_MOST_AT_ONCE = 10_000
_KAFKA_SESSION_MS = 10_000
"""So long the partitions of a capture that was killed stay with it, and nobody reads them."""
_KAFKA_LOG = logging.getLogger(f"{__name__}.kafka")
_KAFKA_LOG.setLevel(logging.CRITICAL)  # 20 lines a second while no broker answers


class Mqtt(Source):
    """Messages of topics. The broker keeps what comes while no capture runs, by a session of this client's own.

    With qos 1 a message is acknowledged when it is durable: after a kill the broker sends again what was not, so a
    record may stand in the log twice, and counts once.
    """

    def check(self) -> None:
        """No header."""
        self.refuse_header()
        self._has_session = False

    @property
    def _client_id(self) -> str:
        return (
            self.settings.client or f"fairway-{self.stream.name}-{self.settings.name}"
        )

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`."""
        given: asyncio.Queue[Any] = asyncio.Queue()
        client = self._client(_Teller(asyncio.get_running_loop(), given))
        host, port = host_and_port(self.settings.connect or "")
        try:
            await asyncio.to_thread(self._connect, client, host, port)
            client.loop_start()
            while (message := await given.get()) is not None:
                if isinstance(message, Exception):
                    raise message
                for arrival in self._arrivals_of(client, message):
                    yield arrival
            raise TransientError(f"the broker at {host}:{port} has broken off")
        finally:
            client.disconnect()
            await asyncio.to_thread(client.loop_stop)

    def _connect(self, client: Any, host: str, port: int) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        wanted = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        wanted.SessionExpiryInterval = _SESSION_S
        wanted.ReceiveMaximum = _MOST_IN_FLIGHT
        client.connect(host, port, _KEEP_ALIVE_S, clean_start=False, properties=wanted)

    def _client(self, teller: "_Teller") -> Any:
        """A client that tells of each message, and of None when it breaks off."""
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=self._client_id,
            protocol=mqtt.MQTTv5,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        client.connect_timeout = _CONNECT_S
        if self.settings.user is not None:
            client.username_pw_set(self.settings.user, self.secret())
        if self.settings.tls:
            client.tls_set()
        client.on_connect = partial(self._connected, teller)
        client.on_subscribe = partial(self._subscribed, teller)
        client.on_message = teller.message
        client.on_disconnect = teller.end
        return client

    def _connected(
        self,
        teller: "_Teller",
        client: Any,
        _data: Any,
        flags: Any,
        reason: Any,
        _more: Any,
    ) -> None:
        refused = f"the broker at {self.settings.connect} says: {reason}"
        if reason.is_failure and reason.getName() in _PASSING:
            teller.tell(TransientError(refused))
            return
        if reason.is_failure:
            teller.tell(ConfigError(refused, hint="look at user and token_env"))
            return
        if self._has_session and not flags.session_present:
            self.doubt(
                f"the broker at {self.settings.connect} has forgotten this client ({self._client_id}): what it had "
                "accepted and not yet sent is lost"
            )
        qos = self.settings.qos
        client.subscribe([(topic, qos) for topic in self.settings.topics])

    def _subscribed(
        self,
        teller: "_Teller",
        _client: Any,
        _data: Any,
        _mid: int,
        reasons: Any,
        _more: Any,
    ) -> None:
        """Refuses a subscription that the broker refuses, or grants without acknowledgements."""
        for topic, reason in zip(self.settings.topics, reasons, strict=False):
            if reason.is_failure or reason.value < self.settings.qos:
                teller.tell(
                    ConfigError(
                        f"the broker at {self.settings.connect} says of topic {topic!r}: {reason}",
                        hint="may this user read it, and does the broker grant the qos of this source?",
                    )
                )
                return
        self._has_session = True

    def _arrivals_of(self, client: Any, message: Any) -> list[Arrival]:
        """The records of a message, which is acknowledged when the last of them is stored."""
        arrivals = of_message(message.payload, self.stream)

        def acknowledge(_written: Written | None) -> None:
            client.ack(message.mid, message.qos)

        if not arrivals:
            acknowledge(None)
            return []
        return [*arrivals[:-1], replace(arrivals[-1], stored=acknowledge)]


class _Teller:
    """Brings what a client hears in its own thread into a queue of the event loop.

    Args:
        loop: the event loop.
        given: its queue.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, given: "asyncio.Queue[Any]"
    ) -> None:
        self._loop, self._given = loop, given

    def tell(self, what: Any) -> None:
        """Brings something into the queue."""
        self._loop.call_soon_threadsafe(self._given.put_nowait, what)

    def message(self, _client: Any, _data: Any, message: Any) -> None:
        """Tells of a message."""
        self.tell(message)

    def end(self, *_: Any) -> None:
        """Tells that nothing more will come."""
        self.tell(None)


class Kafka(Source):
    """Records of topics. Partitions are dealt out among all captures of one group, and each goes on where the log ends.

    A place is the offset behind the last record that is stored; Kafka keeps none for us.
    """

    has_places = True

    def check(self) -> None:
        """No header."""
        self.refuse_header()

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`; a part is "TOPIC/PARTITION"."""
        from confluent_kafka import Consumer, KafkaError, KafkaException

        down: list[KafkaError] = []
        given: dict[str, int] = {}

        def heard(error: KafkaError) -> None:
            """Hears, while it polls, what becomes of no message: no broker answers any more."""
            if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - it has no other name
                down.append(error)

        options = self._options() | {"error_cb": heard}
        consumer = Consumer(options, logger=_KAFKA_LOG)
        try:
            consumer.subscribe(
                list(self.settings.topics),
                on_assign=partial(self._assigned, places, given),
            )
            while True:
                messages = await asyncio.to_thread(
                    consumer.consume, _MOST_AT_ONCE, _POLL_S
                )
                for message in messages:
                    for arrival in self._arrivals_of(message):
                        given |= arrival.places
                        yield arrival
                if down and not messages:
                    raise TransientError(f"Kafka: {down[-1].str()}")
                down.clear()
        except KafkaException as error:
            raise TransientError(f"Kafka: {error.args[0]}") from None
        finally:
            await asyncio.to_thread(consumer.close)

    def _options(self) -> dict[str, Any]:
        settings, secret = self.settings, self.secret()
        first = "earliest" if settings.start == "first" else "latest"
        options: dict[str, Any] = {
            "bootstrap.servers": settings.connect,
            "group.id": settings.client or f"fairway-{self.stream.name}",
            "enable.auto.commit": False,
            "auto.offset.reset": first,
            "session.timeout.ms": _KAFKA_SESSION_MS,
            "security.protocol": ("SASL_" if settings.user else "")
            + ("SSL" if settings.tls else "PLAINTEXT"),
        }
        if settings.user is not None:
            options |= {
                "sasl.mechanisms": "PLAIN",
                "sasl.username": settings.user,
                "sasl.password": secret,
            }
        return options

    def _assigned(
        self,
        places: Resume,
        given: Mapping[str, int],
        consumer: "Consumer",
        partitions: "list[TopicPartition]",
    ) -> None:
        """Goes on where the log ends in each partition that this capture is dealt, or behind what is on its way there.

        A capture that joins or dies has all partitions dealt out anew, to whoever had them too.
        """
        known = places()
        for one in partitions:
            part = f"{one.topic}/{one.partition}"
            if part in known or part in given:
                one.offset = max(known.get(part, 0), given.get(part, 0))
        consumer.assign(partitions)

    def _arrivals_of(self, message: Any) -> list[Arrival]:
        if message.error():
            raise TransientError(f"Kafka: {message.error()}")
        place = {f"{message.topic()}/{message.partition()}": message.offset() + 1}
        arrivals = of_message(message.value() or b"", self.stream)
        return [*arrivals[:-1], *(replace(one, places=place) for one in arrivals[-1:])]
