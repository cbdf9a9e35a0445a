"""What is done once after the installation: settings to begin with, Spark's jars, completion."""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run as run_engine
from st_common.errors import ConfigError
from st_common.operations import jars
from st_common.query.created_streams import known_streams
from st_common.query.registry import register
from st_common.query.text import parse

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, **environment: str) -> object:
    return CliRunner().invoke(app, words, prog_name="fairway", env=environment)


@pytest.mark.spec("S9")
def test_init_writes_settings_that_load_and_leaves_alone_what_is_there(tmp_path):
    conf = tmp_path / "home" / "conf"
    assert run("init", "--home", str(tmp_path / "home")).exit_code == 0
    assert {path.name for path in conf.glob("*.toml")} == {
        path.name for path in (ROOT / "conf").glob("*.toml")
    }
    for path in conf.glob("*.toml"):
        schema = path.read_text().partition("\n")[0].removeprefix("#:schema ")
        assert json.loads((conf / schema).read_text())["title"] == path.name
    assert list(load_streams(conf)) == ["example"]  # the others are comments
    text = (conf / "streams.toml").read_text()
    assert '# [streams.taxis]\n# format = "csv"\n' in text
    (conf / "streams.toml").write_text("# mine")
    again = run("init", "--home", str(tmp_path / "home"))
    assert "wrote" not in again.stdout
    assert (conf / "streams.toml").read_text() == "# mine"


@pytest.mark.spec("S12")
def test_a_new_home_runs_by_the_commands_that_init_prints(tmp_path):
    said = run("init", "--home", str(tmp_path / "a home")).stdout
    commands = [line for line in said.splitlines() if line.startswith("  fairway ")]
    assert len(commands) == 4
    for command in commands:
        done = run(*shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
    entered = [line.split()[1] for line in done.stdout.splitlines() if "enter" in line]
    assert {"SUOKKI", "TYRSKY"} <= set(entered)


@pytest.mark.spec("S12")
def test_without_settings_a_stream_runs_on_local_and_stays_where_it_began(tmp_path):
    (tmp_path / "conf").mkdir()
    silent = TAXIS.replace('engine = "local"\n', "")
    (tmp_path / "conf" / "streams.toml").write_text(silent)
    home = Home(tmp_path)
    assert known_streams(home, tmp_path / "conf")["taxis"].engine == "local"
    on_spark = silent + "[streams.taxis.spark]\ncores = 1\n"
    (tmp_path / "conf" / "streams.toml").write_text(on_spark)
    assert known_streams(home, tmp_path / "conf")["taxis"].engine == "spark"
    (tmp_path / "conf" / "streams.toml").write_text(silent)
    home.stream("taxis").mkdir(parents=True)
    begun = {"engine": "spark", "shards": 2}
    (home.stream("taxis") / "topology.json").write_text(json.dumps(begun))
    assert known_streams(home, tmp_path / "conf")["taxis"].engine == "spark"
    (tmp_path / "conf" / "streams.toml").write_text(TAXIS)
    assert known_streams(home, tmp_path / "conf")["taxis"].engine == "local"
    (home.stream("taxis") / "topology.json").write_text("torn")
    (tmp_path / "conf" / "streams.toml").write_text(silent)
    assert known_streams(home, tmp_path / "conf")["taxis"].engine == "local"


TAXIS = """[streams.taxis]
format = "csv"
columns = { object = "id", x = "x", y = "y" }
engine = "local"
"""
CONTENTS = {"delta-spark.jar": b"one", "sedona-spark.jar": b"two"}


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two jars, deep in it, whose sums are the ones that came along."""
    source = tmp_path / "repository"
    for number, (name, content) in enumerate(CONTENTS.items()):
        (source / str(number)).mkdir(parents=True)
        (source / str(number) / name).write_bytes(content)
    digits = {
        name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()
    }
    monkeypatch.setattr(jars, "sums", lambda: digits)
    return source


@pytest.mark.spec("S9")
def test_jars_are_copied_from_a_folder_and_once(listed, tmp_path):
    words = ("init", "--spark", "--from", str(listed))
    target = tmp_path / "jars"
    first = run(*words, FAIRWAY_JARS=str(target))
    assert first.exit_code == 0, first.output
    assert {path.name: path.read_bytes() for path in target.iterdir()} == CONTENTS
    assert "all there" in run(*words, FAIRWAY_JARS=str(target)).stdout
    wrong = run("init", "--from", str(listed))
    assert (wrong.exit_code, "add --spark" in wrong.stderr) == (2, True)


@pytest.mark.spec("S9")
def test_jars_come_all_or_none(listed, tmp_path):
    target = tmp_path / "jars"
    (listed / "1" / "sedona-spark.jar").write_bytes(b"another")
    with pytest.raises(
        ConfigError, match=r"sedona-spark.jar has the SHA-256 \w+ instead of"
    ):
        jars.bring(target, listed)
    assert list(target.iterdir()) == []
    (listed / "1" / "sedona-spark.jar").unlink()
    with pytest.raises(ConfigError, match=r"there is no sedona-spark.jar in"):
        jars.bring(target, listed)


def test_without_maven_jars_are_asked_for(listed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"Maven is not on PATH .*--from FOLDER"):
        jars.bring(tmp_path / "jars")


@pytest.mark.spec("S9")
def test_jars_that_came_along_are_those_of_the_checkout():
    lines = (ROOT / "requirements" / "jars.sha256").read_text().splitlines()
    assert [f"{digits}  {name}" for name, digits in jars.sums().items()] == lines


@pytest.mark.spec("S9")
def test_completion_is_installed_for_the_shell_that_asks(tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"{ROOT / '.venv' / 'bin' / 'fairway'} --install-completion; :"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    assert "bash completion installed" in done.stdout
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "_FAIRWAY_COMPLETE" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


SLOW = {"numpy", "pyarrow", "pandas", "duckdb", "sqlglot", "deltalake", "scipy"}


@pytest.mark.spec("S9")
@pytest.mark.parametrize(
    ("words", "slow"),
    [
        (["status"], SLOW),
        (["query", "list"], SLOW),
        (["answer", "centre"], {"pandas.core", "sqlglot", "scipy"}),
        (["changes"], {"pandas.core", "sqlglot", "scipy"}),
    ],
)
def test_commands_that_only_look_import_nothing_that_is_slow(tmp_path, words, slow):
    home = Home(tmp_path / "home")
    (home.root / "conf").mkdir(parents=True)
    (home.root / "conf" / "streams.toml").write_text(TAXIS)
    stream = load_streams(home.root / "conf")["taxis"]
    text = "REGISTER QUERY centre AS SELECT * FROM taxis INSIDE (0, 0, 5, 5)"
    register(home, {"taxis": stream}, parse(text), owner="me")
    run_engine(home, stream, until_idle=True)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "st_common.cli", *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FAIRWAY_HOME": str(home.root)},
    )
    assert done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "st_common.cli" in imported
    assert not imported & slow


@pytest.mark.spec("S9")
def test_bash_completes_commands_of_a_group(tmp_path):
    script = (
        f"PATH={ROOT / '.venv' / 'bin'}:$PATH; source <(fairway --show-completion); "
        "COMP_WORDS=(fairway query re); COMP_CWORD=2; _fairway_completion fairway; echo ${COMPREPLY[@]}"
    )
    said = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    assert said.stdout.split() == ["register"]
