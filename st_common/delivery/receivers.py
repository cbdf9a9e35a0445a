"""The kinds of receivers, by the word that settings use for them."""

from collections.abc import Callable

from st_common.delivery.kafka import Kafka
from st_common.delivery.outcome import Receiver
from st_common.delivery.settings import DeliverySettings, secret
from st_common.delivery.webhook import Webhook

RECEIVERS: dict[str, Callable[[DeliverySettings, str | None], Receiver]] = {
    "webhook": Webhook,
    "kafka": Kafka,
}


def receiver_of(delivery: DeliverySettings) -> Receiver:
    """The receiver of a delivery; no connection is made yet.

    Raises:
        ConfigError: the secret is not there.
    """
    return RECEIVERS[delivery.to](delivery, secret(delivery))
