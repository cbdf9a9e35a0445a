"""What a server lets a question take, as the table `[server]` of `conf/operations.toml` says."""

from dataclasses import dataclass
from pathlib import Path

from st_common.ops.settings import operations_table
from st_common.toml_values import Check, checked, number, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What `POST /sql` and `POST /ask` may take.

    Attributes:
        ask_s: how long an answer may take, seconds.
        ask_memory_mb: how much memory it may take.
        ask_at_once: how many are answered at once; others wait.
    """

    ask_s: float = 30.0
    ask_memory_mb: int = 2048
    ask_at_once: int = 2


def server_settings(conf: Path) -> ServerSettings:
    """What `conf`/operations.toml says; the defaults without the file or the table.

    Raises:
        ConfigError: a key is unknown, of the wrong type or out of its range; the message names it.
    """
    table = operations_table(conf, "server") or {}
    place = f"{conf / 'operations.toml'}: server:"
    return ServerSettings(**checked(table, SERVER_KEYS, ServerSettings, place))


SERVER_KEYS: dict[str, Check] = {
    "ask_s": number(least=1.0),
    "ask_memory_mb": whole(most=1_000_000),
    "ask_at_once": whole(most=100),
}
"""What each key of `[server]` may be; all have defaults."""
