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

ROOT = Path(__file__).resolve().parents[2]
CHANGES = load_contract("changes")
ROWS = 3  # of each version

# Appends the versions that come after the last committed one, up to a number, and says each of them.
WRITER = """
import sys
from datetime import date
from pathlib import Path
import pyarrow as pa
from st_common import tables
from st_common.contracts import load_contract

path, app = Path(sys.argv[1]), sys.argv[2]
end, rows, compact_every = map(int, sys.argv[3:])
contract = load_contract("changes")
done = tables.committed(path, app)
print("ready", flush=True)
for version in range(0 if done is None else done + 1, end):
    columns = {"position": version, "event_ts": version, "query_version": 1, "sign": 1}
    columns |= {"object": app, "query": "q", "cause": "enter"}
    data = pa.table({name: [value] * rows for name, value in columns.items()} | {"seq": range(rows)})
    assert tables.append(path, data, contract, app=app, version=version)
    print(version, flush=True)
    if compact_every and version % compact_every == compact_every - 1:
        tables.compact(path, before=date(1970, 1, 2))
"""

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
            process = stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            return process

        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: many processes sync many files, and no power is cut here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        yield Path(made)


def every_version(path: Path) -> list[tuple[str, int, int]]:
    """Per app: how many different (position, seq) there are, and how many rows."""
    query = """SELECT "object", count(DISTINCT position * 10 + seq), count(*) FROM found GROUP BY 1 ORDER BY 1"""
    with duckdb.connect() as connection:
        connection.register("found", tables.dataset(path))
        return connection.sql(query).fetchall()


@pytest.mark.spec("X6")
@pytest.mark.slow
def test_two_processes_commit_2000_times_and_nothing_is_lost(folder, start):
    path, each = folder / "changes" / "taxis", 1000
    writers = [start(WRITER, path, "a", each, ROWS, 10), start(WRITER, path, "b", each, ROWS, 0)]
    for writer in writers:
        output, _ = writer.communicate(timeout=290)
        assert writer.returncode == 0
        assert output.split()[1:] == [str(version) for version in range(each)]
    assert every_version(path) == [("a", each * ROWS, each * ROWS), ("b", each * ROWS, each * ROWS)]
    assert (tables.committed(path, "a"), tables.committed(path, "b")) == (each - 1, each - 1)
    assert tables.version(path) >= 2 * each
    assert matches(CHANGES, path) == []


@pytest.mark.spec("X6")
@pytest.mark.slow
def test_a_writer_killed_20_times_has_written_each_version_once(folder, start):
    path, chance = folder / "changes" / "taxis", random.Random(20)
    said = -1
    for _ in range(20):
        writer = start(WRITER, path, "engine", 1_000_000, ROWS, 7)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.15))
        writer.kill()
        said = max([said, *map(int, writer.communicate()[0].split())])
        done = tables.committed(path, "engine")
        assert (-1 if done is None else done) >= said
    end = said + 5
    assert start(WRITER, path, "engine", end, ROWS, 0).wait(timeout=60) == 0
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
