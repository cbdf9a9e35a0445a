"""The command line as a whole: options anywhere, errors in one line, a quick start, help for everything."""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from st_common.cli import app
from st_common.errors import FairwayError, QualityError, TransientError

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "pyspark",
    "pyarrow",
    "duckdb",
    "deltalake",
    "pandas",
    "scipy",
    "shapely",
    "sqlglot",
    "lark",
    "great_expectations",
    "pydantic",
    "asyncio",
)


def command_paths(
    command: Any = None, path: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it."""
    command = command or typer.main.get_command(app)
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [
        found
        for name, sub in command.commands.items()
        for found in command_paths(sub, (*path, name))
    ]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command line in an empty folder, without settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRWAY_HOME", raising=False)
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    return lambda *args: CliRunner().invoke(app, list(args), prog_name="fairway")


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Makes `fairway query list` raise."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("st_common.query.lookup.queries", fail)


@pytest.mark.parametrize(
    ("path", "command"),
    command_paths(),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_command_and_every_parameter_has_help(
    run, path: tuple[str, ...], command: Any
):
    found = run(*path, "--help")
    assert found.exit_code == 0
    assert command.help
    assert command.help.rstrip().endswith(".")
    for param in command.params:
        assert param.help, f"{' '.join(path)}: {param.name}"
    for shared in ("--home", "--conf", "--debug"):
        assert shared in found.stdout


def test_the_documentation_explains_every_command():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for path, _ in command_paths():
        assert f"## `fairway {' '.join(path)}" in text, path


def test_the_documentation_knows_no_command_that_is_gone():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    known = {" ".join(path) for path, _ in command_paths()}
    for heading in re.findall(r"^## `fairway ([^`]*)`", text, re.MULTILINE):
        assert any(
            heading == name or heading.startswith(f"{name} ") for name in known
        ), heading


@pytest.mark.parametrize(
    "args",
    [
        ("--home", "H", "query", "list"),
        ("query", "--home", "H", "list"),
        ("query", "list", "--home=H"),
    ],
)
def test_shared_options_stand_anywhere(run, args: tuple[str, ...]):
    Path("H").mkdir()
    found = run(*args)
    assert (found.exit_code, found.stdout) == (
        0,
        "query  version  stream  owner  state  text\n",
    )


def test_the_last_of_a_repeated_option_counts(run):
    Path("right").mkdir()
    assert run("--home", "wrong", "query", "list", "--home", "right").exit_code == 0


def test_the_home_may_come_from_the_environment(
    run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    assert run("query", "list").exit_code == 0
    assert run("query", "list", "--home", "elsewhere").exit_code == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ("query", "list"),
            "error: no home folder is given (use --home DIR or set FAIRWAY_HOME)\n",
        ),
        (
            ("query", "list", "--home", "H"),
            "error: there is no home folder H (--home DIR names another)\n",
        ),
        (
            ("answr", "q"),
            "error: No such command 'answr'. Did you mean 'answer'? (see fairway --help)\n",
        ),
        (
            ("query", "lst"),
            "error: No such command 'lst'. Did you mean 'list'? (see fairway query --help)\n",
        ),
        (
            ("query", "list", "--xyz"),
            "error: No such option: --xyz (see fairway query list --help)\n",
        ),
        (("answer",), "error: Missing argument 'QUERY' (see fairway answer --help)\n"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run, args: tuple[str, ...], says: str):
    found = run(*args)
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", says)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (FairwayError("wrong", hint="do that"), 2, "error: wrong (do that)"),
        (QualityError("bad data"), 3, "error: bad data"),
        (TransientError("try again"), 75, "error: try again"),
        (
            ZeroDivisionError("two\nlines"),
            1,
            "error: ZeroDivisionError: two lines (run with --debug to see where)",
        ),
    ],
)
def test_an_error_is_one_line_with_its_exit_code_and_a_traceback_only_on_demand(
    run, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, line: str
):
    fails_with(monkeypatch, error)
    found = run("query", "list", "--home", ".")
    assert (found.exit_code, found.stdout, found.stderr) == (code, "", line + "\n")
    found = run("--debug", "query", "list", "--home", ".")
    assert found.exit_code == code
    assert found.stderr.startswith("Traceback")
    assert found.stderr.endswith(line + "\n")


def test_an_interrupt_is_silent(run, monkeypatch: pytest.MonkeyPatch):
    fails_with(monkeypatch, KeyboardInterrupt())
    found = run("query", "list", "--home", ".")
    assert (found.exit_code, found.stdout, found.stderr) == (130, "", "")


def fairway(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "st_common.cli", *args]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.e2e
def test_the_program_starts_helps_and_exits_with_the_code(tmp_path: Path):
    assert fairway("--help").stdout.startswith("Usage: fairway [OPTIONS] COMMAND")
    found = fairway("query", "list", "--home", str(tmp_path / "none"))
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("error: there is no home folder")


@pytest.mark.e2e
@pytest.mark.parametrize(
    "words",
    [
        [b"backup", b"create", b"\xff", b"--home", b"home"],
        [b"backup", b"restore", b"made", b"--home", b"\xff"],
        [b"init", b"--home", b"\xff"],
    ],
)
def test_a_home_whose_name_is_no_text_is_refused_in_escapes(tmp_path: Path, words):
    """File names are bytes; tables are found by texts, and a terminal of UTF-8 has no sign for these."""
    (tmp_path / "home").mkdir()
    (tmp_path / "made").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "st_common.cli", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "utf-8:strict", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no home can lie at '\\udcff")
    assert done.stderr.count("\n") == 1
    assert {one.name for one in tmp_path.iterdir()} == {"home", "made"}


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("streams list --home . <&-", 2, "streams.toml does not exist"),
        ("check - <&-", 75, "error: -: it ended, and nothing had come\n"),
        ("--version >&-", 0, ""),
        ("query list --home none >&-", 2, "there is no home folder"),
        ("--nonsense 2>&-", 2, ""),
    ],
    ids=["unread", "read", "written", "wrong", "errors"],
)
def test_a_standard_stream_that_is_closed_is_an_empty_one(
    tmp_path: Path, line: str, code: int, told: str
):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m st_common.cli {line}"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "--debug" not in done.stderr


def test_a_reader_that_closes_early_is_no_error(tmp_path: Path):
    command = f"{sys.executable} -m st_common.cli sql 'FROM range(100000)' --home {tmp_path} --format csv | head -1"
    command += "; exit ${PIPESTATUS[0]}"
    found = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "range\n", "")


def loaded_by(*args: str) -> list[str]:
    """What is slow to import, and imported by a command."""
    script = (
        "import sys, json; from st_common.cli import app\n"
        f"try: app({list(args)!r}, prog_name='fairway')\n"
        "except SystemExit: pass\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded: list[str] = json.loads(found.stdout.splitlines()[-1])
    return loaded


@pytest.mark.e2e
@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_help_loads_nothing_heavy(asked: str):
    assert loaded_by(asked) == []


@pytest.mark.e2e
def test_explain_loads_what_reads_tables_when_there_are_some(tmp_path: Path):
    text = "REGISTER QUERY q AS SELECT * FROM taxis INSIDE (1, 2, 3, 4)"
    loaded = loaded_by("explain", "--text", text, "--home", str(tmp_path))
    assert "sqlglot" in loaded
    assert not {"pandas", "scipy", "duckdb", "shapely", "lark"} & set(loaded)


@pytest.mark.e2e
def test_commands_that_look_at_a_home_load_nothing_heavy(tmp_path: Path):
    home = ("--home", str(tmp_path), "--conf", str(ROOT / "conf"))
    assert loaded_by("status", *home) == []
    assert loaded_by("query", "list", *home) == []


@pytest.mark.e2e
def test_a_run_of_regions_loads_nothing_that_reads_texts_and_expressions(
    tmp_path: Path,
):
    home = ("--home", str(tmp_path), "--conf", str(ROOT / "conf"))
    text = "REGISTER QUERY q AS SELECT * FROM taxis INSIDE (1, 2, 3, 4)"
    assert fairway("query", "register", "--text", text, *home).returncode == 0
    rows = tmp_path / "rows.csv"
    rows.write_text("object_id,event_ts,x,y\na,1,2,3\na,2,9,9\n", encoding="utf-8")
    assert fairway("replay", "taxis", str(rows), *home).returncode == 0
    loaded = loaded_by("run", "taxis", "--engine", "local", "--until-idle", *home)
    assert {"pyarrow", "deltalake"} <= set(loaded)
    assert not {"sqlglot", "duckdb", "pydantic"} & set(loaded)
    told = fairway("changes", "q", "--format", "csv", *home).stdout.splitlines()
    assert [row["sign"] for row in csv.DictReader(told)] == ["1", "-1"], told


@pytest.mark.e2e
def test_the_version_is_that_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert fairway("--version").stdout == f"fairway {version}\n"
