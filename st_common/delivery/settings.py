"""Where changes are delivered to, as `conf/deliveries.toml` says."""

import difflib
import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from st_common.errors import ConfigError
from st_common.home import checked_name
from st_common.redaction import keep_url, shown_url
from st_common.settings import broken_of, secret_of
from st_common.toml_values import (
    Check,
    WrongError,
    checked,
    flag,
    known,
    number,
    one_of,
    text,
    whole,
    words,
)

Target = Literal["webhook", "kafka"]
Start = Literal["first", "now"]
_TARGETS = ("webhook", "kafka")
_STARTS = ("first", "now")
_SASL = ("scram-sha-512", "scram-sha-256", "plain")
_ONLY = {"webhook": ("url",), "kafka": ("bootstrap", "topic", "tls", "user", "sasl")}
_NEEDED = {"webhook": ("url",), "kafka": ("bootstrap", "topic")}
_MOST_ROWS = 50_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """One delivery: changes of the queries of one stream that match one of the globs `queries`, to one receiver.

    Webhook: `url`. Kafka: `bootstrap` (host:port, with commas), `topic`, `tls` (on unless it is said to be off), `user`
    and `sasl`, how the user is known. `token_env` names the environment variable that holds the secret: a bearer token,
    or the password of `user`. `ca` is a file of certificates to trust in the place of the system's. Without
    `dead_letter` a refused change stops the delivery. `retry_max_s` is the longest pause between two tries. `start`
    says where a new delivery begins: at the first change that the table has, or with those that come from now on.
    """

    name: str
    stream: str
    to: Target
    queries: tuple[str, ...] = ("*",)
    url: str = ""
    bootstrap: str = ""
    topic: str = ""
    tls: bool = True
    user: str | None = None
    sasl: str = "scram-sha-512"
    token_env: str | None = None
    ca: str | None = None
    batch_rows: int = 500
    timeout_s: float = 30.0
    retry_max_s: float = 60.0
    dead_letter: bool = True
    start: Start = "first"
    running: bool = False


def load_deliveries(
    conf: Path, streams: Collection[str]
) -> dict[str, DeliverySettings]:
    """The deliveries of `conf`/deliveries.toml, by name, in the order of the file; none when there is no such file.

    Raises:
        ConfigError: the file is no TOML, or a key is unknown, missing, of the wrong type, out of its range or does not
            go together with another; the message names file, delivery and key.
    """
    path = conf / "deliveries.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    known(document, ("deliveries",), f"{path}:")
    deliveries = document.get("deliveries", {})
    if not isinstance(deliveries, dict):
        raise ConfigError(
            f"{path}: deliveries must be tables", hint="[deliveries.NAME]"
        )
    names = [
        *streams,
        *broken_of(streams),
    ]  # a delivery reads the table of a stream and not its settings
    return {
        name: _delivery(name, table, path, names) for name, table in deliveries.items()
    }


def wanted(conf: Path, streams: Collection[str]) -> dict[str, bool]:
    """Whether each delivery of `conf`/deliveries.toml shall run, by name.

    Raises:
        ConfigError: the file is wrong.
    """
    return {
        name: delivery.running
        for name, delivery in load_deliveries(conf, streams).items()
    }


def delivery_of(conf: Path, streams: Collection[str], name: str) -> DeliverySettings:
    """One delivery of `conf`/deliveries.toml.

    Raises:
        ConfigError: there is none of that name, or the file is wrong.
    """
    found = load_deliveries(conf, streams)
    if name not in found:
        near = difflib.get_close_matches(name, found, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"{conf / 'deliveries.toml'} has {', '.join(found) or 'none'}"
        )
        raise ConfigError(f"there is no delivery {name!r}", hint=hint)
    return found[name]


