"""Maintenance of tables: fewer files, the same rows, a writer beside it that never notices, and kills anywhere."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from jobs.maintain import main as maintain_job
from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.maintenance.maintain import Maintained, maintain
from st_common.operations.beats import record_beats
from st_common.operations.history import days_of
from st_common.operations.status import StreamStatus, write_status

pytestmark = pytest.mark.spec("C5")

ROOT = Path(__file__).resolve().parents[2]
CLOSED, OPEN = date(2024, 3, 9), date(2024, 3, 10)
MIDNIGHT_US = int(datetime(2024, 3, 10, tzinfo=UTC).timestamp()) * 1_000_000

WRITER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_maintain import append
path, n = Path(sys.argv[1]), 0
print("ready", flush=True)
while not (path / "enough").exists():
    append(path, segment=1000 + n, second=5 + n)
    n += 1
print(n, flush=True)
"""
MAINTAINER = """
import sys
from datetime import date
from pathlib import Path
from st_common.config.home import Home
from st_common.maintenance.maintain import maintain
print("ready", flush=True)
while True:
    list(maintain(Home(Path(sys.argv[1])), today=date(2024, 3, 10)))
"""


def append(path: Path, *, segment: int, second: int, rows: int = 3) -> None:
    """One small commit, `second` seconds after midnight (before it, when negative)."""
    stamp = pa.array([MIDNIGHT_US + second * 1_000_000] * rows).cast(
        pa.timestamp("us", "UTC")
    )
    columns = {
        "region_id": ["0"] * rows,
        "segment": pa.array([segment] * rows),
        "row": pa.array(range(rows), pa.int32()),
        "event_ts": stamp,
        "x": [8.5] * rows,
        "y": [47.3] * rows,
        "object": ["a"] * rows,
        "gone": [False] * rows,
    }
    contract = load_contract("positions")
    tables.append(path, pa.table(columns), contract, app="archive", version=segment)


def clock(home: Home, *, now_us: int) -> None:
    write_status(
        home.stream("taxis"),
        StreamStatus(
            state="running", beat_ts=1, position=0, end_position=0, now_ts=now_us
        ),
    )


def files(path: Path, day: date) -> set[str]:
    return {
        uri for uri in DeltaTable(str(path)).file_uris() if f"event_date={day}" in uri
    }


def rows(path: Path, day: date) -> list[tuple[int, int]]:
    found = tables.read(
        path, columns=["segment", "row"], filters=[("event_date", "=", day)]
    )
    return sorted(
        zip(found["segment"].to_pylist(), found["row"].to_pylist(), strict=True)
    )


def run(home: Home) -> dict[str, Maintained]:
    return {each.table: each for each in maintain(home, today=OPEN)}


def let_pass(hours: int, *files: Path) -> None:
    """Makes files look as old as they will be after some hours."""
    then = time.time_ns() - hours * 3600 * 10**9
    for file in files:
        os.utime(file, ns=(then, then))


