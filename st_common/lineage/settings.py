"""Where lineage is told, as the table `[lineage]` of `conf/operations.toml` says."""

from dataclasses import dataclass
from pathlib import Path

from st_common.delivery.settings import beside_sink, sink_of
from st_common.delivery.webhook import WebhookSink
from st_common.errors import ConfigError
from st_common.extras import has_module, how_to_install
from st_common.toml_values import Check, checked, one_of, text, whole

NAMESPACE = "fairway"
TIMEOUT_S = 5.0
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
        ConfigError: a key is unknown, missing, wrong or does not go together with another; the message names it. Or the
            package that speaks OpenLineage is not installed.
    """
    table = beside_sink(conf, "lineage", LINEAGE_KEYS, WebhookSink)
    if table is None:
        return None
    place, rest = table.place, table.of_sink
    values = checked(table.own, LINEAGE_KEYS, LineageSettings, place)
    _require_package(place)
    if values["to"] == "http":
        if "keep_days" in table.own:
            raise ConfigError(f"{place} keep_days is for files", hint="remove it")
        given = {"timeout_s": TIMEOUT_S, **rest}
        return LineageSettings(**values, sink=sink_of(WebhookSink, given, place))
    if rest:
        raise ConfigError(
            f"{place} {next(iter(rest))} is for an endpoint", hint='to = "http"'
        )
    return LineageSettings(**values)


def _require_package(place: str) -> None:
    if not has_module("openlineage.client"):
        raise ConfigError(
            f"{place} the package openlineage-python is not installed",
            hint=f"{how_to_install('lineage')}; without [lineage] nothing needs it",
        )


LINEAGE_KEYS: dict[str, Check] = {
    "to": one_of("file", "http"),
    "namespace": text,
    "keep_days": whole(most=36_500),
}
"""What each key of `[lineage]` may be, besides those of a webhook."""
