"""`fairway changes --follow`: what is printed while an engine commits, and how it ends."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.local import LocalEngine
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

ROOT = Path(__file__).resolve().parents[2]
CONF = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    home = Home(tmp_path)
    text = "REGISTER QUERY q AS SELECT * FROM s INSIDE (0, 0, 5, 5); REGISTER QUERY r AS SELECT * FROM s"
    register(home, load_streams(tmp_path / "conf"), parse(text), owner="ada")
    return home


def fixes(home: Home, *lines: str) -> None:
    bare_log(home.log("s")).append(
        "\n".join(["id,t,x,y", *lines, ""]).encode(), arrival_us=0
    )


def done(home: Home) -> LocalEngine:
    engine = LocalEngine(home, load_streams(home.root / "conf")["s"])
    while engine.batch():
        pass
    return engine


def told(*args: str) -> list[str]:
    found = CliRunner().invoke(
        app, ["changes", *args, "--follow", "--for", "0"], prog_name="fairway"
    )
    assert found.exit_code == 0, found.stderr
    return found.stdout.splitlines()


@pytest.mark.spec("X7")
def test_following_begins_with_what_is_there(home: Home) -> None:
    fixes(home, "a,1,1,1", "b,1,9,9")
    done(home).abandon()  # only the journal has them
    rows = [json.loads(line) for line in told("--json")]
    assert [(row["query"], row["object"], row["sign"]) for row in rows] == [
        ("q", "a", 1),
        ("r", "a", 1),
        ("r", "b", 1),
    ]
    assert [json.loads(line)["object"] for line in told("q", "--json")] == ["a"]
    assert len(told("--stream", "s", "--json", "--limit", "2")) == 2
    assert told("--json", "--since", str(rows[-1]["position"])) == []
    table = told()
    assert table[0].split()[:3] == ["query", "object", "partner"]
    assert len({line.index("enter") for line in table[1:]}) == 1
    assert told("--format", "csv")[1].startswith("q,a,,1,enter,")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ("--stream", "t", "--follow"),
            "error: there is no stream 't' (the settings have s)",
        ),
        (
            ("--for", "1"),
            "error: --for and --until-idle say when --follow ends (add --follow)",
        ),
        (("qq", "--follow"), "error: unknown query 'qq'"),
    ],
)
def test_wrong_use_is_one_line(home: Home, args: tuple[str, ...], says: str) -> None:
    found = CliRunner().invoke(app, ["changes", *args], prog_name="fairway")
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith(says)


@contextmanager
def following(home: Home, *args: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "st_common.cli",
        "changes",
        "--follow",
        "--json",
        "--home",
        str(home.root),
        *args,
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_to(process: subprocess.Popen[str], number: int) -> list[dict[str, object]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(number)]


@pytest.mark.spec("X7")
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_changes_come_as_they_are_committed_until_ctrl_c(home: Home) -> None:
    fixes(home, "a,1,1,1")
    engine = done(home)
    with following(home, "--stream", "s") as process:
        rows = read_to(process, 2)
        for second in range(2, 30):
            fixes(home, f"a,{second},{9 * (second % 2)},1", f"o{second},{second},1,1")
            while engine.batch():
                pass
            if second % 4 == 0:
                engine.commit()
            if second % 7 == 0:
                engine.abandon()
                engine = done(home)
            time.sleep(0.01)
        expected = stream_changes(home, "s")
        rows += read_to(process, len(expected) - 2)
        engine.close()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert (rest, process.returncode) == ("", 0)
    places = [(row["position"], row["seq"]) for row in rows]
    assert places == list(
        zip(expected["position"].to_pylist(), expected["seq"].to_pylist(), strict=True)
    )


@pytest.mark.spec("X7")
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_following_ends_with_the_stream(home: Home) -> None:
    fixes(home, "a,1,1,1")
    with following(home, "--until-idle") as process:
        time.sleep(1.5)
        assert process.poll() is None  # the engine has not done what the log holds
        command = [
            sys.executable,
            "-m",
            "st_common.cli",
            "run",
            "s",
            "--engine",
            "local",
            "--until-idle",
        ]
        subprocess.run(
            [*command, "--home", str(home.root)],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert len(out.splitlines()) == 2
