"""What each kind of source answers."""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping

from st_common.config.environment import secret_of
from st_common.config.sources import SourceSettings
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.sources.arrival import Arrival
from st_common.sources.framing import has_header, is_of_lines

_LOG = logging.getLogger(__name__)
Resume = Callable[[], Mapping[str, int]]
"""Gives where to go on, by part of a source, as the log has it by now."""


class Source(ABC):
    """Where records come from, in one event loop. It is opened again and again, as connections break.

    Args:
        settings: of the source.
        stream: whose records it gives.

    Raises:
        ConfigError: the stream's format does not go with it.
    """

    has_places = False
    """Whether it can go back to a place: then nothing is lost, and nothing stored twice, whenever a capture dies."""

    ends = False
    """Whether it is at its end when `arrivals` are; else it is opened again."""

    def __init__(self, settings: SourceSettings, stream: StreamSettings) -> None:
        self.settings, self.stream = settings, stream
        self.doubts, self.doubted = 0, ""
        self.check()

    def doubt(self, what: str) -> None:
        """Tells that something of what was sent is lost, or may be: it is counted, and `status` shows it.

        Args:
            what: what, where, and why, for people.
        """
        self.doubts += 1
        self.doubted = what
        _LOG.warning("%s: source %s: %s", self.stream.name, self.settings.name, what)

    def check(self) -> None:
        """Refuses a stream whose records cannot come so.

        Raises:
            ConfigError: see above.
        """
        return

    def gone(self, known: Mapping[str, int]) -> set[str]:
        """The parts that will never come again, of those whose places are known: nobody has to remember them."""
        return set()

    @abstractmethod
    def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """Connects, and gives what comes until it breaks off.

        Args:
            places: gives where to go on, for a source that has places.

        Yields:
            Whole records, in the order in which they came.

        Raises:
            OSError: it cannot be reached, or broke off: it is tried again.
            TransientError: likewise.
            ConfigError: it never will be reached like this.
        """
        ...

    def secret(self) -> str | None:
        """The secret, from the environment variable that settings name; None when they name none.

        Raises:
            ConfigError: the variable is not set, or empty.
        """
        variable = self.settings.token_env
        if variable is None:
            return None
        value = secret_of(variable)
        if value is None:
            raise ConfigError(
                f"source {self.settings.name!r}: the environment variable {variable} is not set",
                hint="token_env names the variable that holds the secret",
            )
        return value

    def require_lines(self) -> None:
        """Refuses formats of which a record is no line, where bytes come one by one.

        Raises:
            ConfigError: see above.
        """
        if not is_of_lines(self.stream):
            raise ConfigError(
                f"stream {self.stream.name!r}: {self.stream.format} cannot come by {self.settings.kind}",
                hint="a record must be a line there; files, http and brokers carry whole documents",
            )

    def refuse_header(self) -> None:
        """Refuses a header, where each message is a record.

        Raises:
            ConfigError: see above.
        """
        if has_header(self.stream):
            raise ConfigError(
                f"stream {self.stream.name!r}: messages of {self.settings.kind} have no header",
                hint='header = false, and columns by their numbers: object = "1"',
            )
