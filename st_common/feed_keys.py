"""Where records of a stream come from: the keys of `[streams.NAME.sources.SOURCE]` in `conf/streams.toml`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from st_common.errors import ConfigError
from st_common.home import checked_name
from st_common.toml_values import (
    Check,
    WrongError,
    checked,
    flag,
    known,
    number,
    one_of,
    takes,
    text,
    variable,
    whole,
    words,
)
from st_common.written import whole_number

KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tcp": ((), ("listen", "connect")),
    "udp": (("listen",), ()),
    "pipe": (("path",), ()),
    "stdin": ((), ()),
    "files": (("path",), ("every_s",)),
    "http": (("url",), ("every_s", "timeout_s", "token_env")),
    "websocket": (("url",), ("hello", "token_env")),
    "mqtt": (("connect", "topics"), ("user", "token_env", "tls", "qos", "client")),
    "kafka": (("connect", "topics"), ("user", "token_env", "tls", "start", "client")),
}
"""The kinds of sources, each with the keys that it must have, and those that it may have."""

_PORTS = 65_535
_LOOPBACK = "127.0.0.1"
_COMMON = ("kind", "batch_ms", "batch_kb", "overload", "buffer_mb", "retry_max_s")
_MOST_KB = 8 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One source of a stream. None of it decides an answer, so all of it may change at any start.

    Attributes:
        name: of the source, one of its stream.
        kind: one of `KINDS`.
        listen: host and port to listen on; the host is 127.0.0.1 where none is said.
        connect: host and port to connect to, "HOST:PORT"; of Kafka a list of them with commas between.
        path: of a named pipe, or of files, whose last part may have `*`.
        url: of a feed.
        topics: of MQTT or Kafka.
        hello: a text that is sent to a WebSocket once it is open.
        user: who connects; the secret is in the environment variable `token_env`.
        tls: whether the connection is hidden from others.
        qos: of MQTT: 1, each message at least once; 0, what is lost is lost.
        start: of Kafka, where nothing was read yet: "first" record there is, or "now".
        client: by which a broker knows this client: of MQTT its id, of Kafka the group; None: made of the names.
        every_s: how often a feed is asked, or a folder looked at.
        timeout_s: how long an answer may take.
        batch_ms: how long records are gathered at most before they are stored.
        batch_kb: how many kilobytes are gathered at most.
        overload: where more comes than can be stored: "wait", nothing is lost; or "skip", counted and shown.
        buffer_mb: how much waits in memory at most.
        retry_max_s: the longest pause before another try to connect.
    """

    name: str
    kind: str
    listen: str | None = None
    connect: str | None = None
    path: str | None = None
    url: str | None = None
    topics: tuple[str, ...] = ()
    hello: str | None = None
    user: str | None = None
    token_env: str | None = None
    tls: bool = False
    qos: int = 1
    start: str = "first"
    client: str | None = None
    every_s: float | None = None
    timeout_s: float = 30.0
    batch_ms: int = 200
    batch_kb: int = 1024
    overload: str = "wait"
    buffer_mb: int = 64
    retry_max_s: float = 60.0


def source_settings(
    tables: Mapping[str, Any], place: str, *, above: Collection[str] = ()
) -> dict[str, SourceSettings]:
    """The sources of a stream, by name.

    Args:
        tables: what the file says: a table for each.
        place: where they stand, for errors.
        above: the keys of a stream, which may have slipped into a source.

    Raises:
        ConfigError: a key is unknown, missing, wrong, or has no meaning for the kind of a source; the message names it.
    """
    return {
        checked_name(name, "source"): _source(
            name, table, f"{place} source {name!r}:", above
        )
        for name, table in tables.items()
    }


