"""Where records of a stream come from: the tables `[streams.NAME.sources.SOURCE]` of `conf/streams.toml`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from st_common.config.home import checked_name
from st_common.config.keys import Place, key, keys_of, of_table, without_effect
from st_common.config.values import (
    WrongError,
    flag,
    number,
    one_of,
    takes,
    text,
    variable,
    whole,
    words,
)
from st_common.errors import ConfigError
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
_COMMON = ("kind", "batch_ms", "overload", "retry_max_s")


def _is_place(value: object, *, with_host: bool) -> bool:
    if not isinstance(value, str):
        return False
    host, colon, port = value.rpartition(":")
    number = whole_number(port, _PORTS)
    is_place = bool(colon) and number is not None
    return is_place and (not with_host or bool(host and number))


_GONE = {
    **without_effect("1 MB is gathered at most", "batch_kb"),
    **without_effect("64 MB wait in memory at most", "buffer_mb"),
}


@takes("`:PORT` or `HOST:PORT`", type="string")
def _listen(value: object) -> str:
    if not _is_place(value, with_host=False):
        raise WrongError('must be ":PORT" or "HOST:PORT"')
    return str(value)


@takes("`HOST:PORT`; of Kafka several, with commas", type="string")
def _connect(value: object) -> str:
    places = value.split(",") if isinstance(value, str) else [value]
    if not all(_is_place(place, with_host=True) for place in places):
        raise WrongError('must be "HOST:PORT"')
    return str(value)


@takes("an address without a user, such as `https://HOST/PATH`", type="string")
def _url(value: object) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        is_url = parts.scheme in ("http", "https", "ws", "wss") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if "@" in str(value).partition("://")[2].partition("/")[0]:
        # What stands there may be a secret, and is not shown.
        hint = "token_env names the environment variable of a secret"
        raise ConfigError("must be an address without a user in it", hint=hint)
    if not is_url:
        raise WrongError("must be an address such as https://HOST/PATH, without user")
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One source of a stream. None of it decides an answer, so all of it may change at any start.

    Attributes:
        name: of the source, one of its stream.
        kind: what kind of source it is; each needs or takes some of the keys below.
        listen: the port to listen on; the host is 127.0.0.1 where none is named.
        connect: where to connect to.
        path: a named pipe, or a folder or pattern such as drop/*.csv.
        url: the address of the feed.
        topics: the topics.
        hello: a greeting that is sent once it is open.
        user: who connects; token_env then holds the password.
        token_env: the variable that holds the secret: a bearer token, or the password of the user.
        tls: whether the broker speaks TLS; a secret goes to another machine only with TLS.
        qos: 1, each message at least once; 0, what is lost is lost.
        start: where to begin when nothing was read yet.
        client: of MQTT the id of this client, of Kafka its group. Made of the names of stream and source where it is
            not given.
        every_s: how often to look; without it every 10 s for http, every second for files.
        timeout_s: how long an answer may take.
        batch_ms: how long records are gathered before they are stored.
        batch_kb: how much of them is gathered at most; nothing that people set.
        overload: where more comes than can be stored: wait, nothing is lost; or skip, what is more is counted.
        buffer_mb: how much waits in memory at most; nothing that people set.
        retry_max_s: the longest pause before it is connected again.
    """

    name: str
    kind: str = field(metadata=key(one_of(*KINDS)))
    listen: str | None = field(default=None, metadata=key(_listen))
    connect: str | None = field(default=None, metadata=key(_connect))
    path: str | None = field(default=None, metadata=key(text))
    url: str | None = field(default=None, metadata=key(_url))
    topics: tuple[str, ...] = field(default=(), metadata=key(words))
    hello: str | None = field(default=None, metadata=key(text))
    user: str | None = field(default=None, metadata=key(text))
    token_env: str | None = field(default=None, metadata=key(variable))
    tls: bool = field(default=False, metadata=key(flag))
    qos: int = field(default=1, metadata=key(whole(least=0, most=1)))
    start: str = field(default="first", metadata=key(one_of("first", "now")))
    client: str | None = field(default=None, metadata=key(text))
    every_s: float | None = field(default=None, metadata=key(number(least=0.1)))
    timeout_s: float = field(default=30.0, metadata=key(number(above=0.0)))
    batch_ms: int = field(default=200, metadata=key(whole(most=60_000)))
    batch_kb: int = 1024
    overload: str = field(default="wait", metadata=key(one_of("wait", "skip")))
    buffer_mb: int = 64
    retry_max_s: float = field(default=60.0, metadata=key(number(least=0.1)))


def takes_key(kind: str, name: str) -> bool:
    """Whether a kind of source has a use for a key."""
    must, may = KINDS[kind]
    return name in (*_COMMON, *must, *may)


def source_settings(
    tables: Mapping[str, Any], place: Place, *, above: Collection[str] = ()
) -> dict[str, SourceSettings]:
    """The sources of a stream, by name.

    Args:
        tables: what the file says: a table for each.
        place: where they stand.
        above: the keys of a stream, which may have slipped into a source: TOML gives a line to the table that is named
            last above it.

    Raises:
        ConfigError: a key is unknown, missing, wrong, or has no meaning for the kind of a source; the message names it.
    """
    return {
        checked_name(name, "source"): _source(
            name, table, place.below("sources", name, called=f"source {name!r}:"), above
        )
        for name, table in tables.items()
    }


def _source(
    name: str, table: object, place: Place, above: Collection[str]
) -> SourceSettings:
    if not isinstance(table, dict):
        raise place.wrong("must be a table", hint='kind = "tcp", ..')
    elsewhere = _GONE | {
        each: (
            f"{each!r} is a key of the stream",
            "put it above the table of its first source",
        )
        for each in above
    }
    kind = str(table.get("kind"))
    for each in table if kind in KINDS else ():
        if each in keys_of(SourceSettings) and not takes_key(kind, each):
            raise place.wrong(f"{each} has no meaning for {kind}")
    settings = of_table(
        SourceSettings, table, place, elsewhere=elsewhere, given={"name": name}
    )
    for each in KINDS[kind][0]:
        if each not in table:
            raise place.wrong(f"{each} is missing", hint=f"{kind} needs it")
    _check_together(settings, place)
    return settings


def _check_together(source: SourceSettings, place: Place) -> None:
    """Refuses keys that are right alone and wrong beside each other."""
    if source.kind == "tcp" and (source.listen is None) == (source.connect is None):
        raise place.wrong(
            "tcp needs either listen or connect",
            hint='listen = ":5000", or connect = "HOST:PORT"',
        )
    if source.token_env is not None and not _is_private(source):
        raise place.wrong(
            "a secret would be sent without TLS",
            at="token_env",
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
