"""What a kind of receiver is to the rest: the settings that are its own, and how changes get there.

conf/deliveries.toml   to = "webhook", url = ..   ->   WebhookSink   ->   Receiver: send, close
                       (a word of `registry.SINKS`)    (a value)         (a connection)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from st_common.config.home import Home
from st_common.delivery.outcome import Receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(ABC):
    """Where one delivery goes to, as its settings say it. A kind is a frozen dataclass with a field for each key.

    `kind` is the word that settings use after `to`. A field without a default is a key that must be there.
    """

    kind: ClassVar[str]

    def check(self) -> None:  # noqa: B027 - most kinds have keys that know nothing of each other
        """Refuses keys that are right alone and wrong beside each other.

        Raises:
            ConfigError: what is wrong, and what to do; whoever calls adds the place.
        """

    @abstractmethod
    def receiver(self, delivery: str, home: Home) -> Receiver:
        """The receiver that changes are sent to; no connection is made yet.

        Args:
            delivery: the delivery's name.
            home: the installation that it belongs to.

        Raises:
            ConfigError: the secret is not there, or the home has no place for what settings name.
        """
