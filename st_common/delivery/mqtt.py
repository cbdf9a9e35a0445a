"""MQTT 5: one message for each change with QoS 1, to a topic that is named by its query, or by its object too."""

import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from st_common.config.home import Home
from st_common.config.keys import key
from st_common.config.redaction import redacted
from st_common.config.values import WrongError, flag, takes, whole
from st_common.delivery.names import escaped, signs
from st_common.delivery.outcome import Failed, Outcome, Refusal, Taken
from st_common.delivery.remote import BrokerSink, is_local, is_server

if TYPE_CHECKING:
    from paho.mqtt.client import Client
    from paho.mqtt.properties import Properties

    from st_common.delivery.message import Messages

_TOPIC = "fairway/{stream}/{query}"
_PARTS = ("delivery", "stream", "query", "object")
_PART = re.compile(r"\{([^{}]*)\}")
_RESERVED = signs("%/+#$")  # in a part of a topic: levels and wildcards
_MOST_TOPIC = 65_535  # bytes
_FRAME = 64  # bytes of a packet beside topic, id and content, more than ever needed
_MOST_IN_FLIGHT = 65_535
_KEEPALIVE_S = 60
_FOR_GOOD = {0x90: "topic_invalid", 0x95: "too_large", 0x99: "payload_invalid"}
"""What a broker says of a message that it will never take; all else may pass, as a quota or a missing right does."""


@takes("`HOST:PORT`", type="string")
def _broker(value: object) -> str:
    if not isinstance(value, str) or not is_server(value):
        raise WrongError("must be host:port")
    return value


