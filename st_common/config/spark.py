"""Where the Spark of a stream runs, and how much of a machine it takes: the table `[streams.NAME.spark]`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from st_common.config.keys import Place, key, of_table
from st_common.config.values import WrongError, takes, whole
from st_common.loopback import LOOPBACK

LOCAL = "local"
_SPARK = "spark://"
_MOST_CORES = 1024
_MOST_SPREAD_MB = 1 << 20
_LEAST_MB = 512  # of which Spark keeps 300 for itself
_MB = {"m": 1, "g": 1024}
_GONE = {
    "mode": (
        "mode = {!r}: there are no modes any more, a stream runs in tasks that stay",
        'take the line out; Structured Streaming reads a home by `spark.readStream.format("fairway_log")`'
        " (docs/continuous.md)",
    )
}


def _is_address(value: object, scheme: str) -> bool:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        port = parts.port
    except ValueError:
        return False
    bare = f"{scheme}://{parts.netloc}"
    return value == bare and bool(parts.hostname and port) and "@" not in bare


def _are_masters(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(_SPARK):
        return False
    masters = value.removeprefix(_SPARK).split(",")
    return all(_is_address(f"{_SPARK}{master}", "spark") for master in masters)


@takes("`local`, `spark://HOST:PORT` or `spark://HOST:PORT,HOST:PORT`", type="string")
def _master(value: object) -> str:
    if value != LOCAL and not _are_masters(value):
        raise WrongError('must be "local" or "spark://HOST:PORT"')
    return str(value)


@takes("`http://HOST:PORT`", type="string")
def _rest(value: object) -> str:
    if not _is_address(value, "http"):
        raise WrongError('must be "http://HOST:PORT"')
    return str(value)


@takes(
    f"a number with `m` or `g`, at least `{_LEAST_MB}m`",
    type="string",
    pattern="^[1-9][0-9]{0,6}[mg]$",
)
def _memory(value: object) -> str:
    match = (
        re.fullmatch(r"([1-9]\d{0,6})([mg])", value) if isinstance(value, str) else None
    )
    if match is None:
        raise WrongError('must be a number with m or g, such as "4g"')
    if int(match[1]) * _MB[match[2]] < _LEAST_MB:
        raise WrongError(f"must be at least {_LEAST_MB}m")
    return match[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where a stream's driver and tasks run. None of it decides an answer, so it may change at any start.

    Attributes:
        master: where tasks run: local, in the process of the stream, or a standalone cluster, "spark://HOST:7077",
            whose workers see the same home folder and the same Python environment under the same names; one with
            standby masters: "spark://HOST:7077,HOST:7077".
        rest: the REST interface of that cluster's master, "http://HOST:6066": the cluster runs the driver too, in
            place of a process of the machine that supervises.
        cores: how many tasks run at once, and how many partitions a shuffle has.
        memory: of the driver's JVM, in which tasks run too when the master is local.
        executor_memory: of the JVM of each executor of a cluster.
        spread_layers_mb: layers whose index takes more lie spread over the tasks, each with some of their regions; 0:
            all layers.
    """

    master: str = field(default=LOCAL, metadata=key(_master))
    rest: str | None = field(default=None, metadata=key(_rest))
    cores: int = field(default=2, metadata=key(whole(most=_MOST_CORES)))
    memory: str = field(default="4g", metadata=key(_memory))
    executor_memory: str = field(default="2g", metadata=key(_memory))
    spread_layers_mb: int = field(
        default=32, metadata=key(whole(least=0, most=_MOST_SPREAD_MB))
    )

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


def spark_settings(table: Mapping[str, Any], place: Place) -> SparkSettings:
    """The settings in a table.

    Raises:
        ConfigError: a key is unknown, wrong, or does not go together with another; the message names it.
    """
    settings = of_table(SparkSettings, table, place, elsewhere=_GONE)
    if settings.is_local:
        for name in ("rest", "executor_memory"):
            if name in table:
                raise place.wrong(
                    f"{name} has no meaning with master = {LOCAL!r}",
                    hint='master = "spark://HOST:7077" names a cluster',
                )
    return settings
