"""Where lineage is told, as the table `[lineage]` of `conf/operations.toml` says."""

from dataclasses import dataclass
from pathlib import Path

from st_common.delivery.settings import sink_of
from st_common.delivery.webhook import WebhookSink
from st_common.errors import ConfigError
from st_common.ops.settings import operations_table
from st_common.toml_values import Check, checked, known, one_of, text, whole

NAMESPACE = "fairway"
_TIMEOUT_S = 5.0
_FILE_DAYS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSettings:
    """Where lineage is told.

    Attributes:
        to: `file`, one a day in the home; or `http`.
        namespace: of the jobs, in each event.
        keep_days: how long files stay.
        sink: the endpoint, with its secret and certificates; None for files.
    """

    to: str
    namespace: str = NAMESPACE
    keep_days: int = _FILE_DAYS
    sink: WebhookSink | None = None


def lineage_settings(conf: Path) -> LineageSettings | None:
    """Where lineage is told, by the table `[lineage]` of `conf`/operations.toml; None without such a table.

    Raises:
        ConfigError: a key is unknown, missing, wrong or does not go together with another; the message names it.
    """
    table = operations_table(conf, "lineage")
    if table is None:
        return None
    place = f"{conf / 'operations.toml'}: lineage:"
    known(table, (*_KEYS, *WebhookSink.keys), place)
    own = {key: value for key, value in table.items() if key in _KEYS}
    rest = {key: value for key, value in table.items() if key not in _KEYS}
    values = checked(own, _KEYS, LineageSettings, place)
    if values["to"] == "http":
        if "keep_days" in own:
            raise ConfigError(f"{place} keep_days is for files", hint="remove it")
        given = {"timeout_s": _TIMEOUT_S, **rest}
        return LineageSettings(**values, sink=sink_of(WebhookSink, given, place))
    if rest:
        raise ConfigError(
            f"{place} {next(iter(rest))} is for an endpoint", hint='to = "http"'
        )
    return LineageSettings(**values)


_KEYS: dict[str, Check] = {
    "to": one_of("file", "http"),
    "namespace": text,
    "keep_days": whole(most=36_500),
}
