"""Compaction of closed days: fewer files, the same rows, and a writer beside it that never notices."""

import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from st_common import tables
from st_common.contracts import load_contract
from st_common.home import Home
from st_common.ops.beats import record_beats
from st_common.ops.history import compact_beats, compact_history, days_of
from st_common.ops.status import StreamStatus, write_status

pytestmark = pytest.mark.spec("C5")

CLOSED, OPEN = date(2024, 3, 9), date(2024, 3, 10)
MIDNIGHT_US = int(datetime(2024, 3, 10, tzinfo=UTC).timestamp()) * 1_000_000

WRITER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_ops_history import append
path, n = Path(sys.argv[1]), 0
print("ready", flush=True)
while not (path / "enough").exists():
    append(path, segment=1000 + n, second=5 + n)
    n += 1
print(n, flush=True)
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


@pytest.mark.slow
def test_closed_days_are_compacted_while_another_process_keeps_appending_to_the_open_one(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    path = home.table("positions", "taxis")
    for segment in range(12):
        append(path, segment=segment, second=segment - 30)
    clock(home, now_us=MIDNIGHT_US + 1)
    before = rows(path, CLOSED)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while len(files(path, OPEN)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        written = files(path, OPEN)
        done = compact_history(home, ["taxis"])
        assert written <= files(path, OPEN), "no file of the open day was touched"
        while len(files(path, OPEN)) < len(written) + 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        (path / "enough").touch()
        out, _ = writer.communicate(timeout=60)
    assert [
        (each.table, each.files_before, each.files_after, each.rows) for each in done
    ] == [("positions/taxis", 12, 1, 36)]
    assert len(files(path, CLOSED)) == 1
    assert rows(path, CLOSED) == before, "the same rows"
    commits = int(out)
    assert rows(path, OPEN) == [
        (1000 + n, row) for n in range(commits) for row in range(3)
    ], "nothing lost, nothing twice"
    assert tables.committed(path, "archive") == 1000 + commits - 1


def test_an_open_day_is_never_touched_whatever_is_asked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    path = home.table("positions", "taxis")
    for segment, second in enumerate([-100_000, -100_000, -9, -8, 5, 6]):
        append(path, segment=segment, second=second)
    assert days_of(path) == [date(2024, 3, 8), CLOSED, OPEN]
    untouched = DeltaTable(str(path)).file_uris()
    assert [each.open_since for each in compact_history(home, ["taxis", "absent"])] == [
        None
    ]
    clock(home, now_us=MIDNIGHT_US - 1)
    (done,) = compact_history(home, ["taxis"], before=date(2030, 1, 1))
    assert (done.open_since, done.files_before) == (CLOSED, 2)
    assert len(files(path, CLOSED)) == 2
    clock(home, now_us=MIDNIGHT_US + 86_400_000_000)
    (done,) = compact_history(home, ["taxis"], before=CLOSED)
    assert (done.open_since, done.files_before) == (CLOSED, 0), "done already"
    (done,) = compact_history(home, ["taxis"])
    assert (
        done.files_before,
        done.files_after,
        len(DeltaTable(str(path)).file_uris()),
    ) == (4, 2, 3)
    assert all(Path(uri.removeprefix("file://")).exists() for uri in untouched), (
        "old versions can still be read"
    )


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
    (done,) = compact_beats(home, today=OPEN)
    assert (done.files_before, done.files_after, done.rows) == (3, 1, 6)
    kept = tables.read(home.table("stream_status")).sort_by("beat_ts")
    assert kept["job"].to_pylist().count("archive") == 4
    assert set(kept["date"].to_pylist()) == {CLOSED, OPEN}
