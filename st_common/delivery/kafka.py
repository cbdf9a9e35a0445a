"""Kafka: one record for each change, keyed by its query, so that a query's changes stay in one partition in order."""

import logging
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from st_common.config.home import Home
from st_common.config.keys import key
from st_common.config.redaction import redacted
from st_common.config.values import WrongError, one_of, takes
from st_common.delivery.outcome import Failed, Outcome, Refusal, Refused, Taken
from st_common.delivery.remote import BrokerSink, is_local, is_server
from st_common.extras import require_module

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from st_common.delivery.message import Messages

_LOG = logging.getLogger(__name__)
_DEFAULT_LIMIT = 1_000_000  # of a record, where the topic does not tell its own; brokers take a little more
_FRAME = (
    256  # bytes around key and value in a batch of one record, more than ever needed
)
_TOO_LARGE = "MSG_SIZE_TOO_LARGE"
_NO_RIGHT = (29, 31)  # TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED
_SASL = ("scram-sha-512", "scram-sha-256", "plain")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@takes("`HOST:PORT`, more than one with commas", type="string")
def _bootstrap(value: object) -> str:
    servers = value.split(",") if isinstance(value, str) else [""]
    if not all(is_server(server.strip()) for server in servers):
        raise WrongError("must be host:port, more than one with commas")
    return str(value)


@takes("the name of a topic", type="string")
def _topic(value: object) -> str:
    is_name = isinstance(value, str) and _TOPIC.fullmatch(value)
    if not is_name or value in (".", ".."):
        raise WrongError("is no name of a topic: letters, digits, . _ and -")
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSink(BrokerSink):
    """A topic of some brokers.

    Attributes:
        bootstrap: the brokers.
        topic: the topic; it must exist.
        sasl: how it is shown who we are.
    """

    kind: ClassVar[str] = "kafka"

    bootstrap: str = field(metadata=key(_bootstrap))
    topic: str = field(metadata=key(_topic))
    sasl: str = field(default="scram-sha-512", metadata=key(one_of(*_SASL)))

    def is_private(self) -> bool:
        """See `RemoteSink.is_private`."""
        servers = [server.strip() for server in self.bootstrap.split(",")]
        hosts = [server.rpartition(":")[0].strip("[]") for server in servers]
        return self.tls or all(is_local(host) for host in hosts)

    def receiver(self, delivery: str, home: Home) -> "Kafka":  # noqa: ARG002 - the home has no part in it
        """See `Sink.receiver`."""
        require_module("confluent_kafka")
        return Kafka(self, delivery, self.secret(delivery))