def secret(delivery: DeliverySettings) -> str | None:
    """The secret of a delivery, from the environment variable that its settings name; None when they name none.

    Raises:
        ConfigError: the variable is not set, or empty.
    """
    if delivery.token_env is None:
        return None
    value = secret_of(delivery.token_env)
    if value is None:
        raise ConfigError(
            f"delivery {delivery.name!r}: the environment variable {delivery.token_env} is not set",
            hint="token_env names the variable that holds the secret",
        )
    return value


def _delivery(
    name: str, table: object, path: Path, names: Collection[str]
) -> DeliverySettings:
    place = f"{path}: delivery {name!r}:"
    try:
        checked_name(name, "delivery")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", hint=error.hint) from None
    if not isinstance(table, dict):
        raise ConfigError(f"{place} must be a table", hint=f"[deliveries.{name}]")
    keys = {**_KEYS, "stream": one_of(*names)}
    delivery = DeliverySettings(
        name=name, **checked(table, keys, DeliverySettings, place)
    )
    _check_together(delivery, table, place)
    return delivery


def _check_together(
    delivery: DeliverySettings, table: dict[str, Any], place: str
) -> None:
    """Refuses keys that are right alone and wrong beside each other."""
    for target, keys in _ONLY.items():
        for key in keys:
            if key in table and target != delivery.to:
                raise ConfigError(
                    f"{place} {key} has no meaning for a {delivery.to}",
                    hint="remove it",
                )
    for key in _NEEDED[delivery.to]:
        if key not in table:
            raise ConfigError(f"{place} {key} is missing")
    if delivery.to == "kafka" and (delivery.user is None) != (
        delivery.token_env is None
    ):
        raise ConfigError(
            f"{place} user and token_env go together",
            hint="token_env names the variable of its password",
        )
    if delivery.token_env is not None and not _is_private(delivery):
        raise ConfigError(
            f"{place} a secret would be sent without TLS",
            hint="https://, or tls = true",
        )


def _is_private(delivery: DeliverySettings) -> bool:
    """Whether what is sent to the receiver can be read by nobody else: by TLS, or because it stays on this machine."""
    if delivery.to == "webhook":
        parts = urlsplit(delivery.url)
        return parts.scheme == "https" or parts.hostname in _LOCAL
    hosts = [
        server.strip().rpartition(":")[0].strip("[]")
        for server in delivery.bootstrap.split(",")
    ]
    return delivery.tls or all(host in _LOCAL for host in hosts)


def _url(value: object) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        port = parts.port
    except ValueError:
        raise ConfigError(f"{shown_url(str(value))!r} is no address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        shown = shown_url(value) if isinstance(value, str) else value
        raise ConfigError(
            f"{shown!r} must be an address that begins with https:// (or http://)"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "holds a secret", hint="token_env names the environment variable of one"
        )  # and never shown
    keep_url(str(value))
    return str(value)


def _bootstrap(value: object) -> str:
    servers = value.split(",") if isinstance(value, str) else [""]
    if not all(
        re.fullmatch(r"\s*(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):\d{1,5}\s*", server)
        for server in servers
    ):
        raise WrongError("must be host:port, more than one with commas")
    return str(value)


def _topic(value: object) -> str:
    if (
        not isinstance(value, str)
        or not _TOPIC.fullmatch(value)
        or value in (".", "..")
    ):
        raise WrongError("is no name of a topic: letters, digits, . _ and -")
    return value


def _variable(value: object) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ConfigError(
            "is no name of an environment variable",
            hint="the variable holds the secret, not this file",
        )
    return value


_KEYS: dict[str, Check] = {
    "stream": text,
    "to": one_of(*_TARGETS),
    "queries": words,
    "url": _url,
    "bootstrap": _bootstrap,
    "topic": _topic,
    "tls": flag,
    "user": text,
    "sasl": one_of(*_SASL),
    "token_env": _variable,
    "ca": text,
    "batch_rows": whole(most=_MOST_ROWS),
    "timeout_s": number(least=0.0, above=True),
    "retry_max_s": number(least=0.0, above=True),
    "dead_letter": flag,
    "start": one_of(*_STARTS),
    "running": flag,
}
