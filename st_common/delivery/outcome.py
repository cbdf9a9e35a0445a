"""What becomes of changes that were sent, and what a receiver looks like from here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from st_common.delivery.message import Messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a change will never be taken: a short code such as `http_422`, and what the receiver said."""

    reason: str
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The receiver has them all, but for some that it will never take: their places in what was sent."""

    refused: tuple[tuple[int, Refusal], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The receiver takes none of them as long as they come together; one of them alone it will never take."""

    refusal: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Nobody knows whether the receiver has any of them. `after_s` is the pause that it asked for, if it did."""

    reason: str
    after_s: float | None = None


Outcome = Taken | Refused | Failed


class Receiver(Protocol):
    """Where changes are delivered to."""

    def send(self, batch: "Messages") -> Outcome:
        """Sends changes in their order and waits for what becomes of them."""

    def close(self) -> None:
        """Lets go of connections."""
