"""Tables and processes: what two write at once is there, and what one had written when it was killed is there once."""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from st_common import tables
from st_common.contracts import load_contract, matches
from tests.kit.victims import killed, started, writer

ROOT = Path(__file__).resolve().parents[2]
CHANGES = load_contract("changes")
ROWS = 3  # of each version

HOLDER = """
import sys, time
from pathlib import Path
from st_common.tables.lock import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program in a process of its own, that does not outlive the test."""
    with contextlib.ExitStack() as stack:

        def started(program: str, *arguments: object) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", program, *map(str, arguments)]
            process = stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            return process

        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: many processes sync many files, and no power is cut here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        dir=memory if os.access(memory, os.W_OK) else tmp_path
    ) as made:
        yield Path(made)


def said_by(out: Path) -> list[int]:
    """The versions that a writer said it has written, from "ready" on."""
    return [int(line) for line in out.read_text().splitlines()[1:]]


def every_version(path: Path) -> list[tuple[str, int, int]]:
    """Per app: how many different (position, seq) there are, and how many rows."""
    query = """SELECT "object", count(DISTINCT position * 10 + seq), count(*) FROM found GROUP BY 1 ORDER BY 1"""
    with duckdb.connect() as connection:
        connection.register("found", tables.dataset(path))
        return connection.sql(query).fetchall()


@pytest.mark.spec("X6")
@pytest.mark.slow
def test_two_processes_commit_600_times_and_nothing_is_lost(folder):
    path, each = folder / "changes" / "taxis", 300
    writers = {
        app: started(writer, folder / app, path, app, each, ROWS, compact_every)
        for app, compact_every in (("a", 10), ("b", 0))
    }
    for app, process in writers.items():
        process.join(290)
        assert process.exitcode == 0
        assert said_by(folder / app) == list(range(each))
    assert every_version(path) == [
        ("a", each * ROWS, each * ROWS),
        ("b", each * ROWS, each * ROWS),
    ]
    assert (tables.committed(path, "a"), tables.committed(path, "b")) == (
        each - 1,
        each - 1,
    )
    assert tables.version(path) >= 2 * each
    assert matches(CHANGES, path) == []


@pytest.mark.spec("X6")
@pytest.mark.slow
def test_a_writer_killed_20_times_has_written_each_version_once(folder):
    path, chance = folder / "changes" / "taxis", random.Random(20)
    said = -1
    for number in range(20):
        out = folder / f"said-{number}"
        process = started(writer, out, path, "engine", 1_000_000, ROWS, 7)
        until_s = time.monotonic() + 60
        while (
            "ready" not in (out.read_text() if out.exists() else "")
            and time.monotonic() < until_s
        ):
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.15))
        killed(process)
        said = max([said, *said_by(out)])
        done = tables.committed(path, "engine")
        assert (-1 if done is None else done) >= said
    end = said + 5
    last = started(writer, folder / "last", path, "engine", end, ROWS, 0)
    last.join(60)
    assert last.exitcode == 0
    assert every_version(path) == [("engine", end * ROWS, end * ROWS)]
    assert tables.committed(path, "engine") == end - 1
    assert matches(CHANGES, path) == []


@pytest.mark.spec("X6")
def test_the_lock_of_a_killed_process_is_free(tmp_path, start):
    path = tmp_path / "changes" / "taxis"
    holder = start(HOLDER, path, 100)
    assert holder.stdout.readline() == "held\n"
    waiting = start(HOLDER, path, 0)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=2)
    holder.kill()
    assert waiting.communicate(timeout=60)[0] == "held\n"
