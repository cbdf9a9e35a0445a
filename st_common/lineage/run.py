"""One run that is told: its events, and a note that lies in the home as long as its process lives.

    HOME/lineage/running/0198...json    written at the start, removed at the end, locked in between

A lock ends with its process, whatever ended that. So a note that nobody holds is of a run that was killed, or of one on
a machine that lost its power: whoever begins next tells that it was aborted.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Self

from st_common.config.environment import lineage_parent
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.errors import FairwayError
from st_common.lineage.events import ToldRun, event_of, new_run_id
from st_common.lineage.sending import Sender, lineage_folder
from st_common.lineage.settings import LineageSettings
from st_common.observed import Observed
from st_common.operations.records import held_lock, read_record, write_record

_LOST = "its process ended without a word: it was killed, or the machine stopped"


class Telling:
    """Tells of one run, for the body of a `with`. What goes wrong in that is named on stderr and raised nowhere.

    Args:
        home: the home folder.
        settings: where events go.
        job: the job's name.
        is_stream: it follows a stream, and is no batch.

    Raises:
        ConfigError: the secret's environment variable is not set.
    """

    def __init__(
        self, home: Home, settings: LineageSettings, job: str, *, is_stream: bool
    ) -> None:
        self._home, self._sender = home, Sender(home, settings)
        self._stack = ExitStack()
        self._run = ToldRun(
            namespace=settings.namespace,
            job=job,
            is_stream=is_stream,
            run_id=new_run_id(),
            parent=lineage_parent(),
        )

    def __enter__(self) -> Self:
        """Ends what was killed before, and notes that this run is under way."""
        with self._kept_going(), held_lock(_running(self._home) / ".lock"):
            self._end_lost()
            note = _running(self._home) / f"{self._run.run_id}.json"
            write_record(note, asdict(self._run), private=True)
            self._stack.callback(note.unlink, missing_ok=True)
            self._stack.enter_context(held_lock(note))
        return self

    def __exit__(self, *_: object) -> None:
        """Takes the note away, and waits for the events to be sent, for a while."""
        self._sender.close()
        with self._kept_going():
            self._stack.close()

    def tell(self, state: str, seen: Observed, error: str = "") -> None:
        """Sends an event of this run.

        Args:
            state: `START`, `COMPLETE`, `FAIL` or `ABORT`.
            seen: what it reads and writes.
            error: why it failed; secrets in it are replaced.
        """
        self._tell(self._run, state, seen, error)

    def _tell(self, run: ToldRun, state: str, seen: Observed, error: str) -> None:
        with self._kept_going():
            now_us = time.time_ns() // 1000
            said = redacted(error)
            event = event_of(self._home, run, state, seen, at_us=now_us, error=said)
            self._sender.send(event)

    def _end_lost(self) -> None:
        for note in sorted(_running(self._home).glob("*.json")):
            with held_lock(note, wait=False) as is_free:
                record = read_record(note) if is_free else None
                if record is not None:
                    self._tell(ToldRun(**record), "ABORT", Observed(), _LOST)
                if is_free:
                    note.unlink()

    @contextmanager
    def _kept_going(self) -> Iterator[None]:
        """What cannot be told must not end the job."""
        try:
            yield
        except (FairwayError, OSError) as error:
            self._sender.warn(str(error))


def _running(home: Home) -> Path:
    return lineage_folder(home) / "running"
