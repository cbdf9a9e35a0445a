"""Alerts to a webhook: each line of `alerts.jsonl` once it is there, by whoever wrote it, in their order."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

from st_common.config.home import Home
from st_common.config.keys import key
from st_common.config.operations import operations_table
from st_common.config.values import one_of
from st_common.delivery.outcome import Failed, Refused
from st_common.delivery.settings import sink_of
from st_common.delivery.webhook import WebhookSink
from st_common.operations.alerts import Alert, read_alerts
from st_common.operations.records import read_record, write_record

_LEVELS = ("info", "warning", "error")
_MOST = 50  # in one call: it stands in a tick of the supervisor, which is short
_NAME = "alerts"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings(WebhookSink):
    """Who is alerted: a webhook that gets each alert as a JSON object.

    Attributes:
        level: from which level on: info, warning or error.
    """

    level: str = field(default="warning", metadata=key(one_of(*_LEVELS)))


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
    said = operations_table(conf, "alerts")
    return None if said is None else sink_of(AlertSettings, *said)


def begin_alerting(home: Home) -> None:
    """Makes `notify` begin with what is told from now on, unless it has begun already.

    So an installation that has run for long does not send what is long over.
    """
    if read_record(_place(home)) is None:
        alerts = read_alerts(home)
        _note(home, alerts, len(alerts))


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
    start = _noted(home, alerts)
    end = min(start + _MOST, len(alerts))
    least = _LEVELS.index(settings.level)
    chosen = [
        number
        for number in range(start, end)
        if _LEVELS.index(alerts[number].level) >= least
    ]
    done = _sent(home, settings, alerts, chosen)
    if done.waiting:
        return done
    if end > start:
        _note(home, alerts, end)
    return dataclasses.replace(done, waiting=len(alerts) - end)


def _place(home: Home) -> Path:
    """Where it stands how many lines were dealt with, and what the last of them said."""
    return home.root / "alerts.sent.json"


def _note(home: Home, alerts: list[Alert], lines: int) -> None:
    last = dataclasses.asdict(alerts[lines - 1]) if lines else None
    write_record(_place(home), {"lines": lines, "last": last})


def _noted(home: Home, alerts: list[Alert]) -> int:
    """How many alerts were dealt with; 0 when the last of them is gone, for what stands in the file now is new.

    It stands further up where old alerts were deleted since:

        noted    3 lines, the last one c        a b c d
        then     a and b are deleted            c d         1 was dealt with
    """
    record = read_record(_place(home)) or {}
    lines, last = int(record.get("lines", 0)), record.get("last")
    upto = alerts[:lines]
    if last is None:
        return lines if lines == len(upto) else 0
    while upto and last != dataclasses.asdict(upto[-1]):
        upto.pop()
    return len(upto)


def _sent(
    home: Home, settings: AlertSettings, alerts: list[Alert], chosen: list[int]
) -> Notified:
    """Sends the chosen alerts, by their numbers, until one fails; notes each that the receiver answered."""
    settings.secret(_NAME)  # one that is not set is told before the first alert
    done = Notified()
    if not chosen:
        return done
    receiver = settings.receiver(_NAME, home)
    try:
        for number in chosen:
            outcome = receiver.post([_line(alerts[number])])
            if isinstance(outcome, Failed):
                waiting = len(alerts) - number
                return dataclasses.replace(done, waiting=waiting, reason=outcome.reason)
            done = _after(done, outcome)
            _note(home, alerts, number + 1)
        return done
    finally:
        receiver.close()


def _after(done: Notified, outcome: object) -> Notified:
    if isinstance(outcome, Refused):
        why = f"{outcome.refusal.reason}: {outcome.refusal.details}"
        return dataclasses.replace(done, refused=done.refused + 1, reason=why)
    return dataclasses.replace(done, sent=done.sent + 1)


def _line(alert: Alert) -> bytes:
    return json.dumps(dataclasses.asdict(alert), separators=(",", ":")).encode()
