"""A machine that lacks something hears so in one line, before anything starts."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).resolve().parents[2] / "tools" / "preflight.py"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of commands that has everything that is needed."""
    for name, says in {
        "python3.11": "3.11",
        "mvn": "",
        "java": 'openjdk version "17.0.15" 2025-04-15',
        "node": "v20.20.2",
        "npm": "11.19.1",
    }.items():
        say(tmp_path / name, says)
    return tmp_path


def say(command: Path, text: str) -> None:
    command.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)


def preflight(
    machine: Path, cwd: Path = PREFLIGHT.parents[1], **environment: str
) -> tuple[int, list[str]]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in {"JAVA_HOME", "PYTHON"}
    }
    enough = {"FAIRWAY_MIN_MEMORY_GB": "0", "FAIRWAY_MIN_DISK_GB": "0"}
    done = subprocess.run(
        [sys.executable, PREFLIGHT],
        cwd=cwd,
        env={**clean, **enough, "PATH": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


def test_a_machine_that_has_everything_hears_nothing(machine: Path):
    assert preflight(machine) == (0, [])


def test_java_21_will_do_too_and_notices_before_its_version_are_overlooked(
    machine: Path,
):
    say(
        machine / "java",
        'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16',
    )
    assert preflight(machine) == (0, [])


@pytest.mark.parametrize(
    ("command", "says", "error"),
    [
        ("java", 'openjdk version "25.0.1" 2025-10-21', "is Java 25"),
        ("java", 'java version "1.8.0_402"', "is Java 1"),
        ("java", "", "does not start"),
        ("node", "v18.19.0", "is v18"),
        ("node", "", "node does not start"),
        ("python3.11", "3.12", "is Python 3.12"),
        (
            "python3.11",
            "No module named ensurepip",
            "python3.11 with venv was not found",
        ),
    ],
)
def test_a_wrong_version_is_named_in_one_line(
    machine: Path, command: str, says: str, error: str
):
    say(machine / command, says)
    code, lines = preflight(machine)
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert error in lines[0]


@pytest.mark.parametrize("command", ["java", "mvn", "node", "npm", "python3.11"])
def test_what_is_missing_is_named_in_one_line(machine: Path, command: str):
    (machine / command).unlink()
    code, lines = preflight(machine)
    assert code == 2
    assert len(lines) == 1
    assert command in lines[0]


def test_node_is_needed_only_where_there_is_a_page_to_build(
    machine: Path, tmp_path_factory: pytest.TempPathFactory
):
    (machine / "node").unlink()
    image = tmp_path_factory.mktemp("image")
    assert preflight(machine, image) == (0, [])
    (image / "web").mkdir()
    assert preflight(machine, image)[0] == 2


def test_java_home_counts_before_the_path(machine: Path):
    code, lines = preflight(machine, JAVA_HOME=str(machine / "nowhere"))
    assert code == 2
    assert str(machine / "nowhere" / "bin" / "java") in lines[0]


def test_too_little_memory_and_disk_are_told_together(machine: Path):
    code, lines = preflight(
        machine, FAIRWAY_MIN_MEMORY_GB="1000000", FAIRWAY_MIN_DISK_GB="1000000"
    )
    assert code == 2
    assert [line.split(" are needed")[0] for line in lines] == [
        "error: 1e+06 GB of memory",
        "error: 1e+06 GB of free disk",
    ]
