"""Alerts to a webhook: each line of `alerts.jsonl` once it is there, by whoever wrote it, in their order."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from st_common.delivery.outcome import Failed, Refused
from st_common.delivery.webhook import Webhook, WebhookSink
from st_common.errors import ConfigError
from st_common.home import Home
from st_common.ops.alerts import Alert, read_alerts
from st_common.ops.records import read_record, write_record
from st_common.ops.settings import operations_table
from st_common.toml_values import Check, checked, one_of

_LEVELS = ("info", "warning", "error")
_LEVEL = "warning"
_MOST = 50  # in one call: it stands in a tick of the supervisor, which is short
_NAME = "alerts"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Who is alerted: the address, its secret and certificates, and from which level on."""

    sink: WebhookSink
    level: str = _LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """What became of the alerts that had not been sent before.

    Attributes:
        sent: how many the receiver took.
        refused: how many it will never take; they are not sent again.
        waiting: how many wait for the next call.
        reason: why they wait, or what the receiver said when it refused one; "" otherwise.
    """

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    reason: str = ""


def alert_settings(conf: Path) -> AlertSettings | None:
    """Who is alerted, by the table `[alerts]` of `conf`/operations.toml; None without such a table.

    Raises:
        ConfigError: a key is unknown, missing, wrong or does not go together with another; the message names it.
    """
    table = operations_table(conf, "alerts")
    if table is None:
        return None
    place = f"{conf / 'operations.toml'}: alerts:"
    values = checked(table, _KEYS, WebhookSink, place)
    level = values.pop("level", _LEVEL)
    sink = WebhookSink(**values)
    try:
        sink.check()
    except ConfigError as error:
        raise ConfigError(f"{place} {error.message}", hint=error.hint) from None
    return AlertSettings(sink=sink, level=level)


def begin_alerting(home: Home) -> None:
    """Makes `notify` begin with what is told from now on, unless it has begun already.

    So an installation that has run for long does not send what is long over.
    """
    if read_record(_place(home)) is None:
        write_record(_place(home), {"lines": len(read_alerts(home))})


def notify(home: Home, settings: AlertSettings) -> Notified:
    """Sends the alerts that are new since the last call, each by a POST of one JSON object, at least once.

    The object has `ts`, `stream`, `level` and `text`, as the line has. A receiver that fails is asked again by the next
    call; one that refuses an alert (400, 404, ..) does not get it again.

    Args:
        home: the home folder.
        settings: who is alerted.

    Raises:
        ConfigError: the secret's environment variable is not set.
    """
    alerts = read_alerts(home)
    record = read_record(_place(home)) or {}
    start = min(int(record.get("lines", 0)), len(alerts))
    receiver = settings.sink.receiver(_NAME, home)
    try:
        return _send(receiver, alerts, start, settings, _place(home))
    finally:
        receiver.close()


def _place(home: Home) -> Path:
    """Where it stands how many lines were sent."""
    return home.root / "alerts.sent.json"


def _send(
    receiver: Webhook,
    alerts: list[Alert],
    start: int,
    settings: AlertSettings,
    path: Path,
) -> Notified:
    done = Notified()
    least = _LEVELS.index(settings.level)
    for number, alert in enumerate(alerts[start : start + _MOST], start=start):
        if _LEVELS.index(alert.level) >= least:
            outcome = receiver.post([_line(alert)])
            if isinstance(outcome, Failed):
                waiting = len(alerts) - number
                return dataclasses.replace(done, waiting=waiting, reason=outcome.reason)
            done = _after(done, outcome)
        write_record(path, {"lines": number + 1})
    return dataclasses.replace(done, waiting=max(len(alerts) - start - _MOST, 0))


def _after(done: Notified, outcome: object) -> Notified:
    if isinstance(outcome, Refused):
        why = f"{outcome.refusal.reason}: {outcome.refusal.details}"
        return dataclasses.replace(done, refused=done.refused + 1, reason=why)
    return dataclasses.replace(done, sent=done.sent + 1)


def _line(alert: Alert) -> bytes:
    return json.dumps(dataclasses.asdict(alert), separators=(",", ":")).encode()


_KEYS: Mapping[str, Check] = {**WebhookSink.keys, "level": one_of(*_LEVELS)}