@takes("a topic", type="string")
def _template(value: object) -> str:
    if not isinstance(value, str) or not value or value.startswith("$"):
        raise WrongError("must be a topic, and begin with no $")
    plain = _PART.sub("", value)
    if any(sign in plain for sign in "+#{}\0"):
        raise WrongError("is no topic: it has +, #, or a { or } alone")
    for name in _PART.findall(value):
        if name not in _PARTS:
            raise WrongError(f"has {{{name}}}, which is none of {', '.join(_PARTS)}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSink(BrokerSink):
    """Topics of a `broker` (host:port) that speaks MQTT 5: one of 3.1.1 acknowledges what it refuses and drops it.

    A connection is used once: what fails is given up with all that it holds, and the batch goes by another, so that the
    library's queue never sends what the delivery does not know of.

    Attributes:
        broker: a broker that speaks MQTT 5.
        topic_template: topics, with {delivery}, {stream}, {query} and {object}.
        retain: whether the broker keeps the last change of each topic, for who subscribes later.
        in_flight: how many changes wait for their acknowledgement at most.
    """

    kind: ClassVar[str] = "mqtt"

    broker: str = field(metadata=key(_broker))
    topic_template: str = field(default=_TOPIC, metadata=key(_template))
    retain: bool = field(default=False, metadata=key(flag))
    in_flight: int = field(default=20, metadata=key(whole(most=_MOST_IN_FLIGHT)))

    @property
    def address(self) -> tuple[str, int]:
        """The broker's host and port."""
        host, _, port = self.broker.rpartition(":")
        return host.strip("[]"), int(port)

    def is_private(self) -> bool:
        """See `RemoteSink.is_private`."""
        return self.tls or is_local(self.address[0])

    def receiver(self, delivery: str, home: Home) -> "Mqtt":  # noqa: ARG002 - the home has no part in it
        """See `Sink.receiver`."""
        return Mqtt(self, delivery, self.secret(delivery))


class Mqtt:
    """One broker. A message is acknowledged when the broker has said so (PUBACK).

    When anything fails the connection is given up with all that it still holds, and changes are sent again by another.
    """

    def __init__(self, sink: MqttSink, delivery: str, token: str | None) -> None:
        self._sink, self._delivery, self._token = sink, delivery, token
        self._line: _Line | None = None

    def send(self, batch: "Messages") -> Outcome:
        """Sends messages in their order and waits until each is acknowledged, or none was for the timeout."""
        try:
            return self._sent(self._connected(), batch)
        except (OSError, _LostError) as error:
            self.close()
            host, port = self._sink.address
            return Failed(reason=redacted(f"{host}:{port}: {error}"))

    def close(self) -> None:
        """Ends the connection; all that it took was acknowledged before."""
        if self._line is not None:
            self._line.end()
            self._line = None

    def _connected(self) -> "_Line":
        if self._line is not None and not self._line.is_open:
            self.close()  # the broker has ended it since the last batch
        if self._line is None:
            self._line = _Line(
                self._sink, _client(self._sink, self._delivery, self._token)
            )
            self._line.open()
        return self._line

    def _sent(self, line: "_Line", batch: "Messages") -> Outcome:
        refused: dict[int, Refusal] = {}
        places: dict[int, int] = {}
        topics = topics_of(self._sink.topic_template, self._delivery, batch)
        for place, topic in enumerate(topics):
            own, content = batch.ids[place], batch.lines[place]
            refusal = line.refusal_of(topic, own, content)
            if refusal is not None:
                refused[place] = refusal
                continue
            places[line.publish(topic, own, content)] = place
        for mid, refusal in line.settle().items():
            refused[places[mid]] = refusal
        return Taken(refused=tuple(sorted(refused.items())))


def topics_of(template: str, delivery: str, batch: "Messages") -> list[str]:
    """The topic of each message. In a name `%`, `/`, `+`, `#` and `$` are written `%25`, `%2F`, `%2B`, `%23`, `%24`.

    So are control characters and ends of lines, by their bytes in UTF-8.

    Args:
        template: with the parts in braces.
        delivery: the delivery's name.
        batch: the messages.
    """
    parts = {"delivery": _level(delivery), "stream": _level(batch.stream)}
    objects = batch.rows["object"].to_pylist()
    return [
        template.format(query=_level(query), object=_level(name), **parts)
        for query, name in zip(batch.queries, objects, strict=True)
    ]


def _level(name: str) -> str:
    return escaped(name, _RESERVED)


class _LostError(Exception):
    """The connection is of no use any more."""


class _Line:
    """A connection. A thread of the library reads what the broker says, and answers for us while nothing is sent."""

    def __init__(self, sink: MqttSink, client: "Client") -> None:
        self._sink, self._client = sink, client
        self._said = threading.Condition()
        self._is_open = False
        self._ended: str | None = None
        self._in_flight, self._largest = sink.in_flight, 0
        self._published, self._answered = 0, 0
        self._refused: dict[int, Refusal] = {}
        client.on_connect = self._on_connect
        client.on_publish = self._on_publish
        client.on_disconnect = self._on_disconnect

    @property
    def is_open(self) -> bool:
        """Whether nothing is known that has ended it."""
        return self._is_open and self._ended is None

    def open(self) -> None:
        """Connects, and waits until the broker has let us in.

        Raises:
            OSError: nobody listens there, or their certificate is not trusted.
            _LostError: the broker refuses us, or does not answer.
        """
        host, port = self._sink.address
        self._client.connect(host, port, keepalive=_KEEPALIVE_S)
        self._client.loop_start()
        with self._said:
            self._wait(lambda: self._is_open)

    def end(self) -> None:
        """Ends it, and the thread; what was not acknowledged is forgotten."""
        self._client.disconnect()
        self._client.loop_stop()

    def refusal_of(self, topic: str, own: str, content: bytes) -> Refusal | None:
        """Why a message can never be sent: its topic or all of it is too large; None: it can."""
        size = len(topic.encode())
        if size > _MOST_TOPIC:
            details = f"a topic of {size} bytes, and {_MOST_TOPIC} are possible"
            return Refusal(reason="topic_too_long", details=details)
        size += len(own.encode()) + len(content) + _FRAME
        if self._largest and size > self._largest:
            details = f"a message of {size} bytes, and the broker takes {self._largest}"
            return Refusal(reason="too_large", details=details)
        return None

    def publish(self, topic: str, own: str, content: bytes) -> int:
        """Sends a message when there is room for one more that waits for its acknowledgement; gives its number.

        Raises:
            _LostError: the connection ended, or nothing was acknowledged for the timeout.
        """
        with self._said:
            self._wait(lambda: self._waiting() < self._in_flight)
            self._published += 1
        sent = self._client.publish(
            topic, content, qos=1, retain=self._sink.retain, properties=_said_of(own)
        )
        return sent.mid

    def settle(self) -> dict[int, Refusal]:
        """Waits until all messages are answered; gives those refused for good since the last call, by their numbers.

        Raises:
            _LostError: the connection ended, or nothing was acknowledged for the timeout.
        """
        with self._said:
            while self._waiting():
                self._wait(self._answers_more(self._answered))
            refused, self._refused = self._refused, {}
            return refused

    def _answers_more(self, before: int) -> Callable[[], bool]:
        return lambda: self._answered > before

    def _waiting(self) -> int:
        return self._published - self._answered

    def _wait(self, is_so: Callable[[], bool]) -> None:
        """Waits for something that the broker says; the condition is held."""
        timeout_s = self._sink.timeout_s
        self._said.wait_for(lambda: is_so() or self._ended is not None, timeout_s)
        if self._ended is not None:
            raise _LostError(self._ended)
        if not is_so():
            raise _LostError(f"no answer for {timeout_s:g} s")

    def _on_connect(self, *said: Any) -> None:
        _, _, _, code, properties = said
        with self._said:
            if code.is_failure:
                self._ended = f"the broker refuses us: {code}"
            elif getattr(properties, "MaximumQoS", 2) < 1:
                self._ended = "the broker acknowledges nothing: it takes QoS 0 alone"
            elif self._sink.retain and not getattr(properties, "RetainAvailable", 1):
                self._ended = "the broker keeps no messages: set retain = false"
            most = getattr(properties, "ReceiveMaximum", _MOST_IN_FLIGHT)
            self._in_flight = min(self._in_flight, most)
            self._largest = getattr(properties, "MaximumPacketSize", 0)
            self._is_open = True
            self._said.notify_all()

    def _on_publish(self, *said: Any) -> None:
        _, _, mid, code, _ = said
        with self._said:
            reason = _FOR_GOOD.get(code.value)
            if reason is not None:
                self._refused[mid] = Refusal(reason=reason, details=str(code))
            elif code.is_failure:
                self._ended = f"the broker refuses a message: {code}"
            self._answered += 1
            self._said.notify_all()

    def _on_disconnect(self, *said: Any) -> None:
        _, _, _, code, _ = said
        with self._said:
            self._ended = self._ended or f"the connection ended: {code}"
            self._said.notify_all()


def _client(sink: MqttSink, delivery: str, token: str | None) -> "Client":
    """A client that connects once and keeps nothing for another connection.

    Its id is drawn anew each time: a broker ends the connection of one that is there when another has its id, and
    deliveries of other homes may have the same name.
    """
    from paho.mqtt.client import Client, MQTTv5  # late: other commands do without it
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=f"fairway-{delivery}-{secrets.token_hex(4)}",
        protocol=MQTTv5,
        reconnect_on_failure=False,
    )
    client.connect_timeout = sink.timeout_s
    client.max_inflight_messages = 0  # `_Line` counts them: the broker says how many
    if sink.user is not None:
        client.username_pw_set(sink.user, token)
    if sink.tls:
        client.tls_set(ca_certs=sink.ca)
    return client


def _said_of(own: str) -> "Properties":
    """What goes along with a message: its id, and that it is a text of JSON."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.UserProperty = ("fairway-id", own)
    properties.ContentType = "application/json"
    properties.PayloadFormatIndicator = 1
    return properties
