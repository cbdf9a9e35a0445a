"""Alerts: one line in `HOME/alerts.jsonl` for each change of a stream's condition, whoever reads it."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.operations.records import append_record, held_lock
from st_common.storage import LocalStorage, refused_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A stream's condition changed.

    Attributes:
        ts: when it was said, us since 1970.
        stream: the stream, or `delivery NAME`.
        level: `error`, `warning` or `info`.
        text: one line for people.
    """

    ts: int
    stream: str
    level: str
    text: str


def alerts_file(home: Home) -> Path:
    """Where the alerts of an installation lie."""
    return home.root / "alerts.jsonl"


def append_alert(home: Home, alert: Alert) -> None:
    """Adds an alert at the end of `alerts.jsonl`, which nobody else may read; secrets in its text are replaced.

    On a disk that takes nothing it goes to stderr, where logs are kept; it raises nothing, for who has to tell of a
    fault must not die of it.
    """
    with _one_at_a_time(home):
        _append(home, alert)


def _append(home: Home, alert: Alert) -> None:
    text = redacted(alert.text)
    record = {
        "ts": alert.ts,
        "stream": alert.stream,
        "level": alert.level,
        "text": text,
    }
    try:
        append_record(alerts_file(home), record)
    except OSError as error:
        sys.stderr.write(
            f"alert: {alert.stream}: {text} (not kept: {refused_at(error, alerts_file(home))})\n"
        )


def tell(home: Home, stream: str, text: str, *, level: str = "warning") -> None:
    """Adds an alert with the time of now; see `append_alert`.

    Args:
        home: the home folder.
        stream: the stream that it is about.
        text: one line for people.
        level: `error`, `warning` or `info`.
    """
    append_alert(home, _alert_of_now(stream, text, level))


def _alert_of_now(stream: str, text: str, level: str) -> Alert:
    return Alert(ts=time.time_ns() // 1000, stream=stream, level=level, text=text)


def tell_once(home: Home, stream: str, text: str, *, level: str = "warning") -> bool:
    """As `tell`, unless there is an alert of this stream with this text already, of whatever process.

    Args:
        home: as for `tell`.
        stream: as for `tell`.
        text: as for `tell`.
        level: as for `tell`.

    Returns:
        Whether it was told now.
    """
    with _one_at_a_time(home):
        if any(
            (alert.stream, alert.text) == (stream, redacted(text))
            for alert in read_alerts(home)
        ):
            return False
        _append(home, _alert_of_now(stream, text, level))
    return True


def delete_old_alerts(home: Home, *, before_us: int) -> int:
    """Takes alerts that were told before a time (us since 1970) out of `alerts.jsonl`; gives how many went.

    Nobody adds a line meanwhile. Lines that cannot be read stay, as do those of now.
    """
    path = alerts_file(home)
    with _one_at_a_time(home):
        if not path.exists():
            return 0
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not _is_before(line, before_us)]
        if len(kept) < len(lines):
            LocalStorage(path.parent).put(path.name, b"".join(kept), private=True)
    return len(lines) - len(kept)


def _is_before(line: bytes, before_us: int) -> bool:
    try:
        return int(json.loads(line)["ts"]) < before_us
    except (ValueError, KeyError, TypeError):
        return False


@contextmanager
def _one_at_a_time(home: Home) -> Iterator[None]:
    """Holds a lock between processes; on a disk that takes nothing it goes without: rather told twice than not."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(held_lock(home.root / ".alerts.lock"))
        yield


def read_alerts(home: Home) -> list[Alert]:
    """All alerts, oldest first; a last line that was cut by a crash is left out."""
    try:
        lines = alerts_file(home).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    alerts = []
    for line in lines:
        try:
            alerts.append(Alert(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return alerts
