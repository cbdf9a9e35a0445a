"""Where the Spark of a stream runs, and how much of a machine it takes: the keys of `[streams.NAME.spark]`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from st_common.errors import ConfigError
from st_common.loopback import LOOPBACK
from st_common.toml_values import Check, WrongError, checked, takes, whole

LOCAL = "local"
_SPARK = "spark://"
_MOST_CORES = 1024
_MOST_SPREAD_MB = 1 << 20
_LEAST_MB = 512  # of which Spark keeps 300 for itself
_MB = {"m": 1, "g": 1024}
_WITHOUT_MODE = (
    'take the line out; Structured Streaming reads a home by `spark.readStream.format("fairway_log")`'
    " (docs/continuous.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where a stream's driver and tasks run. None of it decides an answer, so it may change at any start.

    Attributes:
        master: `local`, the process of the stream itself, or the address of a standalone cluster, `spark://HOST:PORT`;
            of one with standby masters `spark://HOST:PORT,HOST:PORT`.
        rest: the address at which that cluster starts drivers, `http://HOST:6066`; None: the driver is a process of the
            machine that supervises.
        cores: how many tasks run at once, and how many partitions a shuffle has.
        memory: of the driver's JVM, as Java writes it; with a local master tasks run in it.
        executor_memory: of the JVM of each executor of a cluster.
        spread_layers_mb: layers whose index takes more than so many MB lie spread over the tasks that stay, each with
            some of their regions; 0: all layers.
    """

    master: str = LOCAL
    rest: str | None = None
    cores: int = 2
    memory: str = "4g"
    executor_memory: str = "2g"
    spread_layers_mb: int = 32

    @property
    def is_local(self) -> bool:
        """Whether tasks run in the driver's process."""
        return self.master == LOCAL

    @property
    def masters(self) -> tuple[str, ...]:
        """Where the masters of the cluster listen, each as `HOST:PORT`; none where tasks run in the driver."""
        if self.is_local:
            return ()
        return tuple(self.master.removeprefix(_SPARK).split(","))

    @property
    def is_on_loopback(self) -> bool:
        """Whether the masters of a cluster are this machine, and reached by no other."""
        hosts = {urlsplit(f"//{master}").hostname for master in self.masters}
        return bool(hosts) and hosts <= set(LOOPBACK)


def spark_settings(table: Mapping[str, Any], place: str) -> SparkSettings:
    """The settings in a table.

    Args:
        table: what the file says.
        place: where it stands, for errors.

    Raises:
        ConfigError: a key is unknown, wrong, or does not go together with another; the message names it.
    """
    place = f"{place} spark:"
    if "mode" in table:
        raise ConfigError(
            f"{place} mode = {table['mode']!r}: there are no modes any more, a stream runs in tasks that stay",
            hint=_WITHOUT_MODE,
        )
    settings = SparkSettings(**checked(table, SPARK_KEYS, SparkSettings, place))
    if settings.is_local:
        for key in ("rest", "executor_memory"):
            if key in table:
                raise ConfigError(
                    f"{place} {key} has no meaning with master = {LOCAL!r}",
                    hint='master = "spark://HOST:7077" names a cluster',
                )
    return settings


def _is_address(value: object, scheme: str) -> bool:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        port = parts.port
    except ValueError:
        return False
    bare = f"{scheme}://{parts.netloc}"
    return value == bare and bool(parts.hostname and port) and "@" not in bare


@takes("`local`, `spark://HOST:PORT` or `spark://HOST:PORT,HOST:PORT`")
def _master(value: object) -> str:
    if value != LOCAL and not _are_masters(value):
        raise WrongError('must be "local" or "spark://HOST:PORT"')
    return str(value)


def _are_masters(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(_SPARK):
        return False
    masters = value.removeprefix(_SPARK).split(",")
    return all(_is_address(f"{_SPARK}{master}", "spark") for master in masters)


@takes("`http://HOST:PORT`")
def _rest(value: object) -> str:
    if not _is_address(value, "http"):
        raise WrongError('must be "http://HOST:PORT"')
    return str(value)


@takes(f"a number with `m` or `g`, at least `{_LEAST_MB}m`")
def _memory(value: object) -> str:
    match = (
        re.fullmatch(r"([1-9]\d{0,6})([mg])", value) if isinstance(value, str) else None
    )
    if match is None:
        raise WrongError('must be a number with m or g, such as "4g"')
    if int(match[1]) * _MB[match[2]] < _LEAST_MB:
        raise WrongError(f"must be at least {_LEAST_MB}m")
    return match[0]


SPARK_KEYS: dict[str, Check] = {
    "master": _master,
    "rest": _rest,
    "cores": whole(most=_MOST_CORES),
    "memory": _memory,
    "executor_memory": _memory,
    "spread_layers_mb": whole(least=0, most=_MOST_SPREAD_MB),
}
"""What each key of `spark` may be; all have defaults."""
