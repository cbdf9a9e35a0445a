"""What sinks have in common that send to another machine: a secret, certificates, and how long an answer may take."""

import re
from abc import abstractmethod
from dataclasses import dataclass, field

from st_common.config.environment import secret_of
from st_common.config.keys import key
from st_common.config.values import flag, number, text, variable
from st_common.delivery.sink import Sink
from st_common.errors import ConfigError
from st_common.loopback import LOOPBACK
from st_common.written import whole_number

_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):([0-9]+)")
_PORTS = 65_535


def is_server(name: str) -> bool:
    """Whether a text is a host, in brackets where it has colons, and the number of a port."""
    said = _SERVER.fullmatch(name)
    return said is not None and bool(whole_number(said[1], _PORTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSink(Sink):
    """A receiver behind a network.

    Attributes:
        token_env: the environment variable that holds the secret: a bearer token, or the password of the user.
        ca: a file of certificates to trust in place of the system's.
        timeout_s: how long an answer may take.
    """

    token_env: str | None = field(default=None, metadata=key(variable))
    ca: str | None = field(default=None, metadata=key(text))
    timeout_s: float = field(default=30.0, metadata=key(number(above=0.0)))

    @abstractmethod
    def is_private(self) -> bool:
        """Whether nobody else can read what is sent: TLS hides it, or it stays on this machine."""

    def check(self) -> None:
        """See `Sink.check`: a secret is never sent where others can read it."""
        if self.token_env is not None and not self.is_private():
            raise ConfigError(
                "a secret would be sent without TLS", hint="https://, or tls = true"
            )

    def secret(self, delivery: str) -> str | None:
        """The secret, from the environment variable that settings name; None when they name none.

        Raises:
            ConfigError: the variable is not set, or empty.
        """
        if self.token_env is None:
            return None
        value = secret_of(self.token_env)
        if value is None:
            raise ConfigError(
                f"delivery {delivery!r}: the environment variable {self.token_env} is not set",
                hint="token_env names the variable that holds the secret",
            )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSink(RemoteSink):
    """A broker that passes changes on.

    Attributes:
        tls: whether brokers speak TLS; certificates are always checked.
        user: who we are; the secret is the password.
    """

    tls: bool = field(default=True, metadata=key(flag))
    user: str | None = field(default=None, metadata=key(text))

    def check(self) -> None:
        """See `Sink.check`: a user has a password, and a password a user."""
        if (self.user is None) != (self.token_env is None):
            raise ConfigError(
                "user and token_env go together",
                hint="token_env names the variable of its password",
            )
        RemoteSink.check(self)


def is_local(host: str | None) -> bool:
    """Whether a host's name is that of this machine."""
    return host in LOOPBACK
