"""An installation with one small stream, as an operator has it: a home, settings that change, records that arrive."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.log.record_settings import log_for
from st_common.operations.launcher import find
from st_common.operations.process import kill_session
from st_common.operations.status import read_status

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
PATIENCE_S = 300.0

_STREAM = """
[streams.taxis]
format = "csv"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
max_ahead_s = "off"
engine = "local"
moving = {moving}
running = {running}
"""


class Installation:
    """One home with the stream `taxis` on the local engine; its settings lie in `home/conf`.

    Args:
        root: takes the home.
        moving: whether queries may be about several objects.
    """

    def __init__(self, root: Path, *, moving: bool = False) -> None:
        self.moving = str(moving).lower()
        self.home = Home(root / "home")
        self.folder = self.home.stream("taxis")
        self.conf = self.home.root / "conf"
        self.set(running=False)

    def set(self, *, running: bool) -> None:
        """Says whether the stream should run."""
        self.conf.mkdir(parents=True, exist_ok=True)
        text = _STREAM.format(moving=self.moving, running=str(running).lower())
        (self.conf / "streams.toml").write_text(text, encoding="utf-8")
        shutil.copy(ROOT / "conf" / "layers.toml", self.conf)

    def arrives(self, *rows: str, stream: str = "taxis") -> None:
        """Appends rows of CSV (id, t, x, y) to a stream's log, as one segment."""
        payload = "\n".join(["id,t,x,y", *rows, ""]).encode()
        log = log_for(self.home, load_streams(self.conf)[stream])
        log.append(payload, arrival_us=time.time_ns() // 1000)

    def register(self, statement: str) -> None:
        """Registers queries by the command line."""
        self._fairway("query", "register", "--text", statement)

    def changes(self) -> list[dict[str, Any]]:
        """The changes of all queries in their order, as the command line tells them."""
        lines = self._fairway("changes", "--format", "jsonl").splitlines()
        return [json.loads(line) for line in lines]

    def _fairway(self, *words: str) -> str:
        """What a command of `fairway` prints."""
        fairway = [str(PYTHON.with_name("fairway")), "--home", str(self.home.root)]
        done = subprocess.run(
            [*fairway, *words], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout

    def pid(self) -> int | None:
        """The process of the living engine."""
        running = find(self.folder, now_us=time.time_ns() // 1000)
        return running.owner.pid if running else None

    def committed(self) -> int:
        """The place in the log that the engine has committed; -1 before its first commit."""
        status = read_status(self.folder)
        return status.position if status else -1

    def job(self, *command: str) -> dict[str, Any]:
        """The summary of `python -m COMMAND` on this home."""
        done = subprocess.run(
            [PYTHON, "-m", *command, "--home", self.home.root],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))

    def end(self) -> None:
        """Kills an engine that lives."""
        running = find(self.folder, now_us=time.time_ns() // 1000)
        if running is not None:
            kill_session(running.owner)


def wait(condition: Callable[[], bool], what: str) -> None:
    """Waits until a condition holds, for as long as a slow machine may need."""
    began = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began
        if waited_s > PATIENCE_S:
            raise AssertionError(f"waited in vain until {what}")
        # What takes long is looked for less often: a look takes of the processor what is waited for.
        time.sleep(min(max(0.05, waited_s / 10), 1.0))