def _source(
    name: str, table: object, place: str, above: Collection[str]
) -> SourceSettings:
    if not isinstance(table, dict):
        raise ConfigError(f"{place} must be a table", hint='kind = "tcp", ..')
    if "kind" not in table:
        raise ConfigError(f"{place} kind is missing", hint=f"one of {', '.join(KINDS)}")
    known(table, tuple(SOURCE_KEYS), place, above=above)
    kind = str(table["kind"])
    must, may = KINDS.get(kind, ((), ()))
    for key in table if kind in KINDS else ():
        if key not in (*_COMMON, *must, *may):
            raise ConfigError(f"{place} {key} has no meaning for {kind}")
    values = checked(table, SOURCE_KEYS, SourceSettings, place)
    for key in must:
        if key not in values:
            raise ConfigError(f"{place} {key} is missing", hint=f"{kind} needs it")
    settings = SourceSettings(name=name, **values)
    _check_together(settings, place)
    return settings


def _check_together(source: SourceSettings, place: str) -> None:
    """Refuses keys that are right alone and wrong beside each other."""
    if source.kind == "tcp" and (source.listen is None) == (source.connect is None):
        raise ConfigError(
            f"{place} tcp needs either listen or connect",
            hint='listen = ":5000", or connect = "HOST:PORT"',
        )
    if source.token_env is not None and not _is_private(source):
        raise ConfigError(
            f"{place} a secret would be sent without TLS",
            hint="https:// or wss://, or tls = true",
        )


def _is_private(source: SourceSettings) -> bool:
    """Whether nobody else can read what is sent: TLS hides it, or it stays on this machine."""
    if source.url is not None:
        parts = urlsplit(source.url)
        hosts, is_hidden = [parts.hostname or ""], parts.scheme in ("https", "wss")
    else:
        places = (source.connect or "").split(",")
        hosts = [place.rpartition(":")[0] for place in places]
        is_hidden = source.tls
    return is_hidden or all(host in (_LOOPBACK, "localhost") for host in hosts)


def host_and_port(place: str) -> tuple[str, int]:
    """A place as `listen` and `connect` have it: ":5000" is ("127.0.0.1", 5000)."""
    host, _, port = place.rpartition(":")
    return host.strip("[]") or _LOOPBACK, int(port)


def _is_place(value: object, *, with_host: bool) -> bool:
    if not isinstance(value, str):
        return False
    host, colon, port = value.rpartition(":")
    number = whole_number(port, _PORTS)
    if not colon or number is None:
        return False
    return not with_host or bool(host and number)


@takes("`:PORT` or `HOST:PORT`")
def _listen(value: object) -> str:
    if not _is_place(value, with_host=False):
        raise WrongError('must be ":PORT" or "HOST:PORT"')
    return str(value)


@takes("`HOST:PORT`; of Kafka several, with commas")
def _connect(value: object) -> str:
    places = value.split(",") if isinstance(value, str) else [value]
    if not all(_is_place(place, with_host=True) for place in places):
        raise WrongError('must be "HOST:PORT"')
    return str(value)


@takes("an address without a user, such as `https://HOST/PATH`")
def _url(value: object) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        is_url = parts.scheme in ("http", "https", "ws", "wss") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url or "@" in parts.netloc:
        raise WrongError("must be an address such as https://HOST/PATH, without user")
    return str(value)


SOURCE_KEYS: dict[str, Check] = {
    "kind": one_of(*KINDS),
    "listen": _listen,
    "connect": _connect,
    "path": text,
    "url": _url,
    "topics": words,
    "hello": text,
    "user": text,
    "token_env": variable,
    "tls": flag,
    "qos": whole(least=0, most=1),
    "start": one_of("first", "now"),
    "client": text,
    "every_s": number(least=0.1),
    "timeout_s": number(least=0.0, above=True),
    "batch_ms": whole(most=60_000),
    "batch_kb": whole(most=_MOST_KB),
    "overload": one_of("wait", "skip"),
    "buffer_mb": whole(most=16_384),
    "retry_max_s": number(least=0.1),
}
"""What each key of a source may be."""