@contextmanager
def writing(path: Path) -> Iterator[Callable[[], int]]:
    """Another process that appends to the open day without a pause; what is given ends it and tells its commits."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )

    def ended() -> int:
        (path / "enough").touch()
        out, _ = writer.communicate(timeout=120)
        return int(out)

    try:
        assert writer.stdout.readline() == "ready\n"
        wait_until(lambda: len(rows(path, OPEN)) >= 6)
        yield ended
    finally:
        if writer.poll() is None:
            writer.kill()
            writer.wait()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_open(path: Path, commits: int) -> None:
    """Every commit of the writer is there once, and the app stands behind the last."""
    assert rows(path, OPEN) == [
        (1000 + n, row) for n in range(commits) for row in range(3)
    ], "nothing lost, nothing twice"
    assert tables.committed(path, "archive") == 1000 + commits - 1


@pytest.mark.slow
def test_tables_are_maintained_while_another_process_keeps_appending(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    path = home.table("positions", "taxis")
    for segment in range(12):
        append(path, segment=segment, second=segment - 30)
    clock(home, now_us=MIDNIGHT_US + 1)
    before = rows(path, CLOSED)
    with writing(path) as ended:
        done = run(home)["positions/taxis"]
        written = len(rows(path, OPEN))
        wait_until(lambda: len(rows(path, OPEN)) > written)
        commits = ended()
    assert done.joined >= 14, "those of the closed day, and of the open one"
    assert len(files(path, CLOSED)) == 1
    assert rows(path, CLOSED) == before, "the same rows"
    check_open(path, commits)


@pytest.mark.slow
@pytest.mark.spec("S2", "S4")
def test_maintenance_that_is_killed_anywhere_loses_nothing(tmp_path: Path) -> None:
    home, rng = Home(tmp_path), random.Random(7)
    path = home.table("positions", "taxis")
    for segment in range(40):
        append(path, segment=segment, second=segment - 60)
    clock(home, now_us=MIDNIGHT_US + 1)
    before = rows(path, CLOSED)
    with writing(path) as ended:
        for _ in range(6):
            victim = subprocess.Popen(
                [sys.executable, "-c", MAINTAINER, str(home.root)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert victim.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0, 0.6))
            victim.kill()
            victim.communicate(timeout=60)
            assert rows(path, CLOSED) == before
        commits = ended()
    run(home)
    assert len(files(path, CLOSED)) == 1
    assert rows(path, CLOSED) == before
    check_open(path, commits)


def test_small_files_of_open_days_are_joined_and_closed_days_are_put_in_order_once(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    path = home.table("positions", "taxis")
    for segment, second in enumerate([-100_000, -100_000, -9, -8, 5, 6]):
        append(path, segment=segment, second=second)
    assert days_of(path) == [date(2024, 3, 8), CLOSED, OPEN]
    before = tables.read(path).sort_by("segment")
    untouched = DeltaTable(str(path)).file_uris()
    done = run(home)["positions/taxis"]
    assert (done.before.files, done.joined, done.after.files) == (6, 6, 3), "by size"
    clock(home, now_us=MIDNIGHT_US + 1)
    done = run(home)["positions/taxis"]
    assert (done.joined, done.after.files) == (2, 3), "two days are closed now"
    assert run(home)["positions/taxis"].joined == 0, "done already"
    assert tables.read(path).sort_by("segment") == before
    assert all(Path(uri.removeprefix("file://")).exists() for uri in untouched), (
        "old versions can still be read"
    )
    assert done.after.bytes > sum(
        file.stat().st_size for file in path.glob("event_date=*/zorder*")
    ), "what is on the disk counts, not what is newest alone"


def test_what_a_reset_has_taken_away_is_no_table(tmp_path: Path) -> None:
    home = Home(tmp_path)
    path = home.table("positions", "taxis")
    append(path, segment=0, second=5)
    shutil.copytree(path, path.with_name(".taxis.reset"))
    (path.with_name("buses") / "_delta_log").mkdir(parents=True)
    assert set(run(home)) == {"positions/taxis"}, "nor is a folder without a commit"


def test_old_commits_and_files_go_when_no_reader_is_promised_them(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    path = home.table("latest", "taxis")
    contract = load_contract("latest")
    for _ in range(3):
        tables.replace(path, contract.arrow_schema().empty_table(), contract)
    orphan = path / "part-of-a-writer-that-died.parquet"
    orphan.write_bytes(b"PAR1")
    log = path / "_delta_log"
    let_pass(3, orphan, *log.glob("*.json"))
    assert run(home)["latest/taxis"].deleted == 1
    assert not orphan.exists()
    assert list(log.glob("*.checkpoint.parquet"))
    assert (log / f"{0:020d}.json").exists(), (
        "no checkpoint is old enough to stand for it"
    )
    let_pass(3, *log.iterdir())
    run(home)
    assert not (log / f"{0:020d}.json").exists()
    assert tables.read(path).num_rows == 0


@pytest.mark.spec("C4")
def test_each_heartbeat_becomes_one_row_and_past_days_of_them_are_compacted(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    assert record_beats(home, ["taxis"], now_us=MIDNIGHT_US) == 0
    for second in (-3, -2, -1, 1):
        now_us = MIDNIGHT_US + second * 1_000_000
        for job in ("engine", "archive"):
            status = StreamStatus(
                state="running",
                beat_ts=now_us,
                position=5,
                end_position=9,
                job=job,
                engine="local",
            )
            write_status(home.stream("taxis"), status)
        assert record_beats(home, ["taxis", "absent"], now_us=now_us) == 2
        assert record_beats(home, ["taxis"], now_us=now_us + 1) == 0, "recorded already"
    done = run(home)["stream_status"]
    assert (done.before.files, done.after.files, done.joined) == (4, 2, 3)
    kept = tables.read(home.table("stream_status")).sort_by("beat_ts")
    assert kept["job"].to_pylist().count("archive") == 4
    assert set(kept["date"].to_pylist()) == {CLOSED, OPEN}


@pytest.mark.spec("S4")
def test_the_command_and_the_job_say_what_was_and_what_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for second in (-3, -2):
        append(home.table("positions", "taxis"), segment=second + 9, second=second)
    told = CliRunner().invoke(app, ["--home", str(tmp_path), "maintain", "--no-purge"])
    assert told.exit_code == 0, told.output
    assert re.search(r"^positions/taxis +2 -> 1 ", told.stdout, re.MULTILINE)
    job = subprocess.run(
        [sys.executable, "-m", "jobs.maintain", "--home", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (table,) = json.loads(job.stdout.splitlines()[-1])["tables"]
    assert (table["table"], table["files_before"], table["files_after"]) == (
        "positions/taxis",
        1,
        1,
    )
    assert table["bytes_after"] > 0


@pytest.mark.spec("S4")
def test_a_stream_without_levels_is_refused_by_command_and_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--home", str(tmp_path)]
    told = CliRunner().invoke(app, [*place, "maintain", "--stream", "taxis"])
    assert told.exit_code == 2
    assert maintain_job([*place, "--stream", "taxis"]) == 2
    for said in (told.stderr, capsys.readouterr().err):
        assert "--stream goes with --levels alone" in said
