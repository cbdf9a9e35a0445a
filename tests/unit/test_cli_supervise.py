"""`fairway supervise`: the supervisor as a command, once and again and again."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(
        '[streams.cars]\nformat = "ndjson"\ncolumns = { object = "id", event_ts = "t", x = "x", y = "y" }\n'
    )
    return tmp_path


def test_it_looks_once_and_says_what_it_saw(home: Path):
    done = CliRunner().invoke(app, ["supervise", "--home", str(home)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["streams"] == {"cars": "stopped"}
    assert (home / "judged.json").exists()


def test_it_looks_again_and_again_until_it_is_ended(home: Path):
    beat = home / "beat"
    words = ["supervise", "--home", str(home), "--every", "0.1", "--beat", str(beat)]
    process = subprocess.Popen(
        [sys.executable, "-m", "st_common.cli", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        seen = [json.loads(process.stdout.readline())["streams"] for _ in range(2)]
        assert beat.exists(), "the first look went well before the second one"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.communicate()
    assert seen == [{"cars": "stopped"}] * 2


@pytest.mark.parametrize("words", [["--every", "0"], ["--every", "often"]])
def test_a_wrong_time_between_looks_is_refused(home: Path, words: list[str]):
    done = CliRunner().invoke(app, ["supervise", "--home", str(home), *words])
    assert done.exit_code == 2
    assert f"every is {words[1]!r} (a number, above 0, seconds)" in done.stderr
