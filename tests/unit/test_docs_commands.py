"""The commands of the docs are typed, each block in a folder of its own, and say what their page shows."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.config.home import Home
from st_common.delivery.message import messages
from tests.kit.doc_blocks import Block, blocks
from tests.kit.docs_home import make_folder
from tests.kit.tutorial import environment, is_said, typed_in

pytestmark = [
    pytest.mark.spec("S11"),
    pytest.mark.xdist_group("docs_commands"),
    pytest.mark.filterwarnings("default:::great_expectations"),
]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TYPED = [
    pytest.param(page, block, id=f"{page.name}:{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.kind in ("sh", "console") and page.name != "server.md"
]
SAYS_SO = (0, 2, 3)  # what a page shows may be an error, or data below its contract


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    make_folder(folder)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the template, and the place of work; programs of the tests' environment come first."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".config" / "fish" / "completions").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    outside = environment(Path(sys.executable).parent)
    for name in [one for one in os.environ if one.startswith("FAIRWAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", outside["PATH"])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FAIRWAY_HOME", "home")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.parametrize(("page", "block"), TYPED)
def test_the_commands_of_the_page_run(page: Path, block: Block, folder: Path):
    write_files(page, block, folder)
    if block.kind == "sh":
        for command in block.commands:
            code, said = typed(command)
            assert code == 0, f"$ {command}\n{said}"
    for one in typed_in(block.text) if block.kind == "console" else ():
        code, said = typed(one.command)
        assert code in SAYS_SO, f"$ {one.command}\n{said}"
        assert is_said(one.says, said), f"$ {one.command}\n{said}"


def test_json_of_the_pages_has_the_keys_that_programs_get(folder: Path):
    (shown,) = [one for one in blocks(ROOT / "docs/cli.md") if one.kind == "json"]
    code, said = typed("fairway changes centre --tail 1 --json")
    assert (code, list(json.loads(said))) == (0, list(json.loads(shown.text)))
    (sent,) = [one for one in blocks(ROOT / "docs/delivery.md") if one.kind == "json"]
    rows = stream_changes(Home(folder / "home"), "taxis")
    line = messages(rows.slice(0, 1), "taxis").lines[0]
    assert list(json.loads(line)) == list(json.loads(sent.text))


def test_the_program_that_follows_gets_what_is_there(folder: Path):
    page = blocks(ROOT / "docs" / "delivery.md")
    (program,) = [one.text for one in page if one.kind == "python following"]
    assert "seconds=60" in program
    done = subprocess.run(
        [sys.executable, "-c", program.replace("seconds=60", "until_idle=True")],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    number = stream_changes(Home(folder / "home"), "taxis", "centre").num_rows
    assert sum(map(int, done.stdout.split())) == number > 100


def write_files(page: Path, block: Block, folder: Path) -> None:
    """Writes the files that the page has up to a block; with settings of streams the home is a new one."""
    for earlier in blocks(page):
        if earlier.line < block.line and (name := named_file(earlier)):
            if name == "home/conf/streams.toml":
                shutil.rmtree(folder / "home")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(earlier.text)


def named_file(block: Block) -> str:
    _, _, name = block.kind.partition(" ")
    return name if "." in name else ""


def typed(command: str) -> tuple[int, str]:
    """The exit code of a command and what it says; what needs a shell gets one."""
    if command.startswith("fairway ") and not re.search(r"[|<>]\s|<\(", command):
        words = shlex.split(command, comments=True)[1:]
        done = CliRunner().invoke(app, words, prog_name="fairway")
        return done.exit_code, done.output
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr
