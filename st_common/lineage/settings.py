"""Where lineage is told, as the table `[lineage]` of `conf/operations.toml` says."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from st_common.config.keys import key, keys_of, known, of_table
from st_common.config.operations import operations_table
from st_common.config.values import one_of, text, whole
from st_common.delivery.settings import sink_of
from st_common.delivery.webhook import WebhookSink
from st_common.extras import has_module, how_to_install

NAMESPACE = "fairway"
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSettings:
    """Where lineage is told.

    Attributes:
        to: file: HOME/lineage/DAY.jsonl, one line an event; http: a POST for each.
        namespace: of the jobs, in each event.
        keep_days: file: how many days the files stay.
        sink: the endpoint, with its secret and certificates; None for files.
    """

    to: str = field(metadata=key(one_of("file", "http")))
    namespace: str = field(default=NAMESPACE, metadata=key(text))
    keep_days: int = field(default=90, metadata=key(whole(most=36_500)))
    sink: WebhookSink | None = None


def lineage_settings(conf: Path) -> LineageSettings | None:
    """Where lineage is told, by the table `[lineage]` of `conf`/operations.toml; None without such a table.

    Raises:
        ConfigError: a key is unknown, missing, wrong or does not go together with another; the message names it. Or the
            package that speaks OpenLineage is not installed.
    """
    said = operations_table(conf, "lineage")
    if said is None:
        return None
    table, place = said
    keys = keys_of(LineageSettings)
    known(table, (*keys, *keys_of(WebhookSink)), place)
    own = {name: value for name, value in table.items() if name in keys}
    rest = {name: value for name, value in table.items() if name not in keys}
    settings = of_table(LineageSettings, own, place)
    if not has_module("openlineage.client"):
        raise place.wrong(
            "the package openlineage-python is not installed",
            hint=f"{how_to_install('lineage')}; without [lineage] nothing needs it",
        )
    if settings.to == "file":
        for name in rest:
            raise place.wrong(f"{name} is for an endpoint", hint='to = "http"')
        return settings
    if "keep_days" in own:
        raise place.wrong("keep_days is for files", hint="remove it")
    sink = sink_of(WebhookSink, {"timeout_s": TIMEOUT_S, **rest}, place)
    return replace(settings, sink=sink)
