"""What `fairway run` shows on a terminal while it goes, and that it shows nothing elsewhere."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.cli.progress import progress_of_run, words_of_run
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.log.record_settings import log_for
from st_common.operations.status import StreamStatus, read_status
from st_common.position import position_of

CONF = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    return Home(tmp_path)


def test_words_say_the_rate_of_this_run_and_what_is_left() -> None:
    first = StreamStatus(state="idle", beat_ts=0, position=0, end_position=0, fixes=400)
    now = StreamStatus(
        state="running",
        beat_ts=0,
        position=position_of(3, 0),
        end_position=position_of(5003, 0),
        fixes=65_400,
        changes=1234,
        now_ts=1_718_000_000_000_000,
    )
    assert words_of_run(now, first, 2.0) == (
        "65,400 fixes (32,500/s), 5,000 segments behind, 1,234 changes, at 2024-06-10 06:13:20"
    )
    assert words_of_run(first, None, 0.0) == (
        "400 fixes (0/s), at the log's end, 0 changes"
    )
    assert words_of_run(None, None, 1.0) == "starting"


def everything_in(terminal: int) -> str:
    parts = []
    with suppress(BlockingIOError):
        while part := os.read(terminal, 10_000):
            parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.spec("X7")
def test_a_terminal_shows_what_the_engine_did(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = load_streams(home.root / "conf")["s"]
    records = "".join(f"o{n},{n},1,1\n" for n in range(700))
    log_for(home, stream).append(f"id,t,x,y\n{records}".encode(), arrival_us=0)
    folder = home.stream("s")
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("TERM", "xterm")
        with progress_of_run("s", lambda: read_status(folder)):
            found = CliRunner().invoke(
                app, ["run", "s", "--until-idle"], prog_name="fairway"
            )
        monkeypatch.undo()
        os.set_blocking(master, False)
        shown = everything_in(master)
    os.close(master)
    assert found.exit_code == 0, found.output
    assert found.stderr == ""  # the runner's own is no terminal
    assert found.stdout.startswith("s: 700 fixes (")
    assert "s: 700 fixes (" in shown
    assert "at the log's end, 0 changes, at 1970-01-01 00:11:39" in shown


def test_nothing_is_shown_and_nobody_asked_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_of_run("s", lambda: pytest.fail("asked")):
        pass
    assert sys.stderr.getvalue() == ""