class Kafka:
    """One topic. A record is acknowledged when all replicas in sync have it.

    Records go through an idempotent producer, which never lets a later one overtake; one that failed is given up with
    all that it still holds, and the changes are sent again by another.
    """

    def __init__(self, sink: KafkaSink, delivery: str, token: str | None) -> None:
        self._topic, self._timeout_s = sink.topic, sink.timeout_s
        self._options = _options(sink, delivery, token)
        self._producer: Producer | None = None
        self._limit: int | None = None

    def send(self, batch: "Messages") -> Outcome:
        """Sends records and waits until each is acknowledged, or some are not within the delivery's timeout."""
        from confluent_kafka import KafkaException  # late: other commands do without it

        try:
            producer = self._connected()
            refused, errors = self._produce(producer, batch)
            waiting = producer.flush(self._timeout_s)
        except KafkaException as error:
            self._give_up()
            return Failed(reason=redacted(str(error.args[0])))
        if not waiting and not errors:
            return Taken(refused=tuple(refused))
        if not waiting and all(error.name() == _TOO_LARGE for error in errors.values()):
            return self._too_large(refused, errors)
        self._give_up()
        return Failed(
            reason=redacted(
                str(
                    next(
                        iter(errors.values()), f"{waiting} records are not acknowledged"
                    )
                )
            )
        )

    def close(self) -> None:
        """Gives the producer up; all that it took was acknowledged before."""
        self._give_up()

    def _produce(
        self, producer: "Producer", batch: "Messages"
    ) -> tuple[list[tuple[int, Refusal]], dict[int, "KafkaError"]]:
        """Hands records over; gives those that are too large to be sent, and where errors will be noted."""
        refused: list[tuple[int, Refusal]] = []
        errors: dict[int, KafkaError] = {}
        limit = self._limit or _DEFAULT_LIMIT
        for number, (own, query, line) in enumerate(
            zip(batch.ids, batch.queries, batch.lines, strict=True)
        ):
            key, headers = query.encode(), {"fairway-id": own.encode()}
            size = len(key) + len(line) + len(headers["fairway-id"]) + _FRAME
            if size > limit:
                details = f"a record of {size} bytes, and the topic takes {limit}"
                refused.append((number, Refusal(reason="too_large", details=details)))
                continue
            producer.produce(
                self._topic,
                line,
                key,
                headers={**headers},
                on_delivery=partial(_note, errors, number),
            )
            producer.poll(0)
        return refused, errors

    def _too_large(
        self, refused: list[tuple[int, Refusal]], errors: dict[int, "KafkaError"]
    ) -> Outcome:
        """A broker refuses a batch of records as a whole; with one record in each it is known which."""
        if (
            self._limit is not None
        ):  # the topic's limit was lowered since it was asked for
            self._give_up()
            return Refused(
                refusal=Refusal(
                    reason="too_large", details=str(next(iter(errors.values())))
                )
            )
        late = [
            (number, Refusal(reason="too_large", details=str(error)))
            for number, error in errors.items()
        ]
        return Taken(refused=tuple(sorted([*refused, *late], key=lambda pair: pair[0])))

    def _connected(self) -> "Producer":
        from confluent_kafka import Producer

        if self._producer is None:
            self._limit = _limit_of(self._topic, self._options, self._timeout_s)
            limit = self._limit or _DEFAULT_LIMIT
            sizes: dict[str, Any] = {"message.max.bytes": limit, "batch.size": limit}
            if self._limit is None:
                sizes["batch.num.messages"] = 1
            self._producer = Producer({**self._options, **_SAFE, **sizes}, logger=_LOG)
        return self._producer

    def _give_up(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(0)  # calls back for what was purged
            self._producer = None


_SAFE: dict[str, Any] = {
    "enable.idempotence": True,  # acks=all, and no later record before an earlier one
    "message.timeout.ms": 0,  # a record never expires inside: a later one would get ahead of it
    "partitioner": "murmur2_random",  # as Java's producers do
    "linger.ms": 2,
}


def _options(sink: KafkaSink, delivery: str, token: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap.servers": sink.bootstrap,
        "client.id": f"fairway-{delivery}",
        "security.protocol": ("SASL_" if sink.user else "")
        + ("SSL" if sink.tls else "PLAINTEXT"),
        "socket.timeout.ms": max(round(sink.timeout_s * 1000), 1000),
    }
    if sink.user:
        options |= {
            "sasl.mechanisms": sink.sasl.upper(),
            "sasl.username": sink.user,
            "sasl.password": token,
        }
    if sink.ca:
        options["ssl.ca.location"] = sink.ca
    return options


def _limit_of(topic: str, options: dict[str, Any], timeout_s: float) -> int | None:
    """The size that the topic's records may have; None when there is no right to ask for it.

    Raises:
        KafkaException: no broker answers, or there is no such topic.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined] # exported

    admin = AdminClient(options, logger=_LOG)  # must live until it has answered
    asked = admin.describe_configs(
        [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=timeout_s
    )
    for answer in asked.values():
        try:
            return int(answer.result()["max.message.bytes"].value)
        except KafkaException as error:
            if error.args[0].code() not in _NO_RIGHT:
                raise
    return None


def _note(
    errors: dict[int, "KafkaError"],
    number: int,
    error: "KafkaError | None",
    _: "Message",
) -> None:
    if error is not None:
        errors[number] = error
