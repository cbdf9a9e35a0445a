"""Events on their way: a thread sends them, so a slow or dead endpoint holds up no job, and fails none.

They go by the webhook of deliveries, which checks addresses, hides secrets and follows no redirect; the transport of
`openlineage-python` is steered by environment variables, and sleeps between its tries.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.delivery.outcome import Failed, Refused
from st_common.delivery.webhook import Webhook
from st_common.errors import FairwayError
from st_common.lineage.settings import LineageSettings
from st_common.operations.records import append_record

_NAME = "lineage"
_FILE_S = 5.0  # a disk that takes longer is on its way out

Send = Callable[[Mapping[str, Any]], str]
"""Hands over one event; gives back why it was not taken, "" when it was."""


class Sender:
    """Sends events in their order, by a thread of its own; what could not be sent is named once, on stderr.

    Args:
        home: the home folder, for files.
        settings: where events go.

    Raises:
        ConfigError: the secret's environment variable is not set.
    """

    def __init__(self, home: Home, settings: LineageSettings) -> None:
        sink = settings.sink
        self._receiver = (
            sink.receiver(_NAME, home, content="application/json") if sink else None
        )
        self._send = (
            _to_endpoint(self._receiver) if self._receiver else _into_file(home)
        )
        self._patience_s = _FILE_S if sink is None else sink.timeout_s
        self._queue: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
        self._is_warned = Event()
        self._thread = Thread(target=self._run, name=_NAME, daemon=True)
        self._thread.start()

    def send(self, event: Mapping[str, Any]) -> None:
        """Takes an event to be sent, and returns at once."""
        self._queue.put(event)

    def close(self) -> None:
        """Waits until all is sent, at most as long as an answer may take; what is left then is lost, and named."""
        self._queue.put(None)
        self._thread.join(self._patience_s)
        if self._thread.is_alive():
            self.warn(f"no answer in {self._patience_s:g} s")

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                reason = self._send(event)
            except (FairwayError, OSError) as error:
                reason = str(error)
            if reason:
                self.warn(reason)
        if self._receiver is not None:
            self._receiver.close()

    def warn(self, reason: str) -> None:
        """Says on stderr, once, why events are not told."""
        if not self._is_warned.is_set():
            self._is_warned.set()
            sys.stderr.write(f"WARNING: lineage is not told: {redacted(reason)}\n")
            sys.stderr.flush()


def lineage_folder(home: Home) -> Path:
    """Where the files with events lie: `2024-05-01.jsonl`, a line an event."""
    return home.root / "lineage"


def delete_old_files(home: Home, *, before: date) -> int:
    """Deletes the files with events of days (UTC) before one; gives how many there were."""
    old = [
        file
        for file in lineage_folder(home).glob("[0-9]*.jsonl")
        if file.stem < before.isoformat()
    ]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def _into_file(home: Home) -> Send:
    def send(event: Mapping[str, Any]) -> str:
        day = datetime.fromtimestamp(time.time_ns() // 10**9, UTC).date()
        append_record(lineage_folder(home) / f"{day}.jsonl", event)
        return ""

    return send


def _to_endpoint(receiver: Webhook) -> Send:
    def send(event: Mapping[str, Any]) -> str:
        outcome = receiver.post([json.dumps(event, separators=(",", ":")).encode()])
        if isinstance(outcome, Refused):
            return f"{outcome.refusal.reason}: {outcome.refusal.details}"
        return outcome.reason if isinstance(outcome, Failed) else ""

    return send
